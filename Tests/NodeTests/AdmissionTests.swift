import Primitives
import Testing

@testable import Node

private let now = Instant.zero + .seconds(100)
private func id(_ number: Int) -> NodeID { NodeID(high: UInt64(number), low: 7) }

struct AdmissionTests {
  @Test func `one source has four streams at once, and gets them back`() {
    var admission = Admission()
    for _ in 0..<4 { #expect(admission.arrive(1, random: 0, now: now) == nil) }
    #expect(admission.arrive(1, random: 0, now: now) == .sourceFull)
    #expect(admission.arrive(2, random: 0, now: now) == nil)
    // A stream that begins its handshake is still counted towards the limit of four for its source.
    #expect(admission.begin(1) == true)
    #expect(admission.arrive(1, random: 0, now: now) == .sourceFull)
    admission.leave(1, hadHandshake: true)
    #expect(admission.arrive(1, random: 0, now: now) == nil)
    #expect(admission.refusals[Int(Admission.Refusal.sourceFull.rawValue)] == 2)
  }

  @Test func `a source that has wasted sixteen handshakes waits before each further one`() {
    var admission = Admission()
    for _ in 0..<16 {
      #expect(admission.arrive(1, random: 0, now: now) == nil)
      #expect(admission.begin(1) == true)
      admission.leave(1, hadHandshake: true)
      admission.wasted(1, now: now)
    }
    #expect(admission.arrive(1, random: 0, now: now) == .wasteful)
    #expect(admission.refusals[Int(Admission.Refusal.wasteful.rawValue)] == 1)
    #expect(admission.arrive(2, random: 0, now: now) == nil)
    #expect(admission.arrive(1, random: 0, now: now + .seconds(1)) == nil)
    admission.wasted(1, now: now + .seconds(1))
    #expect(admission.arrive(1, random: 0, now: now + .milliseconds(1999)) == .wasteful)
    #expect(admission.arrive(1, random: 0, now: now + .seconds(2)) == nil)
  }

  @Test func `a handshake with an expensive chain counts as several, which delay further ones`() {
    var admission = Admission()
    // All three handshakes brought a chain with two P-521 signatures. Verifying the chain takes as long as 80 P-256
    // checks.
    for _ in 0..<3 {
      #expect(admission.arrive(1, random: 0, now: now) == nil)
      #expect(admission.begin(1) == true)
      admission.leave(1, hadHandshake: true)
      admission.wasted(1, checks: 80, now: now)
    }
    #expect(admission.arrive(1, random: 0, now: now + .milliseconds(2999)) == .wasteful)
    #expect(admission.arrive(1, random: 0, now: now + .seconds(3)) == nil)
    admission.wasted(1, checks: 80, now: now + .seconds(3))
    #expect(admission.arrive(1, random: 0, now: now + .milliseconds(8999)) == .wasteful)
    #expect(admission.arrive(2, random: 0, now: now) == nil)
    // A handshake whose chain has eight P-256 signatures is counted as a single wasted handshake.
    for _ in 0..<15 { admission.wasted(3, checks: 8, now: now) }
    #expect(admission.arrive(3, random: 0, now: now) == nil)
  }

  @Test func `a further address replaces the one that wasted the fewest`() {
    var buckets = SourceBuckets(TokenRate(interval: .seconds(1), burst: 2))
    for source in 1...64 as ClosedRange<UInt64> {
      for _ in 0..<(source == 40 ? 1 : 2) { #expect(buckets.take(source, now: now) == true) }
    }
    #expect((0..<3).map { _ in buckets.take(100, now: now) } == [true, true, false])
    #expect(buckets.next(40) <= now && buckets.next(39) == now + .seconds(1))
  }

  @Test func `strangers have 24 handshakes, known sources 28, and peers of the operator 32`() {
    var admission = Admission()
    func begin(_ sources: Range<UInt64>, _ standing: Standing) -> Int {
      for source in sources {
        admission.met(source, id(Int(source)), standing)
        #expect(admission.arrive(source, random: .max, now: now) == nil)
      }
      return sources.count { admission.begin($0) }
    }
    #expect(begin(0..<40, .stranger) == 24)
    #expect(begin(100..<110, .proven) == 4)
    #expect(begin(200..<210, .pinned) == 4)
    #expect(admission.handshakes == Admission.handshakesMax)
    // The slot that the stranger frees is not reserved, so another stranger gets it.
    admission.leave(0, hadHandshake: true)
    #expect(admission.begin(30) == true && admission.begin(109) == false)
    // The slot that the pinned peer frees stays reserved for peers that the operator pinned.
    admission.leave(200, hadHandshake: true)
    #expect(admission.begin(31) == false && admission.begin(109) == false && admission.begin(209) == true)
  }

  @Test func `known addresses beyond their reserve leave strangers their handshakes`() {
    var admission = Admission()
    for source in 0..<100 as Range<UInt64> {
      admission.met(source, id(Int(source)), .proven)
      #expect(admission.arrive(source, random: 999, now: now) == nil)
    }
    #expect((0..<100 as Range<UInt64>).count { admission.begin($0) } == 28)
    #expect(admission.arrive(1000, random: 999, now: now) == nil)
    #expect(admission.begin(1000) == false && admission.mayBegin(.stranger, after: .proven))
    admission.leave(0, hadHandshake: true)
    #expect(admission.begin(1000) == true)
  }

  @Test func `peers of the operator are evicted last and keep their class`() {
    var admission = Admission()
    admission.met(1, id(1), .pinned)
    admission.met(1, id(2), .proven)
    for source in 100..<300 as Range<UInt64> { admission.met(source, id(Int(source)), .proven) }
    #expect(admission.standing(of: 1) == .pinned && admission.standing(of: 299) == .proven)
    for source in 1000..<1100 as Range<UInt64> { admission.met(source, id(Int(source)), .pinned) }
    admission.met(2, id(2), .proven)
    #expect(admission.standing(of: 2) == .stranger && admission.standing(of: 1) == .stranger)
    #expect(admission.standing(of: 1099) == .pinned)
  }

  @Test func `a key with links from many addresses uses two of the remembered addresses`() {
    var admission = Admission()
    for source in 1...10 as ClosedRange<UInt64> { admission.met(source, id(Int(source)), .proven) }
    for source in 100..<200 as Range<UInt64> { admission.met(source, id(99), .proven) }
    #expect((1...10 as ClosedRange<UInt64>).allSatisfy { admission.standing(of: $0) == .proven })
    #expect((100..<200 as Range<UInt64>).filter { admission.standing(of: $0) == .proven } == [198, 199])
  }

  @Test func `an address has the class of its present peers`() {
    var admission = Admission()
    admission.met(1, id(1), .pinned)
    admission.met(1, id(2), .proven)
    #expect(admission.standing(of: 1) == .pinned)
    admission.met(1, id(1), .stranger)
    #expect(admission.standing(of: 1) == .proven)
  }

  @Test func `a flood fills at most its share, and known sources are still admitted`() {
    var admission = Admission()
    var random = SeededRandom(seed: 1)
    for source in 0..<10_000 { _ = admission.arrive(UInt64(source), random: random.next(), now: now) }
    #expect(admission.pendingStreams <= Admission.pendingStreamsMax - Admission.reserved)
    admission.met(77_777, id(77_777), .proven)
    #expect(admission.arrive(77_777, random: 0, now: now) == nil)
  }

  @Test func `new streams are dropped at random only above half of the limit`() {
    var admission = Admission()
    for source in 0...Admission.dropFrom { #expect(admission.arrive(UInt64(source), random: 0, now: now) == nil) }
    #expect(admission.arrive(1000, random: 0, now: now) == .dropped)
    #expect(admission.arrive(1000, random: 999, now: now) == nil)
    var dropped: [Int] = []
    for fill in [150, 200, 240] {
      while admission.pendingStreams < fill {
        _ = admission.arrive(UInt64(10_000 + admission.pendingStreams), random: 999, now: now)
      }
      dropped.append(
        (0..<1000).count { value in
          var copy = admission
          return copy.arrive(99_999, random: UInt64(value), now: now) == .dropped
        })
    }
    #expect(dropped == [171, 562, 875])
  }

  @Test func `a stream that leaves is no longer counted`() {
    var admission = Admission()
    for source in 0..<100 { #expect(admission.arrive(UInt64(source), random: .max, now: now) == nil) }
    for source in 0..<100 { admission.leave(UInt64(source), hadHandshake: false) }
    #expect(admission.pendingStreams == 0 && admission.handshakes == 0)
    for source in 0..<100 { #expect(admission.arrive(UInt64(source), random: 0, now: now) == nil) }
  }

  @Test func `only the latest known sources are remembered`() {
    var admission = Admission()
    for source in 0..<100 { admission.met(UInt64(source), id(source), .proven) }
    for source in 200..<(200 + Admission.pendingStreamsMax - Admission.reserved) {
      _ = admission.arrive(UInt64(source), random: 999, now: now)
    }
    #expect(admission.arrive(0, random: 999, now: now) == .full)
    #expect(admission.arrive(99, random: 999, now: now) == nil)
  }

  @Test func `a TLS ClientHello is recognised by its first six bytes`() {
    let hello: [UInt8] = [22, 3, 1, 0x02, 0x00, 1, 0, 1]
    for count in 0..<6 { #expect(Admission.isClientHello(Array(hello[..<count])) == nil) }
    #expect(Admission.isClientHello(hello) == true)
    #expect(Admission.isClientHello(Array("GET".utf8)) == false)
    for (index, value) in [(0, 21), (1, 2), (2, 5), (3, 0x41), (5, 2)] as [(Int, UInt8)] {
      var bad = hello
      bad[index] = value
      #expect(Admission.isClientHello(bad) == false)
    }
  }
}
