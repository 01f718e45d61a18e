import Testing

@testable import Transfer

/// A receiver with a limited number of transfer slots. A letter names each sender.
private final class Receiver {
  var entries: [TransferSlots<Character>.Entry] = []
  let capacity: Int

  init(_ capacity: Int) { self.capacity = capacity }

  /// Takes a slot for the sender. Returns whether there was a slot, and which sender lost a slot to `sender`.
  @discardableResult
  func take(_ sender: Character, isTrusted: Bool = true) -> (isTaken: Bool, from: Character?) {
    var from: Character?
    switch TransferSlots(entries, of: capacity).choose(for: sender, isTrusted: isTrusted) {
    case .free: break
    case .instead(let index): from = entries.remove(at: index).sender
    case .none: return (false, nil)
    }
    entries.append(.init(sender: sender, isTrusted: isTrusted, stillMilliseconds: 0))
    return (true, from)
  }

  func wait(seconds: UInt64) {
    for index in entries.indices { entries[index].stillMilliseconds += seconds * 1_000 }
  }

  func count(_ sender: Character) -> Int { entries.count { $0.sender == sender } }
}

@Suite struct TransferSlotsTests {
  @Test func `a single sender gets all slots and no more`() {
    let receiver = Receiver(15)
    for _ in 0..<15 { #expect(receiver.take("a").isTaken) }
    #expect(!receiver.take("a").isTaken)
  }

  @Test func `the sender with the most slots loses them one by one until another has as many`() {
    let receiver = Receiver(15)
    for _ in 0..<15 { receiver.take("a") }
    for _ in 0..<20 { receiver.take("b") }
    #expect(receiver.count("a") == 8 && receiver.count("b") == 7)
    for _ in 0..<20 { receiver.take("c") }
    #expect(receiver.count("a") == 5 && receiver.count("b") == 5 && receiver.count("c") == 5)
  }

  @Test func `a transfer stalled for ten seconds is evicted for another sender, but not for its own`() {
    let receiver = Receiver(2)
    receiver.take("a")
    receiver.take("b")
    receiver.wait(seconds: 9)
    #expect(!receiver.take("c").isTaken)
    receiver.wait(seconds: 1)
    receiver.entries[1].stillMilliseconds = 0
    #expect(!receiver.take("a").isTaken)
    #expect(receiver.take("c") == (true, "a"))
  }

  @Test func `the most active transfers of the largest sender are kept`() {
    let receiver = Receiver(3)
    for _ in 0..<3 { receiver.take("a") }
    for (index, still) in [5_000, 9_000, 1_000].enumerated() {
      receiver.entries[index].stillMilliseconds = UInt64(still)
    }
    receiver.take("b")
    #expect(receiver.entries.filter { $0.sender == "a" }.map { $0.stillMilliseconds } == [5_000, 1_000])
  }

  @Test func `untrusted senders leave a quarter of the slots, and are evicted for trusted ones`() {
    let receiver = Receiver(16)
    for stranger in "abcdefghijklmnop" { receiver.take(stranger, isTrusted: false) }
    #expect(receiver.entries.count == 12)
    for _ in 0..<4 { #expect(receiver.take("z") == (true, nil)) }
    for _ in 0..<12 { #expect(receiver.take("z").from != "z") }
    #expect(receiver.count("z") == 16)
    #expect(!receiver.take("a", isTrusted: false).isTaken)
  }

  @Test func `a transfer that cannot be evicted stays`() {
    let receiver = Receiver(2)
    for _ in 0..<2 { receiver.take("a") }
    for index in 0..<2 { receiver.entries[index].mayYield = false }
    receiver.wait(seconds: 60)
    #expect(!receiver.take("b").isTaken)
  }
}
