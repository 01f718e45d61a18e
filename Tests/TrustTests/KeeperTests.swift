import CSystem
import Identity
import Primitives
import SecureTransport
import Testing

@testable import Trust

struct PinTests {
  let box = Box()

  @Test func aNameBelongsToTheKeyThatCameWithItFirst() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob")) == nil)
    #expect(keeper.refusal(of: id(1), named: name("bob")) == nil)
    #expect(keeper.refusal(of: id(2), named: name("bob")) == .keyChanged)
    #expect(keeper.alarm == TrustAlarm(name: name("bob"), pinned: id(1), offered: id(2), count: 1))
    #expect(keeper.isAlarmNew)
    #expect(keeper.refusal(of: id(2), named: name("bob")) == .keyChanged)
    #expect(keeper.alarm?.count == 2)
    #expect(keeper.refusal(of: id(2), named: name("carol")) == nil)
  }

  @Test func pinsOutliveARestart() throws {
    let first = try box.start()
    #expect(first.refusal(of: id(1), named: name("bob")) == nil)
    #expect(first.hasUnsaved)
    try first.saveIfChanged()
    #expect(!first.hasUnsaved)
    let second = try box.start()
    #expect(second.isPinned(id(1)))
    #expect(second.refusal(of: id(2), named: name("bob")) == .keyChanged)
  }

  @Test func anUnpinnedNameMayBeAnothersAndTheAlarmEnds() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob")) == nil)
    #expect(keeper.refusal(of: id(2), named: name("bob")) == .keyChanged)
    #expect(try keeper.unpin(name: name("bob"), node: nil) == 1)
    #expect(keeper.alarm == nil)
    #expect(keeper.refusal(of: id(2), named: name("bob")) == nil)
    #expect(try keeper.unpin(name: name("nobody"), node: nil) == 0)
  }

  @Test func aKeyThatTakesAnotherNameIsStillOnePin() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob")) == nil)
    #expect(keeper.refusal(of: id(1), named: name("robert")) == nil)
    #expect(keeper.pins.count == 1)
    #expect(keeper.refusal(of: id(2), named: name("robert")) == .keyChanged)
  }

  @Test func aFloodOfNamesTakesNoPinFromAnybody() throws {
    let keeper = try box.start()
    for number in 0..<UInt64(TrustLimits.pinsMax) {
      #expect(keeper.refusal(of: id(number + 10), named: name("n\(number)")) == nil)
    }
    #expect(keeper.refusal(of: id(1), named: name("late")) == .pinsFull)
    #expect(keeper.refusal(of: id(1), named: name("n0")) == .keyChanged)
    #expect(keeper.refusal(of: id(10), named: name("n0")) == nil)
    try keeper.saveIfChanged()
    #expect(try box.start().pins.count == TrustLimits.pinsMax)
  }

  @Test func theOperatorsPinHoldsUnderEveryPolicy() throws {
    for policy in [TrustPolicy.open, .firstUse, .authority] {
      box.policy = policy
      let keeper = try box.start()
      try keeper.pin(id(1), named: name("bob"))
      #expect(keeper.refusal(of: id(2), named: name("bob")) == .keyChanged)
      #expect(keeper.refusal(of: id(1), named: name("bob")) == nil)
    }
  }

  @Test func underOpenANameIsNobodysUntilTheOperatorSaysSo() throws {
    box.policy = .open
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob")) == nil)
    #expect(keeper.refusal(of: id(2), named: name("bob")) == nil)
    #expect(keeper.pins.isEmpty)
  }

  @Test func underAuthorityAKeyWithoutChainIsWelcomeOnlyIfTheOperatorPinnedIt() throws {
    box.policy = .authority
    let keeper = try box.start()
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == .noUsableKey)
    #expect(keeper.refusal(of: keeper.identity.chain, keeper.identity.id) == .unknownIssuer)
    try keeper.pin(id(1), named: [])
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == nil)
  }
}

struct DenyListTests {
  let box = Box()

