import Primitives
import Testing

@testable import Discovery

private func at(_ seconds: UInt64) -> Instant { Instant(nanoseconds: 0) + .seconds(1000 + seconds) }

/// A name whose alternatives have all lost a conflict at `at(0)`.
private func exhausted(_ kind: ClaimedName.Kind = .service) -> ClaimedName {
  var name = ClaimedName("box", kind)
  while name.lost(now: at(0)) {}
  return name
}

struct ClaimedNameTests {
  @Test func `after a conflict the next number is claimed at once`() {
    var name = ClaimedName("box", .service)
    #expect(name.current == "box")
    #expect(name.lost(now: at(0)) && name.current == "box #2")
    #expect(name.lost(now: at(0)) && name.current == "box #3")
    var host = ClaimedName("box", .host)
    #expect(host.lost(now: at(0)) && host.current == "box-2")
    #expect(!name.isContested && name.deadline == .never)
  }

  @Test func `a rival that claims every name causes a pause, not a permanent failure`() {
    var name = exhausted()
    #expect(name.current == "box #9" && name.isResting && name.isContested)
    #expect(name.deadline == at(5))
    #expect(name.due(now: at(4), random: 7) == .nothing)
    #expect(name.due(now: at(5), random: 7) == .claim)
    #expect(name.current == "box #1007" && !name.isResting && name.deadline == .never)
  }

  @Test func `after a pause the same number of names is tried as before`() {
    var name = exhausted()
    _ = name.due(now: at(5), random: 7)
    var tried = 1
    while name.lost(now: at(6)) { tried += 1 }
    #expect(tried == 1 + ClaimedName.alternativesMax)
    #expect(name.current == "box #1015")
  }

  @Test func `a name is claimed again less than a minute after each conflict`() {
    var name = exhausted()
    var now = at(0)
    var pauses: [UInt64] = []
    for _ in 0..<8 {
      pauses.append((name.deadline - now).milliseconds / 1000)
      now = name.deadline
      #expect(name.due(now: now, random: 0) == .claim)
      while name.lost(now: now) {}
    }
    #expect(pauses == [5, 10, 20, 40, 40, 40, 40, 40])
  }

  @Test func `a recovered name is reported once, after it has been stable`() {
    var name = exhausted()
    _ = name.due(now: at(5), random: 0)
    name.held(now: at(6))
    #expect(name.deadline == at(11))
    #expect(name.due(now: at(10), random: 0) == .nothing && name.isContested)
    #expect(name.due(now: at(11), random: 0) == .settled && !name.isContested)
    #expect(name.deadline == .never && name.due(now: at(12), random: 0) == .nothing)
  }

  @Test func `a rival that releases a name for seconds does not shorten the pause`() {
    var name = exhausted()
    _ = name.due(now: at(5), random: 0)
    name.held(now: at(6))
    while name.lost(now: at(20)) {}
    #expect(name.deadline == at(30))
  }

  @Test func `a name held for a minute has no rival`() {
    var name = exhausted()
    _ = name.due(now: at(5), random: 0)
    name.held(now: at(6))
    let hasAnother = name.lost(now: at(66))
    #expect(hasAnother)
    while name.lost(now: at(66)) {}
    #expect(name.deadline == at(71))
  }

  @Test func `a claim that fails for another reason is repeated with the same name`() {
    var name = ClaimedName("box", .service)
    name.failed(now: at(0))
    #expect(name.isResting && name.deadline == at(5))
    #expect(name.due(now: at(5), random: 7) == .claim && name.current == "box")
  }

  @Test func `late conflicts and failures do not lengthen a pause`() {
    var name = exhausted()
    let hasAnother = name.lost(now: at(1))
    #expect(!hasAnother)
    name.failed(now: at(1))
    name.held(now: at(1))
    name.claimedAgain(now: at(1))
    #expect(name.deadline == at(5) && name.isResting)
  }

  @Test func `a name with a number fits into a label and still yields the node's hint`() {
    let long = String(repeating: "é", count: 31)
    var name = ClaimedName(long, .service)
    _ = name.lost(now: at(0))
    #expect(name.current.utf8.count <= DiscoverySettings.nameBytesMax && name.current.hasSuffix("é #2"))
    let id = "00112233445566778899aabbccddeeff"
    var own = ClaimedName(id, .service)
    while own.lost(now: at(0)) {}
    _ = own.due(now: at(5), random: .max)
    #expect(NodeHint.ofInstanceName(Array(own.current.utf8)) == 0x0011_2233_4455_6677)
  }

  @Test func `a report states what happened and what to do, without Avahi's error number`() {
    for kind in [ClaimedName.Kind.service, .host] {
      let text = NameReport.taken(kind)
      #expect(text.contains("another machine on the network claims every") && text.contains("Disconnect that machine"))
    }
  }
}
