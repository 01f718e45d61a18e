import Primitives
import Testing

@testable import BearerBluetooth

/// A radio that follows a plan like the bearer: this radio passes events to the plan and carries out the plan's
/// commands.
private struct Radio {
  var plan: RadioPlan
  var now = Instant.zero

  init(
    linksMax: Int = 3, isExtended: Bool = false, mayAdvertise: Bool = true, mayScan: Bool = true,
    relays: Bool = true, seed: UInt64 = 1
  ) {
    plan = RadioPlan(linksMax: linksMax, mayAdvertise: mayAdvertise, mayScan: mayScan, relays: relays, seed: seed)
    plan.handle(.adapterUp(isExtended: isExtended), now)
  }

  /// All commands that the plan gives now. Each command except a dial is reported as successful.
  mutating func drain() -> [RadioPlan.Command] {
    var commands: [RadioPlan.Command] = []
    while let command = plan.nextCommand(now) {
      commands.append(command)
      if command != .dial { plan.handle(.commandDone(isSuccess: true), now) }
    }
    return commands
  }

  mutating func handle(_ event: RadioPlan.Event) { plan.handle(event, now) }
}

@Test func `an adapter that comes up advertises first and then scans`() {
  var radio = Radio()
  #expect(radio.drain() == [.advertise, .scan])
  #expect(radio.plan.isAdvertising && radio.plan.isScanning)
}

@Test func `one command is outstanding at a time`() {
  var radio = Radio()
  #expect(radio.plan.nextCommand(radio.now) == .advertise)
  #expect(radio.plan.nextCommand(radio.now) == nil)
}

@Test func `a link ends advertising, so advertising is started again`() {
  var radio = Radio()
  _ = radio.drain()
  radio.handle(.linkUp)
  #expect(!radio.plan.isAdvertising)
  #expect(radio.drain() == [.advertise])
}

@Test func `a link that comes up while advertising starts causes another start`() {
  var radio = Radio(mayScan: false)
  #expect(radio.plan.nextCommand(radio.now) == .advertise)
  radio.handle(.linkUp)
  radio.handle(.commandDone(isSuccess: true))
  #expect(radio.drain() == [.advertise])
  #expect(radio.plan.isAdvertising)
}

@Test func `with all link slots taken, advertising stops and no scan starts`() {
  var radio = Radio(linksMax: 1)
  _ = radio.drain()
  radio.handle(.linkUp)
  #expect(radio.drain() == [.stopAdvertising])
  radio.handle(.discovering(false, isInquiry: false))
  radio.now = radio.now + .seconds(60)
  #expect(radio.drain() == [])
  radio.handle(.linkDown(isEnded: true))
  #expect(radio.drain() == [.advertise, .scan])
}

@Test func `a legacy controller stops advertising and scanning for a dial and resumes afterwards`() {
  var radio = Radio()
  _ = radio.drain()
  radio.handle(.dialsWaiting(true))
  #expect(radio.drain() == [.stopAdvertising, .stopScanning, .dial])
  radio.handle(.dialsWaiting(false))
  #expect(radio.drain() == [])
  radio.handle(.dialEnded(isSuccess: true))
  #expect(radio.drain() == [.advertise, .scan])
}

@Test func `an extended controller keeps advertising while it dials`() {
  var radio = Radio(isExtended: true)
  _ = radio.drain()
  radio.handle(.dialsWaiting(true))
  #expect(radio.drain() == [.stopScanning, .dial])
  #expect(radio.plan.isAdvertising)
}

@Test func `dials run one at a time`() {
  var radio = Radio(isExtended: true)
  _ = radio.drain()
  radio.handle(.dialsWaiting(true))
  #expect(radio.drain() == [.stopScanning, .dial])
  #expect(radio.plan.nextCommand(radio.now) == nil)
  radio.handle(.dialEnded(isSuccess: true))
  #expect(radio.drain() == [.dial])
}

@Test func `after a failed dial the radio advertises and scans before the next dial`() {
  var radio = Radio()
  _ = radio.drain()
  radio.handle(.dialsWaiting(true))
  #expect(radio.drain() == [.stopAdvertising, .stopScanning, .dial])
  radio.handle(.dialEnded(isSuccess: false))
  #expect(radio.drain() == [.advertise, .scan])
  #expect(radio.plan.deadline == radio.now + RadioPlan.dialRest)
  radio.now = radio.plan.deadline
  #expect(radio.drain() == [.stopAdvertising, .stopScanning, .dial])
}

