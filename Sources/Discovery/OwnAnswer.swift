/// Recognises queries for services that this node need not answer: its own one is among the answers that they know
/// already (RFC 6762, section 7.1). A long list of known answers takes several packets (section 7.2), of which all but the
/// first are of use only if they list it.
///
/// While n boxes start, each asks again after 1, 2, 4, … seconds and lists all others. libavahi-core compares each
/// record of each of these queries with each one that it has seen lately, which from 40 boxes on takes all processors.
struct OwnAnswer {
  private let service: [UInt8]
  private let instance: [UInt8]

  /// Nil when the names are no DNS names. `serviceType` has two labels, as "_causeway._tcp".
  init?(serviceType: String, instance: String) {
    var labels: [[UInt8]] = [[]]
    for byte in serviceType.utf8 {
      if byte == UInt8(ascii: ".") { labels.append([]) } else { labels[labels.count - 1].append(byte) }
    }
    labels.append(Array("local".utf8))
    guard let service = DNSPacket.name(labels), let whole = DNSPacket.name([Array(instance.utf8)] + labels) else {
      return nil
    }
    self.service = service
    self.instance = whole
  }

  /// Whether a well-formed packet is such a query and nothing else. A probe (RFC 6762, section 8.1) has records in its
  /// authority section.
  func isNeedless(_ packet: DNSPacket) -> Bool {
    guard !packet.isResponse, packet.authorityCount == 0 else { return false }
    var offset = DNSPacket.headerBytes
    for _ in 0..<packet.questionCount {
      let name = offset
      guard packet.question(&offset) == DNSPacket.typePTR, packet.isName(service, at: name) else { return false }
    }
    var isListed = false
    for _ in 0..<packet.answerCount {
      guard let record = packet.record(&offset) else { return false }
      if record.type == DNSPacket.typePTR, packet.isName(instance, at: record.data.lowerBound) { isListed = true }
    }
    return isListed == (packet.questionCount > 0) && packet.answerCount > 0
  }
}
