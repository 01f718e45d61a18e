import Primitives
import SecureTransport
import Testing

@testable import Trust

/// Which pins apply under which policy.
struct PolicyTests {
  let box = Box()

  @Test func `a pin of first use refuses no key under the policies open and ca`() throws {
    let keeper = try box.start()
    #expect(keeper.refusal(of: id(1), named: name("bob"), isProven: true) == nil)
    try keeper.pin(id(3), named: name("carol"))
    try keeper.saveIfChanged()
    for policy in [TrustPolicy.open, .authority] {
      box.policy = policy
      let later = try box.start()
      #expect(later.pins.count == 2 && later.unverifiedCount == 1)
      #expect(later.refusal(of: id(2), named: name("bob"), isProven: true) == nil)
      #expect(later.refusal(of: id(2), named: name("bob"), isProven: false) == nil)
      #expect(later.refusal(of: id(2), named: name("Carol"), isProven: true) == .keyChanged)
      #expect(later.alarms.all.map { $0.pinned } == [id(3)])
    }
    // The pin of first use still applies after a return to the policy `firstUse`.
    box.policy = .firstUse
    #expect(try box.start().refusal(of: id(2), named: name("bob"), isProven: true) == .keyChanged)
  }

  @Test func `a question about a name has no effect`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("bob"))
    #expect(keeper.refusal(of: id(2), under: name("b\u{43E}b")) == .keyChanged)
    #expect(keeper.refusal(of: id(1), under: name("bob")) == nil)
    #expect(keeper.refusal(of: id(2), under: name("carol")) == nil)
    #expect(keeper.alarms.isEmpty && keeper.strangers.all.isEmpty && keeper.pins.count == 1)
    try keeper.revoke(id(2))
    #expect(keeper.refusal(of: id(2), under: name("carol")) == .denied)
  }
}