@Test func `a controller that advertises while dialling scans only after two failed dials in a row`() {
  var radio = Radio(isExtended: true)
  _ = radio.drain()
  radio.handle(.dialsWaiting(true))
  for isFailedTwice in [false, true] {
    #expect(radio.drain().last == .dial)
    radio.handle(.dialEnded(isSuccess: true))
    #expect(radio.drain() == [.dial])
    radio.handle(.dialEnded(isSuccess: false))
    #expect(radio.drain() == [.dial])
    radio.handle(.dialEnded(isSuccess: !isFailedTwice))
  }
  #expect(radio.drain() == [.scan])
  #expect(radio.plan.deadline == radio.now + RadioPlan.dialRest)
}

@Test(arguments: [
  (true, [2_000, 4_000, 5_000, 5_000, 5_000, 5_000]), (false, [2_000, 4_000, 8_000, 16_000, 20_000, 20_000]),
])
func `the pause after a scan that found no peer grows each time`(_ relays: Bool, _ expected: [UInt64]) {
  var radio = Radio(mayAdvertise: false, relays: relays)
  var rests: [UInt64] = []
  for _ in 0..<6 {
    #expect(radio.drain() == [.scan])
    radio.handle(.discovering(false, isInquiry: false))
    rests.append((radio.plan.deadline - radio.now).milliseconds)
    radio.now = radio.plan.deadline
  }
  #expect(rests == expected)
}

@Test func `a new peer shortens the pause between scans, and a lost link ends it`() {
  var radio = Radio(mayAdvertise: false)
  for _ in 0..<3 {
    _ = radio.drain()
    radio.handle(.discovering(false, isInquiry: false))
    radio.now = radio.plan.deadline
  }
  _ = radio.drain()
  radio.handle(.foundNewcomer)
  radio.handle(.discovering(false, isInquiry: false))
  #expect(radio.plan.deadline - radio.now == RadioPlan.restMin)
  radio.handle(.linkUp)
  radio.handle(.linkDown(isEnded: true))
  #expect(radio.drain() == [])
  radio.handle(.linkUp)
  radio.handle(.linkDown(isEnded: false))
  #expect(radio.drain() == [.scan])
}

@Test func `refused commands are tried again later`() {
  var radio = Radio()
  #expect(radio.plan.nextCommand(radio.now) == .advertise)
  radio.handle(.commandDone(isSuccess: false))
  #expect(radio.plan.nextCommand(radio.now) == .scan)
  radio.handle(.commandDone(isSuccess: false))
  #expect(radio.plan.nextCommand(radio.now) == nil)
  #expect(radio.plan.deadline == radio.now + RadioPlan.advertiseRetry)
  radio.now = radio.plan.deadline
  #expect(radio.drain() == [.advertise])
}

@Test func `a scan interrupted by a dial continues at once`() {
  var radio = Radio(mayAdvertise: false)
  _ = radio.drain()
  radio.handle(.dialsWaiting(true))
  #expect(radio.plan.nextCommand(radio.now) == .stopScanning)
  radio.handle(.discovering(false, isInquiry: false))
  radio.handle(.commandDone(isSuccess: true))
  #expect(radio.drain() == [.dial])
  radio.handle(.dialsWaiting(false))
  radio.handle(.dialEnded(isSuccess: true))
  #expect(radio.drain() == [.scan])
}

@Test func `no command is sent without an adapter`() {
  var radio = Radio()
  _ = radio.drain()
  radio.handle(.linkUp)
  radio.handle(.adapterDown)
  radio.handle(.dialsWaiting(true))
  #expect(radio.drain() == [])
  #expect(radio.plan.deadline == .never)
  #expect(radio.plan.links == 0)
  radio.handle(.adapterUp(isExtended: false))
  #expect(radio.drain() == [.dial])
}

@Test func `advertising and scanning can each be disabled`() {
  var listener = Radio(mayScan: false)
  #expect(listener.drain() == [.advertise])
  var dialler = Radio(mayAdvertise: false)
  #expect(dialler.drain() == [.scan])
}

@Test func `an advertising set that another program removed is added again`() {
  var radio = Radio(mayScan: false)
  _ = radio.drain()
  radio.handle(.advertisingRemoved)
  #expect(radio.drain() == [.advertise])
}

@Test func `under Wi-Fi traffic a scan stops, and the next one is short and starts after twenty seconds`() {
  var radio = Radio()
  _ = radio.drain()
  radio.handle(.airShared(true))
  #expect(radio.drain() == [.stopScanning] && radio.plan.isAdvertising)
  #expect(radio.plan.deadline == radio.now + RadioPlan.sharedRest)
  radio.now = radio.now + RadioPlan.sharedRest
  #expect(radio.drain() == [.scan])
  #expect(radio.plan.deadline == radio.now + RadioPlan.sharedScan)
  radio.now = radio.now + RadioPlan.sharedScan
  #expect(radio.drain() == [.stopScanning])
  #expect(radio.plan.deadline == radio.now + RadioPlan.sharedRest)
}

