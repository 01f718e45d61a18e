import CSystem
import Identity
import Primitives
import SecureTransport
import Testing

@testable import Trust

struct PinTests {
  let box = Box()

  @Test func `a name belongs to the first key that connects with it`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
    let alarm = TrustAlarm(name: name("bob"), pinned: id(1), offered: id(2), offeredName: name("bob"), count: 1)
    #expect(keeper.alarms.all == [alarm])
    #expect(keeper.takeFreshAlarms().map { $0.alarm } == [alarm])
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
    #expect(keeper.alarms.all.map { $0.count } == [2])
    #expect(keeper.takeFreshAlarms().isEmpty)
    #expect(keeper.refusal(of: id(2), named: name("carol"), isProven: true) == nil)
  }

  @Test func `pins survive a restart`() throws {
    let first = try box.start()
    #expect(first.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    #expect(first.hasUnsaved)
    try first.saveIfChanged()
    #expect(!first.hasUnsaved)
    let second = try box.start()
    #expect(second.isPinned(id(1)))
    #expect(second.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
  }

  @Test func `an unpinned name may be used by another key, and the alarm ends`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
    #expect(try keeper.unpin(.none, name: name("bob")).map { $0.node } == [id(1)])
    #expect(keeper.alarms.all.isEmpty)
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == nil)
  }

  @Test func `a key that changes its name keeps a single pin`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    #expect(keeper.refusal(of: id(1), named: name("robert"), isProven: true) == nil)
    #expect(keeper.pins.count == 1)
    #expect(keeper.refusal(of: id(2), named: name("robert"), isProven: true) == .keyChanged)
  }

  @Test func `a flood of names evicts no pin`() throws {
    let keeper = try box.start()
    for number in 0..<UInt64(TrustLimits.pinsMax) {
      #expect(keeper.refusal(of: id(number + 10), named: name("n\(number)"), isProven: true) == nil)
    }
    #expect(keeper.refusal(of: id(1), named: name("late"), isProven: true) == nil, "nobody is locked out")
    #expect(!keeper.isPinned(id(1)) && keeper.unpinnedCount == 1)
    #expect(keeper.refusal(of: id(1), named: name("n0"), isProven: true) == .keyChanged)
    #expect(keeper.refusal(of: id(10), named: name("n0"), isProven: true) == nil)
    try keeper.saveIfChanged()
    #expect(try box.start().pins.count == TrustLimits.pinsMax)
  }

  @Test func `a pin of the operator applies under every policy`() throws {
    for policy in [TrustPolicy.open, .firstUse, .authority] {
      let box = Box()
      box.policy = policy
      let keeper = try box.start()
      try keeper.pin(id(1), named: name("bob"))
      #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
      #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    }
  }

  @Test func `under the policy open names are not pinned to keys`() throws {
    box.policy = .open
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == nil)
    #expect(keeper.pins.isEmpty)
  }

  @Test func `under the policy ca a key without a chain is accepted only if the operator pinned it`() throws {
    box.policy = .authority
    let keeper = try box.start()
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == .noUsableKey)
    #expect(keeper.refusal(of: keeper.identity.chain, keeper.identity.id) == .unknownIssuer)
    try keeper.pin(id(1), named: [])
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == nil)
  }
}

struct LiveProofTests {
  let box = Box()

