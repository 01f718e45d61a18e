import Primitives
import TestSupport
import Testing

@testable import Mesh

/// A store, and the bytes that the store should have at each index.
private final class Shelf {
  private let memory = Borrowed(AdvertisementStore.byteCount)
  var store: AdvertisementStore
  private var expected: [Int: [UInt8]] = [:]

  init() {
    var arena = Arena(memory.bytes)
    store = AdvertisementStore(in: &arena)
  }

  func put(_ index: Int, _ count: Int, _ byte: UInt8) {
    let bytes = [UInt8](repeating: byte, count: count)
    store.replace(index, by: bytes.span.bytes)
    expected[index] = bytes
  }

  func drop(_ index: Int) {
    store.remove(index)
    expected[index] = nil
  }

  /// Whether each index has the bytes that were last put there, and the store has no other bytes.
  var isWhole: Bool {
    for index in 0..<AdvertisementStore.capacity {
      if store[index].map({ [UInt8]($0) }) != expected[index] { return false }
    }
    return store.end == expected.values.reduce(0) { $0 + $1.count }
  }
}

@Test func `an advertisement uses as many bytes as its length`() {
  let shelf = Shelf()
  shelf.put(0, 161, 1)
  shelf.put(767, 2048, 2)
  shelf.put(5, 1, 3)
  #expect(shelf.isWhole && shelf.store.end == 161 + 2048 + 1)
}

@Test func `an advertisement of the same length replaces the old one in place`() throws {
  let shelf = Shelf()
  shelf.put(1, 100, 1)
  shelf.put(2, 200, 2)
  let address = try #require(shelf.store[1]).baseAddress
  shelf.put(1, 100, 3)
  #expect(shelf.isWhole && shelf.store[1]?.baseAddress == address)
}

@Test func `an advertisement of another length leaves no gap`() {
  let shelf = Shelf()
  for index in 0..<4 { shelf.put(index, 100 + index, UInt8(index)) }
  shelf.put(0, 50, 9)
  #expect(shelf.isWhole)
  shelf.put(2, 2048, 8)
  #expect(shelf.isWhole)
}

@Test func `a removed advertisement leaves no gap`() {
  let shelf = Shelf()
  for index in 0..<4 { shelf.put(index, 100 + index, UInt8(index)) }
  for index in [2, 2, 0, 3, 1] {
    shelf.drop(index)
    #expect(shelf.isWhole)
  }
  #expect(shelf.store.end == 0)
}

@Test func `the store has room for the longest advertisement in every slot`() {
  let shelf = Shelf()
  for index in 0..<AdvertisementStore.capacity { shelf.put(index, 100, UInt8(truncatingIfNeeded: index)) }
  for index in 0..<AdvertisementStore.capacity { shelf.put(index, 2048, UInt8(truncatingIfNeeded: index &+ 1)) }
  #expect(shelf.isWhole)
}

@Test func `changes in any order keep every advertisement`() {
  let shelf = Shelf()
  var random = SeededRandom(seed: 7)
  for _ in 0..<2_000 {
    let index = Int(random.next() % 40)
    if random.next() % 4 == 0 {
      shelf.drop(index)
    } else {
      shelf.put(index, 1 + Int(random.next() % 2048), UInt8(truncatingIfNeeded: random.next()))
    }
  }
  #expect(shelf.isWhole)
}
