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
/// - answers with more records than their sender's share of the cache (`RecordShares`)
final class PacketScreen {
  /// The maximum size of a multicast DNS message with IP and UDP headers, in bytes (RFC 6762, section 17).
  static let packetBytesMax = 9000
  /// The maximum number of records in a packet of `packetBytesMax` bytes. The shortest record has 11 bytes.
  static let recordsMax = packetBytesMax / 11

  /// The number of packets that were dropped since the start.
  private(set) var refusedCount = 0
  private var shares: RecordShares
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
  /// queue.
  func admitsNext(of descriptor: CInt, now: Instant = monotonicNow()) -> Bool {
    var source: UInt64 = 0
    var interface: UInt32 = 0
    let count = cavahi_peek(descriptor, buffer.baseAddress, buffer.count, &source, &interface)
    if count < 0 { return true }  // Avahi's recvmsg reports the error.
    if count <= buffer.count {
      let packet = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      if Self.admits(packet), shares.admits(packet, from: source, on: interface, now: now) { return true }
    }
    refusedCount &+= 1
    _ = recv(descriptor, buffer.baseAddress, 1, CInt(MSG_DONTWAIT))
    return false
  }

  /// Whether a packet is well-formed and free of CNAME records.
  static func admits(_ packet: UnsafeRawBufferPointer) -> Bool {
    guard packet.count >= 12 else { return false }
    let questions = word(packet, 4)
    let records = word(packet, 6) + word(packet, 8) + word(packet, 10)
    guard questions <= recordsMax, records <= recordsMax else { return false }
    var offset = 12
    for _ in 0..<questions {
      guard let end = nameEnd(packet, offset), packet.count - end >= 4 else { return false }
      offset = end + 4
    }
    for _ in 0..<records {
      guard let end = nameEnd(packet, offset), packet.count - end >= 10 else { return false }
      let dataEnd = end + 10 + word(packet, end + 8)
      if word(packet, end) == cname || dataEnd > packet.count { return false }
      offset = dataEnd
    }
    return true
  }

  /// The type of a CNAME record (RFC 1035, section 3.2.2).
  private static let cname = 5

  static func word(_ packet: UnsafeRawBufferPointer, _ offset: Int) -> Int {
    Int(packet[offset]) << 8 | Int(packet[offset + 1])
  }

  /// The offset behind the name that begins at `start`. A name ends with the root label or a pointer (RFC 1035, section
  /// 4.1.4). nil if the name is malformed.
  static func nameEnd(_ packet: UnsafeRawBufferPointer, _ start: Int) -> Int? {
    var offset = start
    while offset < packet.count {
      let length = Int(packet[offset])
      if length == 0 { return offset + 1 }
      if length >= 0xC0 { return offset + 2 <= packet.count ? offset + 2 : nil }
      if length > 63 { return nil }
      offset += 1 + length
    }
    return nil
  }
}
