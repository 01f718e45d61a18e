import Primitives
import Terminal
import Testing
import Text

private let start = Instant.zero + .seconds(1000)

private func text(_ word: String) -> TextBuilder {
  var text = TextBuilder()
  text.add(word)
  return text
}

private func node(_ number: UInt64) -> NodeID { NodeID(high: 7, low: number) }

/// A class instead of a structure, because `#expect` cannot call a mutating method of a value.
private final class Notices {
  private var notices = PeerNotices()

  func admits(
    _ subject: PeerNotices.Subject, of number: UInt64, isVerified: Bool = false, now: Instant = start
  ) -> Bool {
    notices.admits(text("no"), subject, of: node(number), isVerified: isVerified, now: now)
  }

  func count(now: Instant = start, isLast: Bool = false) -> String? {
    notices.nextCount(now: now, isLast: isLast).map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  var nextDeadline: Instant { notices.nextDeadline }
}

/// The lines that are shown, and the counts of omitted lines. For `seconds` seconds, `perSecond` lines per second
/// arrive from `peers` peers in turn.
private func shown(perSecond: Int, seconds: Int, peers: UInt64, isVerified: Bool = false) -> [String] {
  var notices = PeerNotices(), lines: [String] = []
  var number: UInt64 = 0
  for second in 0..<UInt64(seconds) {
    for _ in 0..<perSecond {
      let now = start + .seconds(second)
      number += 1
      if notices.admits(text("no"), .declined, of: node(number % peers), isVerified: isVerified, now: now) {
        lines.append("no")
      }
      while let count = notices.nextCount(now: now) { lines.append(String(decoding: count.bytes, as: UTF8.self)) }
    }
  }
  return lines
}

@Suite struct PeerNoticesTests {
  @Test func `a single peer causes one line and then one count per minute`() {
    let lines = shown(perSecond: 1_000, seconds: 181, peers: 1)
    #expect(lines.count == 4 && lines[0] == "no")
    #expect(lines[1] == "no (60000 more lines like this were left out)")
  }

  @Test func `a thousand peers cause no more lines than a few peers`() {
    #expect(shown(perSecond: 1_000, seconds: 60, peers: 1_000).count <= 16 + 20 + 1)
    #expect(shown(perSecond: 100, seconds: 600, peers: 1_000).count <= 16 + 200 + 10)
  }

  @Test func `other peers cannot suppress a line about a verified peer`() {
    let notices = Notices()
    for number in 0..<1_000 as Range<UInt64> { _ = notices.admits(.declined, of: number) }
    #expect(notices.admits(.declined, of: 5_000, isVerified: true))
  }

  @Test func `each subject has its own number of lines per peer and minute`() {
    let notices = Notices()
    func shown(_ subject: PeerNotices.Subject) -> Int { (0..<20).count { _ in notices.admits(subject, of: 1) } }
    #expect(shown(.declined) == 1 && shown(.withdrawn) == 4 && shown(.member) == 8)
  }

  @Test func `all services of a crowded hall are shown at once, but not their endless changes`() {
    let notices = Notices()
    func shown(_ rounds: Int, at now: Instant) -> Int {
      var count = 0
      for _ in 0..<rounds {
        for number in 0..<200 as Range<UInt64> where notices.admits(.service, of: number, now: now) { count += 1 }
      }
      return count
    }
    #expect(shown(1, at: start) == 200)
    #expect(shown(100, at: start) == 824)
    #expect(shown(100, at: start + .seconds(1)) == 0)
  }

  @Test func `omitted lines are counted at the end, and no deadline remains`() {
    let notices = Notices()
    for number in 0..<100 as Range<UInt64> { _ = notices.admits(.declined, of: number) }
    #expect(notices.count() == nil)
    #expect(notices.nextDeadline == start + PeerNotices.countTime)
    #expect(notices.count(isLast: true) == "84 lines about other peers were left out")
    #expect(notices.count(isLast: true) == nil && notices.nextDeadline == .never)
  }

  @Test func `a peer causes a line again after a quiet minute`() {
    let notices = Notices()
    #expect(notices.admits(.declined, of: 1))
    #expect(notices.admits(.declined, of: 1, now: start + PeerNotices.countTime))
  }
}
