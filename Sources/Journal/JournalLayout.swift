/// The byte layout of the journal file. Integers have the machine's byte order, because only this machine reads the
/// file.
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
/// Sequence numbers begin at 1 and never repeat in one file. Record n is in slot (n − 1) % capacity. A clock base
/// defines the wall time of the records from `first sequence` on: monotonic time + wall offset. When the wall clock is
/// set, the last base is changed, which also corrects the times of earlier records of that base. Monotonic time starts
/// again at a reboot, so each reboot adds a base.
public enum JournalLayout {
  public static let headerBytes = 4096
  public static let recordBytes = 64
  /// The minimum capacity in records. The records of one start of the daemon fit.
  public static let capacityMin = 64
  public static let clockBasesMax = 8
  /// "CWJRNL" and the format version.
  public static let magic: UInt64 = 0x4357_4A52_4E4C_0001

  /// The maximum sequence number of a readable file. With this limit, calculations with sequence numbers do not
  /// overflow.
  static let sequenceMax = UInt64.max / 2
  /// The maximum sequence number of a file that a writer continues. A writer that starts below this number never
  /// reaches `sequenceMax`.
  static let continuedSequenceMax = UInt64.max / 4

  static let magicOffset = 0
  static let recordSizeOffset = 8
  static let capacityOffset = 16
  static let newestOffset = 24
  static let baseCountOffset = 32
  static let basesOffset = 40
  static let baseBytes = 32

  /// The size of a file with `capacity` records, in bytes.
  public static func fileBytes(capacity: Int) -> Int { headerBytes + capacity * recordBytes }

  /// The reason why `memory` is not a readable journal; nil if it is a readable journal.
  public static func fault(in memory: UnsafeRawBufferPointer) -> JournalError? {
    guard memory.count >= headerBytes, let base = memory.baseAddress else { return .truncated }
    let magic = base.load(fromByteOffset: magicOffset, as: UInt64.self)
    if magic >> 16 != JournalLayout.magic >> 16 { return .foreign }
    if magic != JournalLayout.magic { return .version }
    let capacity = base.load(fromByteOffset: capacityOffset, as: UInt64.self)
    if base.load(fromByteOffset: recordSizeOffset, as: UInt64.self) != UInt64(recordBytes) { return .version }
    if capacity < UInt64(capacityMin) || capacity > UInt64(Int.max / 2 / recordBytes) { return .corrupt }
    if memory.count < fileBytes(capacity: Int(capacity)) { return .truncated }
    // No journal that was written correctly reaches this number.
    if base.load(fromByteOffset: newestOffset, as: UInt64.self) > sequenceMax { return .corrupt }
    let bases = base.load(fromByteOffset: baseCountOffset, as: UInt64.self)
    return bases >= 1 && bases <= UInt64(clockBasesMax) ? nil : .corrupt
  }
}

/// The reason why bytes are not a readable journal.
public enum JournalError: Error, Sendable {
  /// The bytes are shorter than the header, or shorter than the size that the header states.
  case truncated
  /// The bytes do not begin like a journal.
  case foreign
  /// The journal has another format version.
  case version
  /// The header is inconsistent.
  case corrupt
}

/// One boot of the machine, identified by the kernel's random boot id.
public struct MachineBoot: Equatable, Sendable {
  public var high: UInt64
  public var low: UInt64
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}