  @Test func `an advertisement creates neither a pin nor an alarm`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: false) == nil)
    #expect(keeper.pins.isEmpty)
    // Bob has proved a new key, while an advertisement that his old key signed is still in flight.
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == nil)
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: false) == .keyChanged)
    #expect(keeper.alarms.all.isEmpty)
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == .keyChanged)
    #expect(keeper.alarms.all.count == 1)
  }

  @Test func `a pin of the operator keeps its name when the peer uses another`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("bob"))
    #expect(keeper.refusal(of: id(1), named: name("robert"), isProven: true) == nil)
    // The operator's name and the peer's own name are both pinned now.
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
    #expect(keeper.refusal(of: id(2), named: name("robert"), isProven: true) == .keyChanged)
    #expect(keeper.pins.map { $0.isByOperator } == [true, false])
  }

  @Test func `names that look alike count as one name`() throws {
    for alike in [
      "bob", "Bob", "BOB", "bob ", " bob", "b\u{200B}ob", "bo\u{202E}b", "b\u{43E}b", "b\u{3BF}b", "\u{412}ob", "b0b",
      "\u{FF42}\u{FF4F}\u{FF42}", "\u{1D41B}\u{1D428}\u{1D41B}", "bob\u{FEFF}", "bob\u{3000}",
    ] {
      for (pinned, offered) in [("bob", alike), (alike, "bob")] {
        let box = Box()
        let keeper = try box.start()
        try keeper.pin(id(1), named: name(pinned))
        #expect(keeper.refusal(of: id(2), named: name(offered), isProven: true) == .keyChanged, "\(alike)")
        #expect(keeper.alarms.all.first?.offeredName == name(offered))
      }
    }
  }

  @Test func `names that look different count as different names`() throws {
    let keeper = try box.start()
    let names = [
      "bob", "rob", "bobb", "b ob", "böb", "bób", "Жук", "жир", "日本", "box-1", "box-2", "\u{1F600}", "bob.", "3ob",
    ]
    for (index, text) in names.enumerated() {
      #expect(keeper.refusal(of: id(UInt64(index + 1)), named: name(text), isProven: true) == nil, "\(text)")
    }
  }

  @Test func `the skeleton of a name is the same for every spelling`() {
    for (a, b) in [
      ("Küche oben", "ku\u{308}che  OBEN"), ("paypal", "\u{440}\u{430}\u{443}\u{440}\u{430}l"), ("modern", "rnodem"),
      ("Ill", "lI1"), ("it's", "it\u{2019}s"), ("a-b", "a\u{2010}b"), ("\u{401}", "\u{415}\u{308}"), ("Ñ", "n\u{303}"),
    ] { #expect(nameSkeleton(name(a)) == nameSkeleton(name(b)), "\(a) \(b)") }
    for alike in ["aliϲe", "ａliⅽe", "ᴀʟɪᴄᴇ", "ⓐⓛⓘⓒⓔ", "𝐚𝐥𝐢𝐜𝐞", "𝖺𝗅𝗂𝖼𝖾", "alicҽ", "aⅼіⅽe", "ᎪᏞlᏟᎬ", "ａˡⁱᶜᵉ"] {
      #expect(nameSkeleton(name(alike)) == nameSkeleton(name("alice")), "\(alike)")
    }
    for (a, b) in [("ϳim", "jim"), ("քred", "fred"), ("ﬁona", "fiona"), ("ﬄ", "ffl"), ("ʜᴀɴs", "hans"), ("٠a", ".a")] {
      #expect(nameSkeleton(name(a)) == nameSkeleton(name(b)), "\(a)")
    }
    #expect(nameSkeleton(name("\u{200B} \u{2800}")).isEmpty)
    // A byte that is invalid in UTF-8 ends the skeleton, the form in which similar names are equal.
    #expect(nameSkeleton([0x62, 0xFF, 0x62]) == [0x62])
  }
}

struct AlarmTests {
  let box = Box()

