import Primitives
import TestSupport
import Testing

@testable import Node

/// A dialler that has found relays (`boxes`) and `leaves` over Bluetooth. Each number is the handle of a candidate and
/// also its hint, the upper half of its node id.
private func hearing(_ local: UInt64 = 50, relays: Bool, boxes: [UInt64] = [], leaves: [UInt64] = []) -> Dialler {
  let dialler = Dialler(local: local, relays: relays)
  for box in boxes { dialler.hear(box, relays: true) }
  for leaf in leaves { dialler.hear(leaf, relays: false) }
  return dialler
}

extension Dialler {
  fileprivate func hear(_ hint: UInt64, relays: Bool) {
    _ = find(UInt32(hint), hint: hint, .bluetoothLE, relays: relays)
  }

  /// The handles of all candidates that are dialled within `span`. Time passes from deadline to deadline.
  fileprivate func dials(within span: TimeSpan) -> Set<UInt32> {
    let end = now + span
    var all = Set(dials())
    while connector.deadline <= end {
      now = max(now, connector.deadline)
      for handle in dials() { all.insert(handle) }
    }
    now = end
    return all
  }
}

@Test func `a leaf dials one relay at once and no other node`() {
  let dialler = hearing(relays: false, boxes: [10, 20, 30], leaves: [40, 60])
  #expect(dialler.dials().count == 1)
}

@Test func `a leaf dials another relay to which it has no route`() {
  let dialler = hearing(relays: false, boxes: [10, 20])
  let first = dialler.dials()
  dialler.linked = Set(first.map(UInt64.init))
  dialler.connector.linkOpened(0, first.first, peer: NodeID(high: UInt64(first.first ?? 0), low: 0), now: dialler.now)
  dialler.connector.standingChanged()
  #expect(dialler.dials(within: .milliseconds(1_900)) == [])
  #expect(dialler.dials(within: .milliseconds(200)).count == 1)
}

@Test func `a leaf does not dial another relay to which it has a route`() {
  let dialler = hearing(relays: false, boxes: [10, 20])
  let first = Set(dialler.dials())
  dialler.reached = [10, 20]
  #expect(dialler.dials(within: .seconds(60)).subtracting(first) == [])
}

@Test func `a leaf whose relay could not be reached twice dials the next one`() {
  let dialler = hearing(relays: false, boxes: [10, 20])
  let first = dialler.dials().first ?? 0
  dialler.reached = [10, 20]
  for _ in 0..<2 {
    dialler.connector.dialFailed(first, now: dialler.now)
    dialler.now = dialler.now + .seconds(1)
    _ = dialler.dials()
  }
  #expect(dialler.connector.candidates.contains { $0.handle != first && $0.phase == .dialling })
}

@Test func `a leaf dials a leaf only after thirty seconds without a route`() {
  let dialler = hearing(relays: false, boxes: [10], leaves: [60, 70])
  #expect(dialler.dials() == [10])
  dialler.reached = [60]
  #expect(dialler.dials(within: .milliseconds(29_900)) == [])
  #expect(dialler.dials(within: .seconds(1)) == [70])
}

@Test func `leaves without a relay dial each other after ten seconds, the higher one later`() {
  let dialler = hearing(50, relays: false, leaves: [40, 60])
  #expect(dialler.dials(within: .milliseconds(9_900)) == [])
  #expect(dialler.dials(within: .milliseconds(200)) == [60])
  #expect(dialler.dials(within: .seconds(2)) == [40])
}

@Test func `a leaf that finds a relay late does not dial leaves`() {
  let dialler = hearing(relays: false, leaves: [60])
  #expect(dialler.dials(within: .seconds(2)) == [])
  dialler.hear(10, relays: true)
  #expect(dialler.dials() == [10])
  #expect(dialler.dials(within: .seconds(10)) == [])
}

@Test func `a relay dials a leaf that does not dial it and to which it has no route`() {
  let dialler = hearing(relays: true, leaves: [60, 70])
  dialler.reached = [70]
  #expect(dialler.dials(within: .milliseconds(1_900)) == [])
  #expect(dialler.dials(within: .seconds(20)) == [60])
  dialler.reached = []
  #expect(dialler.dials(within: .seconds(12)) == [70])
}

@Test func `a parked neighbour is dialled when it is due`() {
  let dialler = hearing(relays: true, leaves: [60])
  dialler.standings = [60: .parked]
  #expect(dialler.dials(within: .seconds(60)) == [])
  dialler.standings = [60: .called(.news)]
  #expect(dialler.dials(within: .milliseconds(10)) == [60])
}