@Test func `under Wi-Fi traffic a dial waits twenty seconds, and so does the next one`() {
  var radio = Radio(mayScan: false)
  _ = radio.drain()
  radio.handle(.airShared(true))
  radio.handle(.dialsWaiting(true))
  #expect(radio.drain() == [])
  radio.now = radio.now + RadioPlan.sharedRest
  #expect(radio.drain() == [.stopAdvertising, .dial])
  radio.handle(.dialEnded(isSuccess: true))
  #expect(radio.drain() == [.advertise])
  #expect(radio.plan.deadline == radio.now + RadioPlan.sharedRest)
}

@Test func `when Wi-Fi is idle again, dials continue at once and scans after a second`() {
  var radio = Radio(isExtended: true)
  _ = radio.drain()
  radio.handle(.airShared(true))
  #expect(radio.drain() == [.stopScanning])
  radio.handle(.dialsWaiting(true))
  radio.handle(.airShared(false))
  #expect(radio.drain() == [.dial])
  radio.handle(.dialsWaiting(false))
  radio.handle(.dialEnded(isSuccess: true))
  radio.now = radio.now + RadioPlan.restMin
  #expect(radio.drain() == [.scan])
}

@Test func `an adapter that comes up during Wi-Fi traffic scans briefly`() {
  var radio = Radio()
  radio.handle(.airShared(true))
  radio.handle(.adapterDown)
  radio.handle(.adapterUp(isExtended: true))
  #expect(radio.drain() == [.advertise, .scan])
  #expect(radio.plan.deadline == radio.now + RadioPlan.sharedScan)
}

/// A radio that has completed its first scan and is allowed to start inquiries.
private func inquirer(seed: UInt64 = 1, mayScan: Bool = true) -> Radio {
  var radio = Radio(mayScan: mayScan, seed: seed)
  radio.handle(.mayInquire(true))
  _ = radio.drain()
  return radio
}

@Test func `an inquiry replaces the second scan and lasts 5120 milliseconds`() {
  var radio = inquirer()
  #expect(radio.plan.isScanning && !radio.plan.isInquiring)
  radio.now = radio.now + .milliseconds(10_240)
  radio.handle(.discovering(false, isInquiry: false))
  #expect(radio.drain() == [.inquire])
  #expect(radio.plan.isInquiring && radio.plan.deadline == radio.now + .milliseconds(5_120))
  radio.now = radio.plan.deadline
  #expect(radio.drain() == [.stopInquiring, .scan])
}

@Test func `without LE an inquiry begins at once`() {
  var radio = Radio(mayAdvertise: false, mayScan: false)
  radio.handle(.mayInquire(true))
  #expect(radio.drain() == [.inquire])
}

@Test func `a radio without permission to inquire sends no inquiry`() {
  var radio = Radio(mayAdvertise: false, mayScan: false)
  #expect(radio.drain() == [] && radio.plan.deadline == .never)
}

@Test func `an inquiry ends under Bluetooth traffic, and none begins under Wi-Fi traffic`() {
  var radio = inquirer(mayScan: false)
  #expect(radio.plan.isInquiring)
  radio.handle(.mayInquire(false))
  #expect(radio.drain() == [.stopInquiring])
  radio.handle(.mayInquire(true))
  radio.handle(.airShared(true))
  radio.now = radio.now + .seconds(300)
  #expect(radio.drain() == [])
  radio.handle(.airShared(false))
  #expect(radio.drain() == [.inquire])
}

@Test func `a dial ends an inquiry`() {
  var radio = inquirer(mayScan: false)
  radio.handle(.dialsWaiting(true))
  #expect(radio.drain() == [.stopAdvertising, .stopInquiring, .dial])
}

/// The pauses after each of `count` inquiries, in seconds, rounded down.
private func pauses(_ count: Int, seed: UInt64, finding: Bool = false) -> [UInt64] {
  var radio = inquirer(seed: seed, mayScan: false)
  return (0..<count).map { _ in
    if finding { radio.handle(.foundNewcomer) }
    radio.handle(.discovering(false, isInquiry: true))
    let ended = radio.now
    radio.now = radio.plan.deadline
    _ = radio.drain()
    return (radio.now - ended).milliseconds / 1000
  }
}

@Test func `pauses between unsuccessful inquiries double and differ by node`() {
  for (pause, least) in zip(pauses(6, seed: 1), [10, 20, 40, 80, 120, 120] as [UInt64]) {
    #expect((least..<(2 * least)).contains(pause))
  }
  #expect(pauses(6, seed: 1) != pauses(6, seed: 2))
  #expect(pauses(3, seed: 1, finding: true).allSatisfy { (5..<10).contains($0) })
}