  @Test func `every pin has its own alarms, which a flood of keys does not evict`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("bob"))
    try keeper.pin(id(2), named: name("carol"))
    #expect(keeper.refusal(of: id(3), named: name("carol"), isProven: true) == .keyChanged)
    for number in 100..<1100 as Range<UInt64> {
      #expect(keeper.refusal(of: id(number), named: name("bob"), isProven: true) == .keyChanged)
    }
    #expect(keeper.alarms.all.filter { $0.pinned == id(2) }.map { $0.offered } == [id(3)])
    #expect(keeper.alarms.all.filter { $0.pinned == id(1) }.map { $0.offered } == [100, 101, 102, 1099].map { id($0) })
    #expect(keeper.alarms.missedCount == 996)
  }

  /// An attacker lets its own names be pinned, and then proves other keys under these names.
  @Test func `alarms under other names do not hide an alarm`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    for number in 0..<40 as Range<UInt64> {
      #expect(keeper.refusal(of: id(100 + number), named: name("own\(number)"), isProven: true) == nil)
      for key in 0..<5 as Range<UInt64> {
        #expect(
          keeper.refusal(of: id(1000 + 10 * number + key), named: name("own\(number)"), isProven: true) == .keyChanged)
      }
    }
    let own = keeper.alarms.all.count
    #expect(own == 40 + TrustLimits.alarmsSharedMax)
    _ = keeper.takeFreshAlarms()
    for key in 2...9 as ClosedRange<UInt64> {
      #expect(keeper.refusal(of: id(key), named: name("bob"), proof: proof(from: 1, seconds: key)) == .keyChanged)
      #expect(keeper.alarms.all.filter { $0.pinned == id(1) }.map { $0.offered } == [id(key)], "the newest one")
    }
    let fresh = keeper.takeFreshAlarms()
    #expect(fresh.map { $0.alarm.offered } == [id(2)] && fresh[0].isFirst)
  }

  @Test func `alarms of pins of the operator are listed first`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("anna"), isProven: true) == nil)
    try keeper.pin(id(2), named: name("bob"))
    for name in [name("anna"), name("bob")] { _ = keeper.refusal(of: id(9), named: name, isProven: true) }
    #expect(keeper.alarms.all.map { $0.pinned } == [id(2), id(1)])
  }

  @Test func `an alarm of one pin is logged once in ten minutes`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("bob"))
    func logged(_ key: UInt64, _ seconds: UInt64) -> [Bool] {
      _ = keeper.refusal(of: id(key), named: name("bob"), proof: proof(from: 1, seconds: seconds))
      return keeper.takeFreshAlarms().map { $0.isFirst }
    }
    #expect(logged(2, 1000) == [true])
    for key in 3..<100 as Range<UInt64> { #expect(logged(key, 1599) == []) }
    #expect(logged(100, 1600) == [false])
  }

  @Test func `a key that uses one name after the other is logged once`() throws {
    let keeper = try box.start()
    var firsts = 0
    for number in 0..<50 as Range<UInt64> {
      _ = keeper.refusal(of: id(1), named: name("n\(number)"), proof: proof(from: 0, seconds: 1000 * number))
      _ = keeper.refusal(of: id(2), named: name("n\(number)"), proof: proof(from: 0, seconds: 1000 * number))
      firsts += keeper.takeFreshAlarms().count { $0.isFirst }
    }
    #expect(firsts == 1 && keeper.alarms.all.count == 1)
  }

  @Test func `accepting an alarm pins the name to the new key`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    #expect(keeper.refusal(of: id(2), named: name("b\u{43E}b"), isProven: true) == .keyChanged)
    #expect(try keeper.accept(id(2)).pinned == id(1))
    #expect(keeper.alarms.all.isEmpty)
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == nil)
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == .keyChanged)
    #expect(throws: TrustError.self) { try keeper.accept(id(9)) }
  }

  @Test func `keeping a pin ends the alarms of the other key`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("bob"))
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
    #expect(try keeper.keep(id(2)) == 1)
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
    #expect(keeper.alarms.all.isEmpty && keeper.isPinned(id(1)))
    #expect(keeper.refusal(of: id(3), named: name("bob"), isProven: true) == .keyChanged)
    #expect(keeper.alarms.all.map { $0.offered } == [id(3)])
    #expect(throws: TrustError.self) { try keeper.keep(id(2)) }
  }

  @Test func `dismissing ends an alarm until the next attempt`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("bob"))
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
    #expect(try keeper.dismiss(.none) == 1)
    #expect(keeper.alarms.all.isEmpty)
    #expect(throws: TrustError.self) { try keeper.dismiss(.none) }
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
    #expect(keeper.alarms.all.count == 1)
  }

  @Test func `refused strangers are listed by their ids`() throws {
    box.policy = .authority
    let keeper = try box.start()
    for _ in 0..<3 { _ = keeper.refusal(of: PeerChain(nil), id(1)) }
    try keeper.revoke(id(2))
    #expect(keeper.refusal(of: id(2), named: name("bob"), isProven: true) == .denied)
    #expect(keeper.strangers.all.map { $0.id } == [id(1), id(2)])
    #expect(keeper.strangers.all.map { $0.count } == [3, 1])
    #expect(keeper.strangers.all.map { $0.reason } == [.noUsableKey, .denied])
    for number in 100..<200 as Range<UInt64> { _ = keeper.refusal(of: PeerChain(nil), id(number)) }
    #expect(keeper.strangers.all.count == TrustLimits.strangersMax)
    try keeper.pin(id(199), named: [])
    #expect(!keeper.strangers.all.contains { $0.id == id(199) })
  }

  @Test func `one address with many keys does not evict other refused strangers`() throws {
    box.policy = .authority
    let keeper = try box.start()
    for number in 1...3 as ClosedRange<UInt64> { _ = keeper.refusal(of: PeerChain(nil), id(number), from: number) }
    for number in 100..<200 as Range<UInt64> { _ = keeper.refusal(of: PeerChain(nil), id(number), from: 9) }
    #expect(keeper.strangers.all.prefix(3).map { $0.id } == [id(1), id(2), id(3)])
    #expect(keeper.strangers.all.count == TrustLimits.strangersMax && keeper.strangers.all.last?.id == id(199))
  }
}

