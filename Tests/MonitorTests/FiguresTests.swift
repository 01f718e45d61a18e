import Monitor
import Primitives
import Status
import Testing

/// A sample of the status with one link, whose counters have the given values.
func sample(
  received: UInt64 = 0, sent: UInt64 = 0, epoch: UInt64 = 1, since: UInt64 = 5, bearer: String = "bluetooth-le"
) -> StatusSample {
  var sample = StatusSample()
  sample.name = Array("box".utf8)
  sample.id = Array("0123456789abcdef0123456789abcdef".utf8)
  sample.epoch = epoch
  var link = StatusSample.Link()
  link.slot = 3
  link.peer = Array("b0b0".utf8)
  link.name = Array("bob".utf8)
  link.bearer = Array(bearer.utf8)
  link.state = Array("up".utf8)
  link.sinceSeconds = since
  link.received = received
  link.sent = sent
  sample.links = [link]
  var radio = StatusSample.Radio()
  radio.name = link.bearer
  radio.state = Array("up".utf8)
  sample.radios = [radio]
  return sample
}

private func figures(_ later: StatusSample, _ earlier: StatusSample?, milliseconds: UInt64 = 2000) -> Figures {
  Figures(later, since: earlier, span: .milliseconds(milliseconds))
}

@Test func `a rate is the difference of two samples per second`() {
  let link = figures(sample(received: 5000, sent: 900), sample(received: 1000, sent: 900)).links[0]
  #expect(link.received == 2000 && link.sent == 0)
}

@Test func `the first sample has no rates`() {
  let first = figures(sample(received: 5000), nil)
  #expect(first.links[0].received == nil && first.bytesForwarded == nil && first.radios[0].airPermille == nil)
}

@Test func `samples from before and after a restart of the daemon yield no rates`() {
  let fresh = figures(sample(received: 5000, epoch: 3), sample(received: 1000))
  #expect(fresh.links[0].received == nil && fresh.framesForwarded == nil)
}

@Test func `a slot with a new link yields no rates`() {
  #expect(figures(sample(received: 5000, since: 0), sample(received: 1000, since: 60)).links[0].received == nil)
  #expect(figures(sample(received: 500), sample(received: 1000)).links[0].received == nil)
}

@Test func `two samples of the same instant yield no rates`() {
  #expect(figures(sample(received: 5000), sample(), milliseconds: 0).links[0].received == nil)
}

@Test func `impossible counters do not trap`() {
  var later = sample(received: .max, sent: .max)
  later.links[0].segmentsSent = .max
  later.links[0].segmentsResent = .max
  var earlier = sample()
  earlier.links[0].segmentsSent = 0
  earlier.links[0].segmentsResent = 0
  let all = figures(later, earlier, milliseconds: 1)
  #expect(all.links[0].received == UInt64.max && all.radios[0].airPermille != nil)
}

@Test func `loss is the share of retransmitted segments`() {
  var earlier = sample(bearer: "ethernet"), later = sample(bearer: "ethernet")
  (earlier.links[0].segmentsSent, earlier.links[0].segmentsResent) = (1000, 10)
  (later.links[0].segmentsSent, later.links[0].segmentsResent) = (1200, 15)
  #expect(figures(later, earlier).links[0].lossPermille == 25)
  later.links[0].segmentsSent = 1000
  #expect(figures(later, earlier).links[0].lossPermille == nil, "nothing was sent")
}

@Test func `the air time of LE is computed from its bytes`() {
  // 12,000 received and 8,000 sent bytes in 2 s are 10,000 bytes per second. Each byte takes 10.2 µs on the air.
  #expect(figures(sample(received: 12_000, sent: 8_000), sample()).radios[0].airPermille == 102)
  let other = figures(sample(received: 12_000, bearer: "ethernet"), sample(bearer: "ethernet")).radios[0]
  #expect(other.airPermille == nil && other.received == 6000)
}

@Test func `scanning is shown as a share of the time`() {
  var earlier = sample(), later = sample()
  (earlier.radios[0].scanningMilliseconds, later.radios[0].scanningMilliseconds) = (10_000, 10_500)
  (earlier.radios[0].diallingMilliseconds, later.radios[0].diallingMilliseconds) = (0, 9_000)
  let radio = figures(later, earlier).radios[0]
  #expect(radio.scanningPermille == 250 && radio.diallingPermille == 1000)
}

@Test func `the source that sends most is listed first`() {
  func talkers(_ a: UInt64, _ b: UInt64, _ c: UInt64) -> StatusSample {
    var all = sample()
    for (id, bytes) in [("a", a), ("b", b), ("c", c)] {
      var talker = StatusSample.Talker()
      talker.id = Array(id.utf8)
      talker.bytes = bytes
      all.talkers.append(talker)
    }
    return all
  }
  let sorted = figures(talkers(1000, 5000, 100), talkers(900, 1000, 100)).talkers
  #expect(sorted.map { String(decoding: $0.sample.id, as: UTF8.self) } == ["b", "a", "c"])
  #expect(sorted.map { $0.rate } == [2000, 50, 0])
}
