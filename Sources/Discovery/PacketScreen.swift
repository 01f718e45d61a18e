import CSystem

/// Checks each multicast DNS packet before libavahi-core reads it, and drops dangerous and needless ones.
///
/// libavahi-core 0.8 aborts, or reads freed memory, on some CNAME records (avahi issues 501, 678, 683), which would
/// crash the relay. DNS-SD needs no CNAME, so packets with one are dropped, and so are packets that are not well-formed
/// DNS from end to end (RFC 1035, section 4.1).
final class PacketScreen {
  /// RFC 6762, section 17: the largest multicast DNS message, with IP and UDP headers.
  static let packetBytesMax = 9000
  /// More records than this do not fit a packet of `packetBytesMax` bytes (the shortest record has 11 bytes).
  static let recordsMax = packetBytesMax / 11

  /// Packets dropped so far, apart from needless ones.
  private(set) var refusedCount = 0
  /// Says which queries are needless.
  var ownAnswer: OwnAnswer?
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: packetBytesMax, alignment: 8)

  deinit { buffer.deallocate() }

  /// True when Avahi may read the next datagram; otherwise it was removed from the queue.
  func admitsNext(of descriptor: CInt) -> Bool {
    let peek = CInt(MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT)
    let count = recv(descriptor, buffer.baseAddress, buffer.count, peek)
    if count < 0 { return true }  // an error, or no datagram: Avahi's own recvmsg will report it
    let packet = UnsafeRawBufferPointer(rebasing: buffer[..<min(count, buffer.count)])
    if count <= buffer.count, Self.admits(packet) {
      guard let ownAnswer, let parsed = DNSPacket(packet), ownAnswer.isNeedless(parsed) else { return true }
    } else {
      refusedCount &+= 1
    }
    _ = recv(descriptor, buffer.baseAddress, 1, CInt(MSG_DONTWAIT))
    return false
  }

  /// Whether a packet is well-formed and free of CNAME records.
  static func admits(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let packet = DNSPacket(bytes), packet.questionCount <= recordsMax, packet.recordCount <= recordsMax else {
      return false
    }
    var offset = DNSPacket.headerBytes
    for _ in 0..<packet.questionCount {
      guard packet.question(&offset) != nil else { return false }
    }
    for _ in 0..<packet.recordCount {
      guard let record = packet.record(&offset), record.type != DNSPacket.typeCNAME else { return false }
    }
    return true
  }
}