  @Test func aRevokedKeyIsRefusedNowAndAfterARestart() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == nil)
    try keeper.revoke(id(1))
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == .denied)
    #expect(keeper.refusal(of: id(1), named: name("bob")) == .denied)
    // Without saving anything more: it was on disk before the call returned.
    #expect(try box.start().refusal(of: PeerChain(nil), id(1)) == .denied)
  }

  @Test func revokingEndsThePinAndForbidsANewOne() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("bob"))
    try keeper.revoke(id(1))
    #expect(!keeper.isPinned(id(1)))
    #expect(throws: TrustError.self) { try keeper.pin(id(1), named: name("bob")) }
    #expect(throws: TrustError.self) { try keeper.revoke(keeper.identity.id) }
  }

  @Test func theSerialRisesAndRevokingTwiceIsOnce() throws {
    let keeper = try box.start()
    try keeper.revoke(id(2))
    try keeper.revoke(id(1))
    try keeper.revoke(id(1))
    #expect(keeper.lists.map { $0.serial } == [2])
    #expect(keeper.lists[0].nodes == [id(1), id(2)])
    #expect(try box.start().lists.map { $0.bytes } == keeper.lists.map { $0.bytes })
  }

  @Test func whatCannotBeWrittenIsNotAcknowledgedNorApplied() throws {
    let keeper = try box.start()
    try keeper.revoke(id(1))
    _ = system("chmod 500 \(box.place.path); chattr +i \(box.place.path) 2> /dev/null")
    defer { _ = system("chattr -i \(box.place.path) 2> /dev/null; chmod 700 \(box.place.path)") }
    // Root writes through permission bits: a directory in place of the temporary file stops it as well.
    _ = system("mkdir \(box.place.path)/state.new 2> /dev/null")
    #expect(throws: TrustError.self) { try keeper.revoke(id(2)) }
    #expect(keeper.refusal(of: PeerChain(nil), id(2)) == nil)
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == .denied)
  }

  @Test func anOperatorsListCountsPersistsAndOnlyGrowsNewer() throws {
    let author = Box()
    let op = try author.start()
    try op.revoke(id(1))
    let older = op.lists[0].bytes
    try op.revoke(id(2))
    let newer = op.lists[0].bytes

    box.operators = [op.identity.id]
    let keeper = try box.start()
    #expect(keeper.takes(newer, from: op.identity.id))
    #expect(!keeper.takes(newer, from: op.identity.id))
    #expect(!keeper.takes(older, from: op.identity.id))
    #expect(keeper.isDenied(id(2)))
    let again = try box.start()
    #expect(again.isDenied(id(1)) && again.isDenied(id(2)))
    #expect(!again.takes(older, from: op.identity.id))
    // An operator that is followed no more counts no more.
    box.operators = []
    #expect(try !box.start().isDenied(id(1)))
  }

  @Test func aListOfSomebodyElseOrAlteredIsNotTaken() throws {
    let author = Box(), stranger = Box()
    let op = try author.start(), other = try stranger.start()
    try op.revoke(id(1))
    try other.revoke(id(2))
    box.operators = [op.identity.id]
    let keeper = try box.start()
    #expect(!keeper.takes(other.lists[0].bytes, from: other.identity.id))
    #expect(!keeper.takes(other.lists[0].bytes, from: op.identity.id))
    let good = op.lists[0].bytes
    for index in good.indices {
      var altered = good
      altered[index] ^= 1
      #expect(!keeper.takes(altered, from: op.identity.id), "byte \(index)")
    }
    #expect(keeper.lists.isEmpty)
    #expect(keeper.takes(good, from: op.identity.id))
  }

  @Test func beingRevokedOneselfIsKnown() throws {
    let author = Box()
    let op = try author.start()
    box.operators = [op.identity.id]
    let keeper = try box.start()
    try op.revoke(keeper.identity.id)
    #expect(!keeper.isSelfDenied)
    #expect(keeper.takes(op.lists[0].bytes, from: op.identity.id))
    #expect(keeper.isSelfDenied)
  }

  @Test func aNewKeySignsTheListAnew() throws {
    let keeper = try box.start()
    try keeper.revoke(id(1))
    _ = try NodeIdentity.create(StateDirectory(box.place.path))
    let after = try box.start()
    #expect(after.identity.id != keeper.identity.id)
    #expect(after.isDenied(id(1)))
    #expect(after.lists[0].issuer == after.identity.id)
  }
}

struct TimeTests {
  let box = Box()
  private let day: Int64 = 86_400

  @Test func aSynchronisedTimeIsKeptForTheNextBootWithoutAClock() throws {
    box.watch.seconds = TrustTime.releaseSeconds + 100 * day
    try box.start().keepTime()
    box.watch.seconds = 0
    box.watch.isSynchronised = false
    #expect(try box.start().time.seconds == TrustTime.releaseSeconds + 100 * day)
  }

  @Test func anUnsynchronisedClockIsNeverKept() throws {
    box.watch.seconds = TrustTime.releaseSeconds + 20 * 365 * day
    box.watch.isSynchronised = false
    let keeper = try box.start()
    try keeper.keepTime()
    #expect(keeper.time.seconds == TrustTime.releaseSeconds)
    #expect(try box.start().time.floor == TrustTime.releaseSeconds)
  }

  @Test func theFloorNeverFalls() throws {
    box.watch.seconds = TrustTime.releaseSeconds + 100 * day
    try box.start().keepTime()
    box.watch.seconds -= day
    let keeper = try box.start()
    try keeper.keepTime()
    #expect(keeper.time.seconds == TrustTime.releaseSeconds + 100 * day)
  }
}
