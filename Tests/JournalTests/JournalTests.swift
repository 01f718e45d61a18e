@testable import Journal
import Primitives
import Testing

/// Page-aligned memory for one journal with `capacity` records.
final class Memory {
  let bytes: UnsafeMutableRawBufferPointer
  init(capacity: Int) {
    bytes = .allocate(byteCount: JournalLayout.fileBytes(capacity: capacity), alignment: 4096)
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
  }
  deinit { bytes.deallocate() }

  func journal(level: Level = .debug, wallOffset: Int64 = 0, boot: UInt64 = 1) -> Journal {
    Journal(bytes, level: level, wallOffset: wallOffset, boot: MachineBoot(high: boot, low: 0))
  }
  func reader() throws -> JournalReader { try JournalReader(UnsafeRawBufferPointer(bytes)) }
}

@Test func `a record is read back as it was written`() throws {
  let memory = Memory(capacity: 64)
  let node = NodeID(high: 0x0102_0304_0506_0708, low: 0x1112_1314_1516_1718)
  memory.journal(wallOffset: 1000).record(
    .notice, .linkUp, at: Instant(nanoseconds: 77), link: 3, 1, 2, .max, node: node)
  let reader = try memory.reader()
  let record = try #require(reader.record(1))
  #expect(reader.newest == 1 && reader.oldest == 1)
  #expect(record.sequence == 1 && record.instant.nanoseconds == 77 && record.wallNanoseconds == 1077)
  #expect(record.level == Level.notice.rawValue && record.event == Event.linkUp.rawValue && record.link == 3)
  #expect(record.a == 1 && record.b == 2 && record.c == .max && record.node == node)
  #expect(reader.record(0) == nil && reader.record(2) == nil)
}

@Test func `a text is truncated to sixteen bytes`() throws {
  let memory = Memory(capacity: 64)
  memory.journal().record(.info, .dialFailed, at: .zero, text: JournalText("abcdefghijklmnopqrst"))
  let node = try #require(try memory.reader().record(1)).node
  #expect((0..<16).map { node.byte($0) } == Array("abcdefghijklmnop".utf8))
}

@Test func `the oldest records are overwritten`() throws {
  let memory = Memory(capacity: 64)
  let journal = memory.journal()
  for index in 1...100 { journal.record(.info, .frameRefused, at: .zero, UInt64(index)) }
  let reader = try memory.reader()
  #expect(reader.newest == 100 && reader.oldest == 37)
  #expect(reader.record(36) == nil)
  #expect((37...100).allSatisfy { reader.record($0)?.a == $0 })
}

@Test func `records below the level are dropped`() throws {
  let memory = Memory(capacity: 64)
  let journal = memory.journal(level: .notice)
  journal.record(.info, .dialStarted, at: .zero)
  journal.record(.notice, .linkUp, at: .zero)
  journal.record(.fault, .panic, at: .zero)
  #expect(try memory.reader().newest == 2)
}

@Test func `a journal without enough memory drops everything`() {
  Journal.none.record(.fault, .panic, at: .zero)
  let small = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 4096)
  defer { small.deallocate() }
  small.initializeMemory(as: UInt8.self, repeating: 7)
  Journal(small, level: .debug, wallOffset: 0, boot: MachineBoot(high: 0, low: 0)).record(.fault, .panic, at: .zero)
  #expect(small.allSatisfy { $0 == 7 })
}

@Test func `a restart continues in the same ring`() throws {
  let memory = Memory(capacity: 64)
  memory.journal().record(.notice, .boxStarted, at: .zero, 1)
  memory.journal().record(.notice, .boxStarted, at: .zero, 2)
  let reader = try memory.reader()
  #expect(reader.newest == 2 && reader.record(1)?.a == 1 && reader.record(2)?.a == 2)
}

