/// The journal file, byte by byte; integers in the machine's own order (the file never leaves it).
///
///     header page (4096 bytes)                       record (64 bytes)
///     0   magic "CWJRNL", format version, 0          0   sequence, 0 while it is being written
///     8   record size                                8   monotonic nanoseconds
///     16  capacity in records                        16  event (2), level (1), link (1), zero (4)
///     24  sequence of the newest record, 0 = none    24  a, b, c (8 each)
///     32  number of clock bases in use (1…8)         48  16 bytes: a node id, or the start of a text
///     40  clock bases: first sequence, wall offset,
///         machine boot (8 + 8 + 16 bytes each)
///
/// Sequence numbers begin at 1 and never repeat in one file; record n stands in slot (n − 1) % capacity.
/// A clock base tells the wall time of the records from `first sequence` on: monotonic time + wall offset.
/// It is replaced when the wall clock steps (so records made before the clock was set get the right time
/// too) and followed by a new one when the machine booted again, since monotonic time then starts anew.
public enum JournalLayout {
  public static let headerBytes = 4096
  public static let recordBytes = 64
  /// Fewer would not hold what one start-up says.
  public static let capacityMin = 64
  public static let clockBasesMax = 8
  /// "CWJRNL", then the format version.
  public static let magic: UInt64 = 0x4357_4A52_4E4C_0001

  /// The newest sequence of a file that can be read. What is added to it cannot overflow.
  static let sequenceMax = UInt64.max / 2
  /// The newest sequence of a file that is continued: a writer never comes from here to `sequenceMax`.
  static let continuedSequenceMax = UInt64.max / 4

  static let magicOffset = 0
  static let recordSizeOffset = 8
  static let capacityOffset = 16
  static let newestOffset = 24
  static let baseCountOffset = 32
  static let basesOffset = 40
  static let baseBytes = 32

  /// The bytes of a file that holds `capacity` records.
  public static func fileBytes(capacity: Int) -> Int { headerBytes + capacity * recordBytes }

  /// What is wrong with these bytes as a journal; nil when nothing is.
  public static func fault(in memory: UnsafeRawBufferPointer) -> JournalFault? {
    guard memory.count >= headerBytes, let base = memory.baseAddress else { return .truncated }
    let magic = base.load(fromByteOffset: magicOffset, as: UInt64.self)
    if magic >> 16 != JournalLayout.magic >> 16 { return .foreign }
    if magic != JournalLayout.magic { return .version }
    let capacity = base.load(fromByteOffset: capacityOffset, as: UInt64.self)
    if base.load(fromByteOffset: recordSizeOffset, as: UInt64.self) != UInt64(recordBytes) { return .version }
    if capacity < UInt64(capacityMin) || capacity > UInt64(Int.max / 2 / recordBytes) { return .corrupt }
    if memory.count < fileBytes(capacity: Int(capacity)) { return .truncated }
    // No journal lives to see so many.
    if base.load(fromByteOffset: newestOffset, as: UInt64.self) > sequenceMax { return .corrupt }
    let bases = base.load(fromByteOffset: baseCountOffset, as: UInt64.self)
    return bases >= 1 && bases <= UInt64(clockBasesMax) ? nil : .corrupt
  }
}

/// Why bytes are not a journal that can be read.
public enum JournalFault: Error, Sendable {
  /// Shorter than its header says, or than a header.
  case truncated
  /// Not a journal at all.
  case foreign
  /// A journal of another format version.
  case version
  /// The header contradicts itself.
  case corrupt
}

/// One boot of the machine, as the kernel's random boot id names it.
public struct MachineBoot: Equatable, Sendable {
  public var high: UInt64
  public var low: UInt64
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}
