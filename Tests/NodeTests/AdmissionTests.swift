import Node
import Primitives
import Testing

struct AdmissionTests {
  @Test func oneSourceHasFourAtOnceAndGetsThemBack() {
    var admission = Admission()
    for _ in 0..<4 { #expect(admission.arrive(1, random: 0) == nil) }
    #expect(admission.arrive(1, random: 0) == .sourceFull)
    #expect(admission.arrive(2, random: 0) == nil)
    // A handshake counts like a pending stream.
    #expect(admission.begin(1) == true)
    #expect(admission.arrive(1, random: 0) == .sourceFull)
    admission.leave(1, hadHandshake: true)
    #expect(admission.arrive(1, random: 0) == nil)
    #expect(admission.refusals[Int(Admission.Refusal.sourceFull.rawValue)] == 2)
  }

  @Test func strangersHave24HandshakesAndTheKnown32() {
    var admission = Admission()
    for source in 0..<40 { #expect(admission.arrive(UInt64(source), random: .max) == nil) }
    let strangers = (0..<40).count { admission.begin(UInt64($0)) }
    #expect(strangers == 24)
    for source in 100..<110 {
      admission.met(UInt64(source))
      #expect(admission.arrive(UInt64(source), random: .max) == nil)
    }
    let known = (100..<110).count { admission.begin(UInt64($0)) }
    #expect(known == 8)
    #expect(admission.handshakes == Admission.handshakesMax)
    admission.leave(0, hadHandshake: true)
    // In a full table a freed slot goes to a known source, not to an unknown one.
    #expect(admission.begin(30) == false)
    #expect(admission.begin(109) == true)
  }

  @Test func aFloodFillsNoMoreThanItsShareAndTheKnownStillComeIn() {
    var admission = Admission()
    var random = SeededRandom(seed: 1)
    for source in 0..<10_000 { _ = admission.arrive(UInt64(source), random: random.next()) }
    #expect(admission.pendingStreams <= Admission.pendingStreamsMax - Admission.reserved)
    admission.met(77_777)
    #expect(admission.arrive(77_777, random: 0) == nil)
  }

  @Test func belowHalfFullNobodyIsDroppedAndAboveMoreAndMore() {
    var admission = Admission()
    for source in 0...Admission.dropFrom { #expect(admission.arrive(UInt64(source), random: 0) == nil) }
    #expect(admission.arrive(1000, random: 0) == .dropped)
    #expect(admission.arrive(1000, random: 999) == nil)
    var dropped: [Int] = []
    for fill in [150, 200, 240] {
      while admission.pendingStreams < fill {
        _ = admission.arrive(UInt64(10_000 + admission.pendingStreams), random: 999)
      }
      dropped.append(
        (0..<1000).count { value in
          var copy = admission
          return copy.arrive(99_999, random: UInt64(value)) == .dropped
        })
    }
    #expect(dropped == [171, 562, 875])
  }

  @Test func whoLeavesIsForgotten() {
    var admission = Admission()
    for source in 0..<100 { #expect(admission.arrive(UInt64(source), random: .max) == nil) }
    for source in 0..<100 { admission.leave(UInt64(source), hadHandshake: false) }
    #expect(admission.pendingStreams == 0 && admission.handshakes == 0)
    for source in 0..<100 { #expect(admission.arrive(UInt64(source), random: 0) == nil) }
  }

  @Test func onlyTheLatestKnownSourcesAreRemembered() {
    var admission = Admission()
    for source in 0..<100 { admission.met(UInt64(source)) }
    for source in 200..<(200 + Admission.pendingStreamsMax - Admission.reserved) {
      _ = admission.arrive(UInt64(source), random: 999)
    }
    #expect(admission.arrive(0, random: 999) == .full)
    #expect(admission.arrive(99, random: 999) == nil)
  }

  @Test func theBeginningOfTLSIsToldByItsFirstSixBytes() {
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