@Test func `a record torn by a crash is skipped, and later ones are read`() throws {
  let memory = Memory(capacity: 64)
  memory.journal().record(.notice, .boxStarted, at: .zero, 1)
  memory.bytes.storeBytes(of: 0, toByteOffset: JournalLayout.headerBytes, as: UInt64.self)
  memory.journal().record(.notice, .boxStarted, at: .zero, 2)
  let reader = try memory.reader()
  #expect(reader.record(1) == nil && reader.record(2)?.a == 2)
}

@Test func `a clock step corrects the times of records of the same boot`() throws {
  let memory = Memory(capacity: 64)
  let journal = memory.journal(wallOffset: 5)
  journal.record(.notice, .boxStarted, at: Instant(nanoseconds: 100))
  journal.wallClockStepped(offset: 1_000_000, at: Instant(nanoseconds: 200))
  let reader = try memory.reader()
  #expect(reader.record(1)?.wallNanoseconds == 1_000_100)
  let step = try #require(reader.record(2))
  #expect(step.event == Event.clockStepped.rawValue && step.a == 1_000_000 && step.b == 5)
}

@Test func `records of an earlier boot keep their time`() throws {
  let memory = Memory(capacity: 64)
  for boot in 1...12 {
    memory.journal(wallOffset: Int64(boot) * 1000, boot: UInt64(boot)).record(.notice, .boxStarted, at: .zero)
  }
  let reader = try memory.reader()
  #expect(reader.record(12)?.wallNanoseconds == 12_000)
  #expect(reader.record(6)?.wallNanoseconds == 6000)
  // The journal stores the clock offsets of the last eight boots. Records of earlier boots get the oldest stored
  // offset.
  #expect(reader.record(1)?.wallNanoseconds == 5000)
}

@Test func `files of another format and damaged files are refused`() throws {
  let memory = Memory(capacity: 64)
  let raw = UnsafeRawBufferPointer(memory.bytes)
  #expect(throws: JournalError.foreign) { try JournalReader(raw) }
  _ = memory.journal()
  #expect(throws: JournalError.truncated) { try JournalReader(UnsafeRawBufferPointer(rebasing: raw[..<100])) }
  #expect(throws: JournalError.truncated) { try JournalReader(UnsafeRawBufferPointer(rebasing: raw[..<8000])) }
  memory.bytes.storeBytes(of: JournalLayout.magic + 1, as: UInt64.self)
  #expect(throws: JournalError.version) { try JournalReader(raw) }
  memory.bytes.storeBytes(of: JournalLayout.magic, as: UInt64.self)
  memory.bytes.storeBytes(of: 3, toByteOffset: 16, as: UInt64.self)
  #expect(throws: JournalError.corrupt) { try JournalReader(raw) }
  memory.bytes.storeBytes(of: 64, toByteOffset: 16, as: UInt64.self)
  memory.bytes.storeBytes(of: 9, toByteOffset: 32, as: UInt64.self)
  #expect(throws: JournalError.corrupt) { try JournalReader(raw) }
  memory.bytes.storeBytes(of: 1, toByteOffset: 32, as: UInt64.self)
  memory.bytes.storeBytes(of: UInt64.max, toByteOffset: 24, as: UInt64.self)
  #expect(throws: JournalError.corrupt) { try JournalReader(raw) }
}

@Test func `memory without a journal is formatted`() throws {
  let memory = Memory(capacity: 64)
  memory.bytes.initializeMemory(as: UInt8.self, repeating: 0xA5)
  memory.journal().record(.notice, .boxStarted, at: .zero, 9)
  let reader = try memory.reader()
  #expect(reader.newest == 1 && reader.record(1)?.a == 9)
  #expect((2...64).allSatisfy { reader.record($0) == nil })
}

@Test func `a journal near the end of its sequence numbers is formatted again`() throws {
  let memory = Memory(capacity: 64)
  _ = memory.journal()
  memory.bytes.storeBytes(of: JournalLayout.sequenceMax, toByteOffset: 24, as: UInt64.self)
  #expect(try memory.reader().newest == JournalLayout.sequenceMax)
  memory.journal().record(.notice, .boxStarted, at: .zero, 9)
  #expect(try memory.reader().newest == 1)
}
