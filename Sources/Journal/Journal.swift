import Primitives
import Synchronization

/// Writes records to the ring buffer that `JournalLayout` describes.
///
/// A journal is a small value that points to the ring in memory. Every module that logs has a copy of the value, and
/// only one thread writes. Writing a record makes no system call and does not allocate. A reader in another process
/// reads a record completely or not at all, even after this process has died. Repeated records are counted instead of
/// written (`RepeatFilter`).
public struct Journal: @unchecked Sendable {
  /// The filter that all copies of this value share. If the filter is nil, every record is written.
  private let filter: UnsafeMutablePointer<RepeatFilter>?
  private let fixedLevel: Level
  private let base: UnsafeMutableRawPointer?
  private let capacity: UInt64

  /// A journal that drops all records.
  public static let none = Journal()

  private init() {
    filter = nil
    fixedLevel = .fault
    base = nil
    capacity = 1
  }

  /// Continues the journal in `memory`. If `memory` contains no journal, formats it.
  /// - `memory`: page-aligned and at least `JournalLayout.fileBytes(capacity: JournalLayout.capacityMin)` bytes. The
  ///   memory must outlive this journal and its copies. If the memory is smaller than this minimum, the result is
  ///   `.none`.
  /// - `level`: records that are less severe are dropped. If there is a filter, the level of the filter is used
  ///   instead.
  /// - `filter`: counts repeated records, and must exist as long as `memory`. If `filter` is nil, every record is
  ///   written.
  /// - `wallOffset`: wall clock minus monotonic clock, in nanoseconds.
  /// - `boot`: the machine's boot id. A new id shows that the monotonic clock has started again.
  public init(
    _ memory: UnsafeMutableRawBufferPointer, level: Level, wallOffset: Int64, boot: MachineBoot,
    filter: UnsafeMutablePointer<RepeatFilter>? = nil
  ) {
    guard let base = memory.baseAddress,
      memory.count >= JournalLayout.fileBytes(capacity: JournalLayout.capacityMin)
    else {
      self = .none
      return
    }
    let capacity = (memory.count - JournalLayout.headerBytes) / JournalLayout.recordBytes
    self.filter = filter
    fixedLevel = level
    self.base = base
    self.capacity = UInt64(capacity)
    let isOurs =
      JournalLayout.fault(in: UnsafeRawBufferPointer(memory)) == nil
      && base.load(fromByteOffset: JournalLayout.capacityOffset, as: UInt64.self) == self.capacity
      && base.load(fromByteOffset: JournalLayout.newestOffset, as: UInt64.self) <= JournalLayout.continuedSequenceMax
    if !isOurs { format(base) }
    beginBase(base, wallOffset, boot)
  }

  /// The level of the journal: records that are less severe are dropped.
  public var level: Level {
    if let filter { return filter.pointee.level }
    return fixedLevel
  }

  /// Changes the level of all copies of this value. Has no effect without a filter.
  public func setLevel(_ level: Level) { filter?.pointee.level = level }

  /// Writes the header again after the memory was lost and replaced by zeros. Does nothing if the header exists. The
  /// records are not changed.
  public func restoreHeader(wallOffset: Int64, boot: MachineBoot) {
    guard let base, base.load(fromByteOffset: JournalLayout.magicOffset, as: UInt64.self) == 0 else { return }
    beginFile(base)
    beginBase(base, wallOffset, boot)
  }

  /// Sets the cause of all further records about a link, for all copies of this value. `link` is the number of the link
  /// slot. Call this function when a link begins, and when the operator has decided on its neighbour. Has no effect
  /// without a filter.
  public func attribute(link: UInt8, to cause: RecordCause) { filter?.pointee.attribute(link: link, to: cause) }

  /// The cause of the records about a link, as set by `attribute`. `.box` for a number that is no link slot.
  public func cause(ofLink link: Int) -> RecordCause {
    filter?.pointee.cause(ofLink: UInt8(clamping: link)) ?? .box
  }

  /// Writes one record. `Event` defines the meaning of `a`, `b`, `c` and `node`. Without a `cause` the record is
  /// charged to that of its link.
  @inline(never)
  public func record(
    _ level: Level, _ event: Event, at now: Instant, link: UInt8 = 0xFF,
    _ a: UInt64 = 0, _ b: UInt64 = 0, _ c: UInt64 = 0, node: NodeID = .none, cause: RecordCause? = nil
  ) {
    admit(level, event, now, link, a, b, c, node.high.bigEndian, node.low.bigEndian, cause)
  }