struct WishTests {
  let box = Box()

  @Test func `repeating a change of trust is an error`() throws {
    let keeper = try box.start()
    #expect(throws: TrustError.self) { try keeper.unpin(.none, name: name("nobody")) }
    #expect(throws: TrustError.self) { try keeper.unpin(id(1), name: []) }
    try keeper.pin(id(1), named: name("bob"))
    #expect(throws: TrustError.self) { try keeper.pin(id(1), named: name("bob")) }
    #expect(keeper.pins.count == 1)
    try keeper.revoke(id(1))
    #expect(throws: TrustError.self) { try keeper.revoke(id(1)) }
    #expect(throws: TrustError.self) { try keeper.pin(keeper.identity.id, named: []) }
  }

  @Test func `unpinning one key does not affect another`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: [])
    try keeper.pin(id(2), named: [])
    #expect(try keeper.unpin(id(1), name: []).map { $0.node } == [id(1)])
    #expect(keeper.pins.map { $0.node } == [id(2)])
    // The key was pinned without a name, but an empty name must not match this pin.
    #expect(throws: TrustError.self) { try keeper.unpin(.none, name: []) }
  }
}

struct DenyListTests {
  let box = Box()

  @Test func `a revoked key is refused now and after a restart`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == nil)
    try keeper.revoke(id(1))
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == .denied)
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == .denied)
    // The new start reads the revocation from disk, because `revoke` writes the revocation before returning.
    #expect(try box.start().refusal(of: PeerChain(nil), id(1)) == .denied)
  }

  @Test func `revoking a key removes its pin and prevents a new one`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("bob"))
    try keeper.revoke(id(1))
    #expect(!keeper.isPinned(id(1)))
    #expect(throws: TrustError.self) { try keeper.pin(id(1), named: name("bob")) }
    #expect(throws: TrustError.self) { try keeper.revoke(keeper.identity.id) }
  }

  @Test func `the serial number of the deny-list rises, and a key is revoked only once`() throws {
    let keeper = try box.start()
    try keeper.revoke(id(2))
    try keeper.revoke(id(1))
    #expect(throws: TrustError.self) { try keeper.revoke(id(1)) }
    #expect(keeper.lists.map { $0.serial } == [2])
    #expect(keeper.lists[0].nodes == [id(1), id(2)])
    #expect(try box.start().lists.map { $0.bytes } == keeper.lists.map { $0.bytes })
  }

  @Test func `a revocation that cannot be written is neither confirmed nor applied`() throws {
    let keeper = try box.start()
    try keeper.revoke(id(1))
    _ = system("chmod 500 \(box.directory.path); chattr +i \(box.directory.path) 2> /dev/null")
    defer { _ = system("chattr -i \(box.directory.path) 2> /dev/null; chmod 700 \(box.directory.path)") }
    // Permissions do not stop root. A directory in place of the temporary file also stops writes by root.
    _ = system("mkdir \(box.directory.path)/state.new 2> /dev/null")
    #expect(throws: TrustError.self) { try keeper.revoke(id(2)) }
    #expect(keeper.refusal(of: PeerChain(nil), id(2)) == nil)
    #expect(keeper.refusal(of: PeerChain(nil), id(1)) == .denied)
  }

  @Test func `the deny-list of an operator is applied and stored, and replaced only by a newer one`() throws {
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
    // The lists of an operator have no effect after the configuration no longer names this operator.
    box.operators = []
    #expect(try !box.start().isDenied(id(1)))
  }

  @Test func `a deny-list of another issuer, or an altered one, is refused`() throws {
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

  @Test func `a node detects that its own key is revoked`() throws {
    let author = Box()
    let op = try author.start()
    box.operators = [op.identity.id]
    let keeper = try box.start()
    try op.revoke(keeper.identity.id)
    #expect(!keeper.isSelfDenied)
    #expect(keeper.takes(op.lists[0].bytes, from: op.identity.id))
    #expect(keeper.isSelfDenied)
  }

  @Test func `a new key of the node signs its deny-list again`() throws {
    let keeper = try box.start()
    try keeper.revoke(id(1))
    _ = try NodeIdentity.create(StateDirectory(box.directory.path))
    let after = try box.start()
    #expect(after.identity.id != keeper.identity.id)
    #expect(after.isDenied(id(1)))
    #expect(after.lists[0].issuer == after.identity.id)
  }
}

