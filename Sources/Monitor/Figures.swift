import Primitives
import Status

/// The rates computed from two samples of the same daemon's status, in bytes or frames per second. A rate is nil if
/// there is no earlier value: for the first sample, after a restart of the daemon, and for a new link.
///
/// `Figures` is a class, because the model and the pages only pass the object on. For a struct the compiler would emit
/// much code to copy its arrays.
public final class Figures {
  /// A link to a neighbour.
  public struct Link {
    public let sample: StatusSample.Link
    public let received: UInt64?
    public let sent: UInt64?
    /// Retransmitted TCP segments per 1000 segments sent. Nil for a link that does not use TCP, and if no segment was
    /// sent since the earlier sample.
    public let lossPermille: UInt64?

    var traffic: UInt64 { (received ?? 0) &+ (sent ?? 0) }
  }

  /// A bearer, and the sum of the traffic of its links.
  public struct Radio {
    public let sample: StatusSample.Radio
    public let received: UInt64?
    public let sent: UInt64?
    /// The share of time that the radio needs to carry these bytes, in thousandths, computed from `airTenthsOfByte`.
    /// Nil except for Bluetooth LE.
    public let airPermille: UInt64?
    public let scanningPermille: UInt64?
    public let diallingPermille: UInt64?
  }

  /// A node whose frames the box forwards.
  public struct Talker {
    public let sample: StatusSample.Talker
    public let rate: UInt64?
  }

  /// The air time of one byte over Bluetooth LE, in tenths of a microsecond. At 1 Mbit/s (LE 1M), a data packet of 251
  /// bytes takes 2,120 µs and its empty response 80 µs. In the air, each of the two gaps between packets takes 150 µs.
  /// The packet carries 244 bytes of Causeway's data. Source: Core Specification 5.4, Vol 6, Part B, 2.1 and 4.1.1.
  static let airTenthsOfByte: UInt64 = 102

  public let sample: StatusSample
  public let framesForwarded: UInt64?
  public let bytesForwarded: UInt64?
  public let framesRefused: UInt64?
  public let links: [Link]
  public let radios: [Radio]
  /// The nodes whose frames are forwarded, ordered by rate: the node that sends most is the first.
  public let talkers: [Talker]

  public init(_ sample: StatusSample, since earlier: StatusSample?, span: TimeSpan) {
    let before = earlier.flatMap { $0.epoch == sample.epoch && $0.id == sample.id ? $0 : nil }
    let perSecond = Rate(span)
    self.sample = sample
    framesForwarded = perSecond.of(sample.framesForwarded, before?.framesForwarded)
    bytesForwarded = perSecond.of(sample.bytesForwarded, before?.bytesForwarded)
    framesRefused = perSecond.of(sample.framesRefused, before?.framesRefused)
    let links = sample.links.map { link in
      let former = before?.links.first { $0.slot == link.slot && $0.peer == link.peer && isSame($0, link) }
      return Link(
        sample: link, received: perSecond.of(link.received, former?.received),
        sent: perSecond.of(link.sent, former?.sent), lossPermille: loss(link, former))
    }
    self.links = links
    radios = sample.radios.map { radio in
      let former = before?.radios.first { $0.name == radio.name }
      let received = sum(links, of: radio.name) { $0.received }
      let sent = sum(links, of: radio.name) { $0.sent }
      let isLE = radio.name.elementsEqual("\(BearerKind.bluetoothLE.name)".utf8)
      let bytes = isLE ? received.flatMap { received in sent.map { received &+ $0 } } : nil
      return Radio(
        sample: radio, received: received, sent: sent,
        airPermille: bytes.map { min($0, 1 << 32) * airTenths / 10_000 },
        scanningPermille: share(perSecond.of(radio.scanningMilliseconds, former?.scanningMilliseconds)),
        diallingPermille: share(perSecond.of(radio.diallingMilliseconds, former?.diallingMilliseconds)))
    }
    let talkers = sample.talkers.map { talker in
      let former = before?.talkers.first { $0.id == talker.id }
      return Talker(sample: talker, rate: perSecond.of(talker.bytes, former?.bytes))
    }
    self.talkers = inOrder(talkers.count) { one, other in
      let first = talkers[one], second = talkers[other]
      if first.rate != second.rate { return (first.rate ?? 0) > (second.rate ?? 0) }
      return first.sample.bytes > second.sample.bytes
    }.map { talkers[$0] }
  }
}

/// The indices 0 to `count` - 1, sorted by `precede`, which is whether the element `one` comes before the element
/// `other`.
func inOrder(_ count: Int, _ precede: (_ one: Int, _ other: Int) -> Bool) -> [Int] {
  var indices = Array(0..<count)
  var span = indices.mutableSpan
  putInOrder(&span, precede)
  return indices
}

private let airTenths = Figures.airTenthsOfByte

/// Converts the difference of two counter values into a rate per second.
private struct Rate {
  private let microseconds: UInt64

  init(_ span: TimeSpan) { microseconds = span.microseconds }

  /// The rate per second, or nil if a value is missing or the counter was reset.
  func of(_ later: UInt64?, _ earlier: UInt64?) -> UInt64? {
    guard let later, let earlier, later >= earlier, microseconds > 0 else { return nil }
    let (product, overflow) = (later - earlier).multipliedReportingOverflow(by: 1_000_000)
    return overflow ? .max : product / microseconds
  }
}

/// Limits a rate in milliseconds per second to 1000. If the daemon answers late, the computed rate can be slightly
/// higher.
private func share(_ rate: UInt64?) -> UInt64? { rate.map { min($0, 1000) } }

/// Whether two samples of a link slot belong to the same connection: its age and its counters have not decreased.
private func isSame(_ earlier: StatusSample.Link, _ later: StatusSample.Link) -> Bool {
  later.sinceSeconds >= earlier.sinceSeconds && later.received >= earlier.received && later.sent >= earlier.sent
}

private func loss(_ link: StatusSample.Link, _ former: StatusSample.Link?) -> UInt64? {
  guard let former, let sent = link.segmentsSent, let resent = link.segmentsResent, let before = former.segmentsSent,
    let resentBefore = former.segmentsResent, sent > before, resent >= resentBefore
  else { return nil }
  let all = sent - before, again = min(resent - resentBefore, all)
  let (product, overflow) = again.multipliedReportingOverflow(by: 1000)
  return overflow ? again / (all / 1000) : product / all
}

/// The sum of the rates of a bearer's links; nil if no link has a rate.
private func sum(_ links: [Figures.Link], of bearer: [UInt8], _ rate: (Figures.Link) -> UInt64?) -> UInt64? {
  var sum: UInt64?
  for link in links where link.sample.bearer == bearer {
    if let rate = rate(link) { sum = (sum ?? 0) &+ rate }
  }
  return sum
}