  /// Writes one record with a text. The record has room for the first 16 bytes of the text, in place of a node id.
  @inline(never)
  public func record(
    _ level: Level, _ event: Event, at now: Instant, link: UInt8 = 0xFF,
    _ a: UInt64 = 0, _ b: UInt64 = 0, _ c: UInt64 = 0, text: JournalText
  ) {
    admit(level, event, now, link, a, b, c, text.first, text.second, nil)
  }

  /// Writes a text, “source: text”, as at most `textRecordsMax` records. Each record contains 40 bytes of the text, in
  /// a, b, c and the 16 bytes. `event` is `report` or `panic`. If `isCounted` is true, repetitions are counted instead
  /// of written. Callers that limit the rate themselves pass false.
  public func recordText(
    _ level: Level, _ event: Event, at now: Instant, _ words: UnsafeRawBufferPointer, cause: RecordCause = .box,
    isCounted: Bool = true
  ) {
    guard level <= self.level else { return }
    let words = UnsafeRawBufferPointer(rebasing: words.prefix(40 * Self.textRecordsMax))
    if let filter, isCounted, RepeatFilter.counts(level) {
      let start = JournalText(words)
      let subject = RepeatFilter.Subject(event, level, words: words, start.first, start.second)
      let records = max(1, (words.count + 39) / 40)
      if !filter.pointee.admits(subject, records: records, by: cause, at: now) { return }
    }
    var offset = 0
    repeat {
      var part: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
      withUnsafeMutableBytes(of: &part) { target in
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: words[offset..<min(offset + 40, words.count)]))
      }
      write(level, offset == 0 ? event : .textMore, now, 0xFF, part.0, part.1, part.2, part.3, part.4)
      offset += 40
    } while offset < words.count
  }

  /// The maximum number of records for one text.
  public static let textRecordsMax = 8

  /// Writes the counts of repeated records whose counting period has ended. Call this every few seconds, and once at
  /// the end with `isLast`.
  public func recordRepeats(at now: Instant, isLast: Bool = false) {
    while let count = filter?.pointee.nextCount(at: now, isLast: isLast) {
      let subject = count.subject
      write(
        subject.level, .repeated, now, subject.link, count.repeats, UInt64(subject.event.rawValue), count.seconds,
        subject.first, subject.second)
    }
  }

  /// Sets a new wall-clock offset for all records since the machine's boot. Call this when the wall clock was set.
  public func wallClockStepped(offset: Int64, at now: Instant) {
    // Without a clock base, the memory was lost and is not restored yet.
    guard let base, base.load(fromByteOffset: JournalLayout.baseCountOffset, as: UInt64.self) > 0 else { return }
    let entry = clockBase(base, Int(base.load(fromByteOffset: JournalLayout.baseCountOffset, as: UInt64.self)) - 1)
    let before = entry.load(fromByteOffset: 8, as: Int64.self)
    entry.storeBytes(of: offset, toByteOffset: 8, as: Int64.self)
    record(.notice, .clockStepped, at: now, UInt64(bitPattern: offset), UInt64(bitPattern: before))
  }

  @inline(__always)
  private func admit(
    _ level: Level, _ event: Event, _ now: Instant, _ link: UInt8,
    _ a: UInt64, _ b: UInt64, _ c: UInt64, _ first: UInt64, _ second: UInt64, _ cause: RecordCause?
  ) {
    guard level <= self.level else { return }
    if let filter, RepeatFilter.counts(level) {
      let subject = RepeatFilter.Subject(event, level, link, a: a, first, second)
      let cause = cause ?? filter.pointee.cause(ofLink: link)
      if !filter.pointee.admits(subject, records: 1, by: cause, at: now) { return }
    }
    write(level, event, now, link, a, b, c, first, second)
  }

  @inline(__always)
  private func write(
    _ level: Level, _ event: Event, _ now: Instant, _ link: UInt8,
    _ a: UInt64, _ b: UInt64, _ c: UInt64, _ first: UInt64, _ second: UInt64
  ) {
    guard let base else { return }
    let newest = base.advanced(by: JournalLayout.newestOffset).assumingMemoryBound(to: Atomic<UInt64>.self)
    let sequence = newest.pointee.load(ordering: .relaxed) &+ 1
    let slot = Int((sequence &- 1) % capacity)
    let record = base + (JournalLayout.headerBytes &+ slot &* JournalLayout.recordBytes)
    let mark = record.assumingMemoryBound(to: Atomic<UInt64>.self)
    // A sequence lock: the slot is marked as invalid before its first byte changes, until after its last byte has
    // changed.
    mark.pointee.store(0, ordering: .relaxed)
    atomicMemoryFence(ordering: .releasing)
    record.storeBytes(of: now.nanoseconds, toByteOffset: 8, as: UInt64.self)
    let kind = UInt64(event.rawValue) | UInt64(level.rawValue) << 16 | UInt64(link) << 24
    record.storeBytes(of: kind.littleEndian, toByteOffset: 16, as: UInt64.self)
    record.storeBytes(of: a, toByteOffset: 24, as: UInt64.self)
    record.storeBytes(of: b, toByteOffset: 32, as: UInt64.self)
    record.storeBytes(of: c, toByteOffset: 40, as: UInt64.self)
    record.storeBytes(of: first, toByteOffset: 48, as: UInt64.self)
    record.storeBytes(of: second, toByteOffset: 56, as: UInt64.self)
    mark.pointee.store(sequence, ordering: .releasing)
    newest.pointee.store(sequence, ordering: .releasing)
  }

  private func format(_ base: UnsafeMutableRawPointer) {
    let bytes = JournalLayout.fileBytes(capacity: Int(capacity))
    base.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
    beginFile(base)
  }

  private func beginFile(_ base: UnsafeMutableRawPointer) {
    base.storeBytes(
      of: UInt64(JournalLayout.recordBytes), toByteOffset: JournalLayout.recordSizeOffset, as: UInt64.self)
    base.storeBytes(of: capacity, toByteOffset: JournalLayout.capacityOffset, as: UInt64.self)
    base.storeBytes(of: JournalLayout.magic, toByteOffset: JournalLayout.magicOffset, as: UInt64.self)
  }

  private func clockBase(_ base: UnsafeMutableRawPointer, _ index: Int) -> UnsafeMutableRawPointer {
    base + (JournalLayout.basesOffset + index * JournalLayout.baseBytes)
  }

  private func beginBase(_ base: UnsafeMutableRawPointer, _ wallOffset: Int64, _ boot: MachineBoot) {
    var count = Int(base.load(fromByteOffset: JournalLayout.baseCountOffset, as: UInt64.self))
    var isSameBoot = false
    if count > 0 {
      let last = clockBase(base, count - 1)
      isSameBoot =
        last.load(fromByteOffset: 16, as: UInt64.self) == boot.high
        && last.load(fromByteOffset: 24, as: UInt64.self) == boot.low
    }
    if !isSameBoot {
      if count == JournalLayout.clockBasesMax {
        clockBase(base, 0).copyMemory(from: clockBase(base, 1), byteCount: (count - 1) * JournalLayout.baseBytes)
        count -= 1
      }
      let newest = base.load(fromByteOffset: JournalLayout.newestOffset, as: UInt64.self)
      let entry = clockBase(base, count)
      entry.storeBytes(of: newest &+ 1, toByteOffset: 0, as: UInt64.self)
      entry.storeBytes(of: boot.high, toByteOffset: 16, as: UInt64.self)
      entry.storeBytes(of: boot.low, toByteOffset: 24, as: UInt64.self)
      count += 1
    }
    clockBase(base, count - 1).storeBytes(of: wallOffset, toByteOffset: 8, as: Int64.self)
    base.storeBytes(of: UInt64(count), toByteOffset: JournalLayout.baseCountOffset, as: UInt64.self)
  }
}

/// The first 16 bytes of a text, padded with zeros, as stored in a record.
public struct JournalText: Equatable, Sendable {
  public static let byteCount = 16
  let first: UInt64
  let second: UInt64

  public init(_ bytes: UnsafeRawBufferPointer) {
    var words: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &words) { target in
      target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.byteCount)))
    }
    first = words.0
    second = words.1
  }

  public init(_ text: StaticString) {
    self.init(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