@Test func `a parked neighbour with waiting frames is dialled before one with news only`() {
  let dialler = hearing(relays: true, leaves: [60, 70])
  dialler.standings = [60: .called(.news), 70: .called(.frames)]
  dialler.connector.bluetoothSlots = 1
  #expect(dialler.dials() == [70])
}

@Test func `a parked neighbour that gets a reply is dialled before one with waiting frames only`() {
  let dialler = hearing(relays: true, leaves: [60, 70])
  dialler.standings = [60: .called(.frames), 70: .called(.answers)]
  dialler.connector.bluetoothSlots = 1
  #expect(dialler.dials() == [70])
}

@Test func `a parked neighbour with a new communication partner is dialled before one that gets a reply`() {
  let dialler = hearing(relays: true, leaves: [60, 70])
  dialler.standings = [60: .called(.answers), 70: .called(.meeting)]
  dialler.connector.bluetoothSlots = 1
  #expect(dialler.dials() == [70])
}

@Test func `without a free connection no node is dialled over Bluetooth, and the longest due comes first`() {
  let dialler = hearing(relays: true, boxes: [60])
  dialler.connector.bluetoothSlots = 0
  _ = dialler.find(7, hint: 7, .ethernet)
  #expect(dialler.dials() == [])
  #expect(dialler.connector.dialsWithoutSlot == 1)
  dialler.now = dialler.now + .seconds(1)
  dialler.hear(70, relays: true)
  dialler.connector.bluetoothSlots = 1
  #expect(dialler.dials() == [60])
  #expect(dialler.connector.dialsWithoutSlot == 1)
}

@Test func `a leaf reserves its last connection for a relay`() {
  let dialler = hearing(relays: false, leaves: [60, 70])
  dialler.connector.bluetoothSlots = 2
  #expect(dialler.dials(within: .seconds(10)).count == 1)
  dialler.hear(10, relays: true)
  #expect(dialler.dials() == [10])
}

@Test func `at most two nodes are dialled over Bluetooth at once`() {
  let dialler = hearing(relays: true, boxes: [60, 70, 80])
  #expect(dialler.dials() == [60, 70])
  #expect(dialler.connector.deadline == .never)
  dialler.connector.dialFailed(60, now: dialler.now)
  #expect(dialler.dials() == [80])
}

/// A dialler that has found node 20 by an inquiry over Bluetooth classic.
private func inquirer(_ local: UInt64 = 10) -> Dialler {
  let dialler = Dialler(local: local)
  _ = dialler.find(1, hint: 20, .bluetoothClassic)
  return dialler
}

@Test(arguments: [(10, 2), (30, 4)] as [(UInt64, UInt64)])
func `a node found by an inquiry is dialled after some time without a route`(_ local: UInt64, _ seconds: UInt64) {
  let dialler = inquirer(local)
  #expect(dialler.dials() == [])
  dialler.now = dialler.now + .milliseconds(1000 * seconds - 1)
  #expect(dialler.dials() == [])
  dialler.now = dialler.now + .milliseconds(1)
  #expect(dialler.dials() == [1])
}

@Test func `a node with another route is not dialled over Bluetooth classic`() {
  let dialler = inquirer()
  dialler.reached = [20]
  #expect(dialler.dials(within: .seconds(300)) == [])
  dialler.reached = []
  #expect(dialler.dials(within: .seconds(12)) == [1])
}

@Test func `a link over Bluetooth classic is not wanted once LE links both nodes`() {
  let dialler = inquirer()
  _ = dialler.dials(within: .seconds(2))
  dialler.connector.linkOpened(0, 1, peer: NodeID(high: 20, low: 0), now: dialler.now)
  let hasLE: (UInt64, BearerKind) -> Connector.Standing = { _, _ in .linked }
  let hasClassicOnly: (UInt64, BearerKind) -> Connector.Standing = { $1 == .bluetoothClassic ? .linked : .none }
  _ = dialler.connector.choose(now: dialler.now, standing: hasClassicOnly)
  #expect(dialler.connector.domainChange(ofUnwanted: 20, .bluetoothClassic) == nil)
  dialler.connector.standingChanged()
  _ = dialler.connector.choose(now: dialler.now, standing: hasLE)
  #expect(dialler.connector.domainChange(ofUnwanted: 20, .bluetoothClassic) != nil)
}

@Test func `dials over Bluetooth classic run one at a time and use no LE connection`() {
  let dialler = inquirer()
  _ = dialler.find(2, hint: 30, .bluetoothClassic)
  #expect(dialler.dials() == [])
  dialler.now = dialler.now + .seconds(3)
  #expect(dialler.dials() == [1] && dialler.connector.dialsWithoutSlot == 0)
  dialler.connector.dialFailed(1, now: dialler.now)
  #expect(dialler.dials() == [2])
}
