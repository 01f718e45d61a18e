/// Writes one packet: length, type, number and fields. See docs/local-api.md, “Connection”.
struct PacketWriter {
  private(set) var bytes: [UInt8]

  init(type: UInt8, number: UInt32, capacity: Int = 64) {
    bytes = []
    bytes.reserveCapacity(capacity)
    put(0, count: 4)
    put(UInt64(type), count: 1)
    put(UInt64(number), count: 4)
  }

  mutating func put(_ value: UInt64, count: Int) {
    for index in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index))) }
  }

  mutating func put(_ more: [UInt8]) { bytes.append(contentsOf: more) }

  /// Appends a text field. The caller has checked that the text has at most 255 bytes.
  mutating func put(_ text: String) {
    let encoded = text.utf8.prefix(255)
    put(UInt64(encoded.count), count: 1)
    bytes.append(contentsOf: encoded)
  }

  mutating func put(_ address: Address) {
    put(address.node.high, count: 8)
    put(address.node.low, count: 8)
    put(UInt64(address.endpoint), count: 4)
  }

  /// The packet with its length field.
  func finished() -> [UInt8] {
    var packet = bytes
    let length = UInt32(packet.count - 4)
    for index in 0..<4 { packet[index] = UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * index)) }
    return packet
  }
}

/// Reads the fields of a packet. Bytes after the last known field belong to a later version and are ignored.
struct PacketReader {
  private var rest: ArraySlice<UInt8>

  init(_ packet: ArraySlice<UInt8>) { rest = packet }

  mutating func bytes(_ count: Int) throws(CausewayError) -> ArraySlice<UInt8> {
    guard count <= rest.count else { throw .broken("a packet ends before its last field") }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  mutating func number(_ count: Int) throws(CausewayError) -> UInt64 {
    try bytes(count).reduce(0) { $0 << 8 | UInt64($1) }
  }

  var remaining: Int { rest.count }
  mutating func byte() throws(CausewayError) -> UInt8 { UInt8(try number(1)) }
  mutating func word() throws(CausewayError) -> UInt32 { UInt32(try number(4)) }
  mutating func count(_ width: Int) throws(CausewayError) -> Int { Int(try number(width)) }

  /// Reads untrusted text and makes it safe to print: control characters and invalid UTF-8 are replaced.
  mutating func text() throws(CausewayError) -> String {
    harmless(String(decoding: try bytes(try count(1)), as: UTF8.self))
  }

  mutating func node() throws(CausewayError) -> NodeID { NodeID(high: try number(8), low: try number(8)) }
  mutating func address() throws(CausewayError) -> Address { Address(node: try node(), endpoint: try word()) }

  mutating func peer() throws(CausewayError) -> Peer {
    let hops = try count(1), flags = try byte()
    return Peer(name: try text(), hops: hops, isVerified: flags & 1 == 1)
  }

  mutating func rules() throws(CausewayError) -> Rules {
    let flags = try byte()
    return Rules(membersMax: try count(1), onlyFounderAdmits: flags & 1 == 1, allowsUnsealed: flags & 2 == 2)
  }

  mutating func info() throws(CausewayError) -> [String: String] {
    var info: [String: String] = [:]
    for _ in 0..<(try count(1)) {
      let parts = try text().split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let key = String(parts[0])
      // Only the first occurrence of a key is used (RFC 6763, section 6.4).
      if info[key] == nil { info[key] = parts.count > 1 ? String(parts[1]) : "" }
    }
    return info
  }
}

/// Splits a byte stream into packets. The buffer holds at most one incomplete packet and the bytes of the last
/// `append`.
struct PacketSplitter {
  private var buffer: [UInt8] = []
  private var start = 0

  mutating func append(_ bytes: some Collection<UInt8>) {
    if start > 0 {
      buffer.removeFirst(start)
      start = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next complete packet without its length field. Returns nil if no packet is complete.
  mutating func next() throws(CausewayError) -> ArraySlice<UInt8>? {
    guard buffer.count - start >= 4 else { return nil }
    let length = buffer[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
    guard Limits.packetBytes.contains(length) else { throw .broken("a packet of \(length) bytes") }
    guard buffer.count - start - 4 >= length else { return nil }
    defer { start += 4 + length }
    return buffer[start + 4..<start + 4 + length]
  }
}
