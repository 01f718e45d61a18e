import Primitives
import Synchronization

/// A decoded record.
public struct JournalRecord: Sendable {
  public var sequence: UInt64
  public var instant: Instant
  /// The wall time of the record, in nanoseconds since 1970 (UTC). The wall time is calculated with the latest known
  /// offset of the wall clock.
  public var wallNanoseconds: Int64
  /// The level as a raw value. `level` and `event` are raw values, because a journal of a later version may contain
  /// unknown values.
  public var level: UInt8
  public var event: UInt16
  public var link: UInt8
  public var a: UInt64
  public var b: UInt64
  public var c: UInt64
  /// The 16 bytes of the record as a node id. In a record with a text, the bytes of this id are the beginning of the
  /// text.
  public var node: NodeID
}

/// Reads a journal while another process may be writing to the journal.
public struct JournalReader: @unchecked Sendable {
  private let base: UnsafeRawPointer
  private let capacity: UInt64

  /// `memory` contains the journal file, and must exist as long as the reader.
  public init(_ memory: UnsafeRawBufferPointer) throws(JournalError) {
    if let fault = JournalLayout.fault(in: memory) { throw fault }
    guard let base = memory.baseAddress else { throw .truncated }
    self.base = base
    capacity = base.load(fromByteOffset: JournalLayout.capacityOffset, as: UInt64.self)
  }

  /// The sequence number of the newest record; 0 if there is no record.
  public var newest: UInt64 { word(JournalLayout.newestOffset) }

  /// The sequence number of the oldest record in the ring; 1 if there is no record.
  public var oldest: UInt64 { newest > capacity ? newest - capacity + 1 : 1 }

  /// The file offset of the slot for the record with this sequence number, even if the record was overwritten. nil for
  /// 0.
  public func offset(of sequence: UInt64) -> Int? {
    sequence > 0 ? JournalLayout.headerBytes + Int((sequence - 1) % capacity) * JournalLayout.recordBytes : nil
  }

  /// The record with this sequence number. nil if the record was overwritten, is being written, or never existed.
  public func record(_ sequence: UInt64) -> JournalRecord? {
    guard let offset = offset(of: sequence) else { return nil }
    guard word(offset) == sequence else { return nil }
    let record = base + offset
    let instant = record.load(fromByteOffset: 8, as: UInt64.self)
    let kind = UInt64(littleEndian: record.load(fromByteOffset: 16, as: UInt64.self))
    let a = record.load(fromByteOffset: 24, as: UInt64.self)
    let b = record.load(fromByteOffset: 32, as: UInt64.self)
    let c = record.load(fromByteOffset: 40, as: UInt64.self)
    let first = record.load(fromByteOffset: 48, as: UInt64.self)
    let second = record.load(fromByteOffset: 56, as: UInt64.self)
    atomicMemoryFence(ordering: .acquiring)
    guard word(offset) == sequence else { return nil }
    return JournalRecord(
      sequence: sequence, instant: Instant(nanoseconds: instant),
      wallNanoseconds: Int64(truncatingIfNeeded: instant) &+ wallOffset(of: sequence),
      level: UInt8(truncatingIfNeeded: kind >> 16), event: UInt16(truncatingIfNeeded: kind),
      link: UInt8(truncatingIfNeeded: kind >> 24), a: a, b: b, c: c,
      node: NodeID(high: UInt64(bigEndian: first), low: UInt64(bigEndian: second)))
  }

  private func wallOffset(of sequence: UInt64) -> Int64 {
    var offset: Int64 = 0
    let count = min(Int(truncatingIfNeeded: word(JournalLayout.baseCountOffset)), JournalLayout.clockBasesMax)
    var index = 0
    while index < count {
      let entry = base + (JournalLayout.basesOffset + index * JournalLayout.baseBytes)
      if index == 0 || entry.load(as: UInt64.self) <= sequence {
        offset = entry.load(fromByteOffset: 8, as: Int64.self)
      }
      index += 1
    }
    return offset
  }

  private func word(_ offset: Int) -> UInt64 {
    let pointer = UnsafeMutableRawPointer(mutating: base + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
    return pointer.pointee.load(ordering: .acquiring)
  }
}
