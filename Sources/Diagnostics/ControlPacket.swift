import Primitives

/// Appends the fields of a control packet.
struct PacketWriter {
  var bytes: [UInt8] = []

  mutating func u8(_ value: UInt8) { bytes.append(value) }

  mutating func u32(_ value: UInt32) {
    for index in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(24 - index * 8))) }
  }

  mutating func id(_ id: NodeID) {
    for index in 0..<NodeID.byteCount { bytes.append(id.byte(index)) }
  }

  /// Cut to 255 bytes: no text of the protocol is longer.
  mutating func text(_ text: String) {
    let utf8 = Array(text.utf8.prefix(255))
    bytes.append(UInt8(utf8.count))
    bytes += utf8
  }

  mutating func message(_ message: ControlMessage) {
    id(message.peer)
    u8(message.kind)
    u8(message.lane)
    bytes += message.bytes
  }

  mutating func peer(_ peer: PeerStatus) {
    id(peer.id)
    u8(peer.hops)
    u8(peer.bearer.rawValue)
    id(peer.via)
    text(peer.name)
    text(peer.serviceType)
    let pairs = peer.info.prefix(255)
    u8(UInt8(pairs.count))
    for pair in pairs { text(pair) }
    u8(peer.isInClear ? 1 : 0)
  }
}

/// Takes the fields of a control packet; throws where they end too early.
struct PacketReader {
  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func u8() throws(ControlSyntaxError) -> UInt8 {
    guard offset < bytes.count else { throw ControlSyntaxError() }
    offset += 1
    return bytes[offset - 1]
  }

  mutating func u32() throws(ControlSyntaxError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 { value = value << 8 | UInt32(try u8()) }
    return value
  }

  mutating func id() throws(ControlSyntaxError) -> NodeID {
    var words: (UInt64, UInt64) = (0, 0)
    for _ in 0..<8 { words.0 = words.0 << 8 | UInt64(try u8()) }
    for _ in 0..<8 { words.1 = words.1 << 8 | UInt64(try u8()) }
    return NodeID(high: words.0, low: words.1)
  }

  mutating func text() throws(ControlSyntaxError) -> String {
    let count = Int(try u8())
    guard bytes.count - offset >= count else { throw ControlSyntaxError() }
    offset += count
    return String(decoding: bytes[(offset - count)..<offset], as: UTF8.self)
  }

  mutating func rest() -> [UInt8] {
    let rest = Array(bytes[offset...])
    offset = bytes.count
    return rest
  }

  mutating func message() throws(ControlSyntaxError) -> ControlMessage {
    let message = ControlMessage(peer: try id(), kind: try u8(), lane: try u8(), bytes: rest())
    if message.bytes.count > ControlProtocol.messageBytesMax { throw ControlSyntaxError() }
    return message
  }

  mutating func peer() throws(ControlSyntaxError) -> PeerStatus {
    let id = try id()
    let hops = try u8()
    guard let bearer = BearerKind(rawValue: try u8()) else { throw ControlSyntaxError() }
    let via = try self.id()
    var peer = PeerStatus(
      id: id, name: try text(), serviceType: try text(), info: [], hops: hops, bearer: bearer, via: via)
    let count = try u8()
    for _ in 0..<count { peer.info.append(try text()) }
    peer.isInClear = try u8() != 0
    return peer
  }

  func end() throws(ControlSyntaxError) {
    if offset != bytes.count { throw ControlSyntaxError() }
  }
}
