import Primitives
import Testing

private final class Memory {
  let bytes: UnsafeMutableRawBufferPointer
  init(_ byteCount: Int) { bytes = .allocate(byteCount: byteCount, alignment: Arena.alignment) }
  deinit { bytes.deallocate() }
}

private struct Record {
  var number: UInt16
  var text: UInt64
}

@Test func `parts of an arena do not overlap`() {
  let memory = Memory(256)
  var arena = Arena(memory.bytes)
  let first = arena.take(1), second = arena.take(65), third = arena.take(64)
  #expect(first.baseAddress == memory.bytes.baseAddress && first.count == 1)
  #expect(second.baseAddress == memory.bytes.baseAddress! + 64 && second.count == 65)
  #expect(third.baseAddress == memory.bytes.baseAddress! + 192)
  #expect(Arena.byteCount(0) == 0 && Arena.byteCount(64) == 64 && Arena.byteCount(65) == 128)
}

@Test func `copies of a table share its records`() {
  let memory = Memory(Table<Record, UInt8>.byteCount(5))
  var arena = Arena(memory.bytes)
  let table = Table<Record, UInt8>(count: 5, in: &arena)
  table.fill(Record(number: 7, text: 0))
  let copy = table
  copy[4].text = 9
  #expect(table[4].text == 9 && table[4].number == 7 && table[0].text == 0)
  #expect(table.indices == 0..<5)
}

@Test func `a table traps beyond its last record`() async {
  await #expect(processExitsWith: .failure) {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 128, alignment: Arena.alignment)
    var arena = Arena(memory)
    let table = Table<UInt64, UInt8>(count: 8, in: &arena)
    table[8] = 1
  }
}

@Test func `a table traps if its index type is too narrow`() async {
  await #expect(processExitsWith: .failure) {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: Arena.alignment)
    var arena = Arena(memory)
    // With the indices 0 … 255 an index of one byte has no value left for "none".
    _ = Table<UInt64, UInt8>(count: 256, in: &arena)
  }
}

@Test func `an exhausted arena traps`() async {
  await #expect(processExitsWith: .failure) {
    var arena = Arena(.allocate(byteCount: 128, alignment: Arena.alignment))
    _ = arena.take(100)
    _ = arena.take(1)
  }
}

@Test func `byte strings are accessed by number`() {
  let memory = Memory(ByteTable<UInt16>.byteCount(3, recordBytes: 100))
  var arena = Arena(memory.bytes)
  let strings = ByteTable<UInt16>(count: 3, recordBytes: 100, in: &arena)
  #expect(strings[2].baseAddress == memory.bytes.baseAddress! + 200 && strings[2].count == 100)
}

@Test func `a byte table traps beyond its last string`() async {
  await #expect(processExitsWith: .failure) {
    var arena = Arena(.allocate(byteCount: 320, alignment: Arena.alignment))
    let strings = ByteTable<UInt16>(count: 3, recordBytes: 100, in: &arena)
    strings[3][0] = 1
  }
}
