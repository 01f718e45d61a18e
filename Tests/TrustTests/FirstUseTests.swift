import Primitives
import Testing

@testable import Trust

/// The influence of unknown nodes on the table of pins, and the effect of the operator's pins.
struct FirstUseTests {
  let box = Box()

  /// Lets nodes prove their keys in the order of their numbers. Each node has its own name.
  private func come(
    _ keeper: TrustKeeper, _ numbers: Range<UInt64>, over bearer: BearerKind = .ethernet, seconds: UInt64 = 0,
    from source: (UInt64) -> UInt64
  ) {
    for number in numbers {
      let proof = proof(from: source(number), over: bearer, seconds: seconds)
      #expect(keeper.refusal(of: id(number), named: name("n\(number)"), proof: proof) == nil, "\(number) is locked out")
    }
  }

  private func filled() throws -> TrustKeeper {
    let keeper = try box.start()
    for number in 0..<UInt64(TrustLimits.pinsMax) {
      _ = keeper.refusal(of: id(1000 + number), named: name("n\(number)"), isProven: true)
    }
    return keeper
  }

  @Test func `one address gets sixteen pins at once and then one per ten minutes`() throws {
    let keeper = try box.start()
    come(keeper, 100..<200, seconds: 1000) { _ in 7 }
    #expect(keeper.pins.count == 16)
    come(keeper, 200..<300, seconds: 1599) { _ in 7 }
    #expect(keeper.pins.count == 16)
    come(keeper, 300..<400, seconds: 1600) { _ in 7 }
    #expect(keeper.pins.count == 17)
    come(keeper, 400..<401, seconds: 1600) { _ in 8 }
    #expect(keeper.isPinned(id(400)) && keeper.unpinnedCount == 283)
  }

  @Test func `one bearer gets thirty-two pins at once and then one per two minutes`() throws {
    let keeper = try box.start()
    come(keeper, 100..<400, seconds: 1000) { $0 }
    #expect(keeper.pins.count == 32)
    come(keeper, 400..<402, seconds: 1120) { $0 }
    #expect(keeper.pins.count == 33)
    come(keeper, 500..<501, over: .wifi, seconds: 1000) { $0 }
    #expect(keeper.isPinned(id(500)))
  }

  @Test func `both kinds of Bluetooth share one limit`() throws {
    let keeper = try box.start()
    // The phones in a hall have different random addresses, but all of them count as one source.
    come(keeper, 100..<132, over: .bluetoothLE) { _ in 7 }
    come(keeper, 200..<201, over: .bluetoothClassic) { _ in 7 }
    #expect(keeper.pins.count == 32)
  }

  @Test func `a key that alternates between two names causes writes as rarely as new keys`() throws {
    let keeper = try box.start()
    func writes(_ count: Int, seconds: UInt64) throws -> Int {
      var writes = 0
      for number in 0..<count {
        let proof = proof(from: 7, seconds: seconds)
        #expect(keeper.refusal(of: id(1), named: name(number % 2 == 0 ? "one" : "two"), proof: proof) == nil)
        if keeper.hasUnsaved { writes += 1 }
        try keeper.saveIfChanged()
      }
      return writes
    }
    #expect(try writes(200, seconds: 1000) == 16)
    #expect(try writes(200, seconds: 1599) == 0)
    #expect(try writes(200, seconds: 1600) == 1)
    // The name that was pinned last stays protected.
    #expect(keeper.pins.map { $0.name } == [name("one")])
    #expect(keeper.refusal(of: id(2), named: name("one"), proof: proof(from: 8, seconds: 1600)) == .keyChanged)
  }

  @Test func `pins of the operator, and repeated names, do not count against the limits`() throws {
    let keeper = try box.start()
    try keeper.pin(id(1), named: name("one"))
    for _ in 0..<100 { come(keeper, 50..<51) { _ in 7 } }
    for _ in 0..<100 { #expect(keeper.refusal(of: id(1), named: name("one"), proof: proof(from: 7)) == nil) }
    come(keeper, 100..<200) { _ in 7 }
    #expect(keeper.pins.count == 17)
  }

  @Test func `a key that exceeds the limit is pinned when it connects later`() throws {
    let keeper = try box.start()
    come(keeper, 100..<133) { $0 }
    #expect(!keeper.isPinned(id(132)))
    come(keeper, 132..<133, seconds: 120) { $0 }
    #expect(keeper.isPinned(id(132)))
  }

  @Test func `the operator's pin evicts the least recently used pin from a full table`() throws {
    let keeper = try filled()
    // The first node proves its key again. So the second node's pin is now the one that was used longest ago.
    #expect(keeper.refusal(of: id(1000), named: name("n0"), isProven: true) == nil)
    #expect(try keeper.pin(id(1), named: name("bob"))?.node == id(1001))
    #expect(keeper.isPinned(id(1)) && keeper.isPinned(id(1000)) && !keeper.isPinned(id(1001)))
    #expect(keeper.pins.count == TrustLimits.pinsMax)
  }

  @Test func `the order of use survives a restart`() throws {
    let keeper = try filled()
    try keeper.saveIfChanged()
    let second = try box.start()
    #expect(second.refusal(of: id(1000), named: name("n0"), isProven: true) == nil)
    #expect(second.hasUnsaved)
    try second.saveIfChanged()
    #expect(second.refusal(of: id(1000), named: name("n0"), isProven: true) == nil)
    #expect(!second.hasUnsaved, "one write for each key and start")
    #expect(try box.start().pin(id(1), named: name("bob"))?.node == id(1001))
  }

  @Test func `a pin of the operator is never evicted`() throws {
    let keeper = try box.start()
    for number in 0..<UInt64(TrustLimits.pinsMax) { try keeper.pin(id(1000 + number), named: name("n\(number)")) }
    #expect(throws: TrustError.self) { try keeper.pin(id(1), named: name("bob")) }
    #expect(keeper.pins.allSatisfy { $0.isByOperator } && keeper.pins.count == TrustLimits.pinsMax)
    #expect(keeper.pinsLeft == .many, "the operator knows them")
  }

  @Test func `a pin is never evicted for a stranger`() throws {
    let keeper = try filled()
    for number in 5000..<6000 as Range<UInt64> {
      #expect(keeper.refusal(of: id(number), named: name("m\(number)"), isProven: true) == nil)
    }
    #expect(keeper.pins.allSatisfy { $0.node.high < 5000 })
    #expect(keeper.refusal(of: id(1), named: name("n7"), isProven: true) == .keyChanged)
  }

  @Test func `the operator is warned when half of the pins and when all are in use`() throws {
    let keeper = try box.start()
    #expect(keeper.pinsLeft == .many)
    for number in 0..<UInt64(TrustLimits.pinsMax) {
      _ = keeper.refusal(of: id(1000 + number), named: name("n\(number)"), isProven: true)
      let count = Int(number) + 1
      #expect(keeper.pinsLeft == (count < 128 ? .many : count < 256 ? .few : .none))
    }
    #expect(keeper.unverifiedCount == 256)
  }
}