struct TimeTests {
  let box = Box()
  private let day: Int64 = 86_400

  /// Starts a box and runs it for `seconds`, with a clock that is steady.
  @discardableResult
  private func run(_ seconds: Int64) throws -> TrustKeeper {
    let keeper = try box.start()
    let start = box.watch.seconds
    for uptime in stride(from: Int64(0), through: seconds, by: 600) {
      box.watch.seconds = start + uptime
      try keeper.keepTime(uptimeSeconds: uptime)
    }
    return keeper
  }

  @Test func `a time that was synchronised for six hours is kept for the next boot without a clock`() throws {
    box.watch.seconds = TrustTime.releaseSeconds + 365 * day
    try run(6 * 3600)
    let kept = box.watch.seconds
    box.watch.seconds = 0
    box.watch.isSynchronised = false
    #expect(try box.start().time.seconds == kept)
  }

  @Test func `a wrong answer of a time server does not move the earliest time`() throws {
    let keeper = try box.start()
    let start = box.watch.seconds
    for uptime in stride(from: Int64(0), through: 5 * day, by: 600) {
      // In one hour of twenty the clock is twenty years ahead.
      let isFalse = uptime / 3600 % 20 == 1
      box.watch.seconds = start + uptime + (isFalse ? 20 * 365 * day : 0)
      try keeper.keepTime(uptimeSeconds: uptime)
    }
    #expect(try box.start().time.floor <= start + 5 * day)
    #expect(try box.start().time.floor >= start + 3 * day)
  }

  @Test func `the six hours start again when the clock loses its source or is set`() throws {
    for isLost in [true, false] {
      let keeper = try box.start()
      let start = TrustTime.releaseSeconds + 365 * day
      for uptime in stride(from: Int64(0), through: 8 * 3600, by: 600) {
        let isMiddle = uptime == 4 * 3600
        box.watch.seconds = start + uptime + (isMiddle && !isLost ? 31 : 0)
        box.watch.isSynchronised = !(isMiddle && isLost)
        try keeper.keepTime(uptimeSeconds: uptime)
      }
      #expect(try box.start().time.floor == TrustTime.releaseSeconds)
    }
  }

  @Test func `the time of an unsynchronised clock is never kept`() throws {
    box.watch.seconds = TrustTime.releaseSeconds + 20 * 365 * day
    box.watch.isSynchronised = false
    let keeper = try run(day)
    #expect(keeper.time.seconds == TrustTime.releaseSeconds)
    #expect(try box.start().time.floor == TrustTime.releaseSeconds)
  }

  @Test func `the earliest time never decreases`() throws {
    box.watch.seconds = TrustTime.releaseSeconds + 100 * day
    try run(6 * 3600)
    let kept = box.watch.seconds
    box.watch.seconds -= 10 * day
    #expect(try run(6 * 3600).time.seconds == kept)
  }
}
