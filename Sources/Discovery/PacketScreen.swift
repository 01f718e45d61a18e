import CAvahi
import CSystem
import Primitives
import Reactor

/// Checks each multicast DNS packet before libavahi-core reads it, and drops packets that could harm the process.
///
/// libavahi-core 0.8 aborts, or reads freed memory, on some CNAME records (avahi issues 501, 678, 683), which would
/// crash the relay. These multicast DNS packets are dropped:
///
/// - packets with a CNAME record, which DNS-SD does not need
/// - packets that are not well-formed DNS from the first to the last byte (RFC 1035, section 4.1)
/// - packets whose names cost more work than those of an honest packet can (`stepsPerByteMax`)
/// - packets of a source that has used its share of the processor's time (`PacketBudget`)
/// - answers with more records than their sender's share of the cache (`RecordShares`)
final class PacketScreen {
  /// The maximum size of a multicast DNS message with IP and UDP headers, in bytes (RFC 6762, section 17).
  static let packetBytesMax = 9000
  /// The maximum number of questions and records in a packet, together. Anyone on the network can send a packet, and
  /// libavahi-core compares each record with all cached records of the same name. An Ethernet frame has room for 104.
  static let itemsMax = 128
  /// The maximum length of a name with its length bytes and the root (RFC 1035, section 3.1).
  static let nameBytesMax = 255
  /// The bytes and pointers of names that may be read, for each byte of the packet. Pointers can make any number of
  /// records repeat one long name. An honest packet needs less than half, because its names are not all long.
  static let stepsPerByteMax = 16

  /// The number of packets that were dropped since the start.
  private(set) var refusedCount = 0
  private var shares: RecordShares
  private var budget = PacketBudget()
  /// The packet that Avahi reads now, and the time of the thread at which its handling began.
  private var current: (payer: PacketBudget.Payer, source: UInt64, interface: UInt32, began: TimeSpan)?
  /// Knows the addresses at which nodes proved their keys. Without an owner no address is proven.
  var owner: (any ResponderOwner)?
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: packetBytesMax, alignment: 8)

  init() {
    var seed: UInt64 = 0
    // Without a random seed, a sender can choose records with equal hashes, and so falsify the counts of records.
    // Nothing else depends on the seed.
    _ = withUnsafeMutableBytes(of: &seed) { getrandom($0.baseAddress, $0.count, UInt32(GRND_NONBLOCK)) }
    shares = RecordShares(seed: seed)
  }

  deinit { buffer.deallocate() }

  /// Returns whether Avahi may read the next datagram. If not, the datagram was already removed from the socket's
  /// queue. Call `handled` after Avahi has read the datagram.
  func admitsNext(of descriptor: CInt, now: Instant = monotonicNow()) -> Bool {
    var source: UInt64 = 0
    var interface: UInt32 = 0
    let began = threadTime()
    let count = cavahi_peek(descriptor, buffer.baseAddress, buffer.count, &source, &interface)
    if count < 0 { return true }  // Avahi's recvmsg reports the error.
    let payer = budget.payer(source, on: interface, now: now) { owner?.isProven(source, on: interface) ?? false }
    if let payer {
      current = (payer, source, interface, began)
      if count <= buffer.count {
        let packet = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        if Self.admits(packet), shares.admits(packet, from: source, on: interface, now: now) { return true }
      }
    }
    refusedCount &+= 1
    _ = recv(descriptor, buffer.baseAddress, 1, CInt(MSG_DONTWAIT))
    handled()
    return false
  }

  /// Charges the packet that was handled to its source.
  func handled() {
    guard let packet = current else { return }
    current = nil
    let time = TimeSpan(nanoseconds: threadTime().nanoseconds &- packet.began.nanoseconds)
    budget.charge(time, to: packet.payer, packet.source, on: packet.interface)
  }

  /// Whether a packet is well-formed and free of CNAME records, and its names cost a bounded amount of work.
  static func admits(_ packet: UnsafeRawBufferPointer) -> Bool {
    guard packet.count >= 12 else { return false }
    let questions = word(packet, 4)
    let records = word(packet, 6) + word(packet, 8) + word(packet, 10)
    guard questions + records <= itemsMax else { return false }
    var stepsLeft = packet.count * stepsPerByteMax
    var offset = 12
    for _ in 0..<questions {
      guard let end = nameEnd(packet, offset, &stepsLeft), packet.count - end >= 4 else { return false }
      offset = end + 4
    }
    for _ in 0..<records {
      guard let end = nameEnd(packet, offset, &stepsLeft), packet.count - end >= 10 else { return false }
      let type = word(packet, end)
      let data = end + 10, dataEnd = data + word(packet, end + 8)
      if type == cname || dataEnd > packet.count { return false }
      if let name = nameInData(type, data), nameEnd(packet, name, &stepsLeft) != dataEnd { return false }
      offset = dataEnd
    }
    return true
  }

  /// The offset of the name that ends the data of a record; nil if the data of this type contain no name that is read.
  /// NS and PTR: RFC 1035, sections 3.3.11 and 3.3.12. SRV: RFC 2782.
  static func nameInData(_ type: Int, _ data: Int) -> Int? {
    switch type {
    case 2, 12: data
    case 33: data + 6
    case _: nil
    }
  }

  /// The type of a CNAME record (RFC 1035, section 3.2.2).
  private static let cname = 5

  static func word(_ packet: UnsafeRawBufferPointer, _ offset: Int) -> Int {
    Int(packet[offset]) << 8 | Int(packet[offset + 1])
  }

  /// The offset behind the name that begins at `start`. A name ends with the root label or a pointer (RFC 1035, section
  /// 4.1.4). nil if the name is malformed, or more than `stepsLeft` bytes and pointers would have to be read. The steps
  /// that were taken are subtracted.
  static func nameEnd(_ packet: UnsafeRawBufferPointer, _ start: Int, _ stepsLeft: inout Int) -> Int? {
    var (offset, part, byteCount, end) = (start, start, 1, nil as Int?)
    while offset < packet.count {
      let length = Int(packet[offset])
      if length == 0 { return end ?? offset + 1 }
      if length >= 0xC0 {
        guard offset + 2 <= packet.count else { return nil }
        end = end ?? offset + 2
        // A pointer refers to a prior occurrence of a name. Each part therefore begins before the part that refers to
        // it, so the pointers of a name cannot form a circle.
        offset = (length & 0x3F) << 8 | Int(packet[offset + 1])
        if offset >= part || offset < 12 { return nil }
        part = offset
        stepsLeft -= 1
      } else {
        if length > 63 { return nil }
        byteCount += 1 + length
        if byteCount > nameBytesMax { return nil }
        offset += 1 + length
        stepsLeft -= 1 + length
      }
      if stepsLeft < 0 { return nil }
    }
    return nil
  }

  /// The offset behind the name that begins at `start`, without following its pointers.
  static func nameEnd(_ packet: UnsafeRawBufferPointer, _ start: Int) -> Int? {
    var offset = start
    while offset < packet.count {
      let length = Int(packet[offset])
      if length == 0 { return offset + 1 }
      if length >= 0xC0 { return offset + 2 <= packet.count ? offset + 2 : nil }
      offset += 1 + length
    }
    return nil
  }
}
