/// Allocates parts of one piece of memory, in sequence. Each part begins at a multiple of `alignment` bytes.
public struct Arena {
  /// The size of a cache line, in bytes. No record needs a greater alignment.
  public static let alignment = 64
  private var rest: UnsafeMutableRawBufferPointer

  /// `memory` must be aligned to `alignment` and outlive everything allocated from the arena.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(Int(bitPattern: memory.baseAddress) % Self.alignment == 0)
    rest = memory
  }

  /// The bytes that a part of `byteCount` bytes takes up, including alignment.
  public static func byteCount(_ byteCount: Int) -> Int { (byteCount + alignment - 1) / alignment * alignment }

  /// Allocates `byteCount` bytes. Traps when fewer bytes are left.
  public mutating func take(_ byteCount: Int) -> UnsafeMutableRawBufferPointer {
    let taken = Self.byteCount(byteCount)
    precondition(byteCount >= 0 && taken <= rest.count)
    defer { rest = UnsafeMutableRawBufferPointer(rebasing: rest[taken...]) }
    return UnsafeMutableRawBufferPointer(rebasing: rest[..<byteCount])
  }
}

/// A fixed number of records in memory that the caller provides, accessed by a checked index.
///
/// Copies of a table share the records. `Record` must be a trivial type, without a destructor. A record must be
/// assigned before the first read, because the table does not initialise its memory.
@frozen
public struct Table<Record, Index: FixedWidthInteger> {
  @usableFromInline let base: UnsafeMutablePointer<Record>
  public let count: Int

  /// `Index` must be able to represent `count`. The caller can use this index, which is out of range, for "no record".
  public init(count: Int, in arena: inout Arena) {
    precondition(_isPOD(Record.self) && MemoryLayout<Record>.alignment <= Arena.alignment)
    precondition(count > 0 && UInt64(count) <= UInt64(Index.max))
    base = arena.take(count * MemoryLayout<Record>.stride).bindMemory(to: Record.self).baseAddress!
    self.count = count
  }

  /// The bytes that `count` records take up in an arena.
  public static func byteCount(_ count: Int) -> Int { Arena.byteCount(count * MemoryLayout<Record>.stride) }

  public var indices: Range<Int> { 0..<count }

  /// The record at `index`. Traps when the index is out of range.
  @inlinable public subscript(index: Index) -> Record {
    unsafeAddress { UnsafePointer(address(index)) }
    nonmutating unsafeMutableAddress { address(index) }
  }

  /// Assigns `record` to all records.
  public func fill(_ record: Record) { base.initialize(repeating: record, count: count) }

  @inlinable func address(_ index: Index) -> UnsafeMutablePointer<Record> {
    precondition(index >= 0 && Int(index) < count)
    return base + Int(index)
  }
}

/// A fixed number of byte strings of equal length, accessed by a checked index. Copies of a table share the bytes.
public struct ByteTable<Index: FixedWidthInteger> {
  private let memory: UnsafeMutableRawBufferPointer
  private let recordBytes: Int
  public let count: Int

  public init(count: Int, recordBytes: Int, in arena: inout Arena) {
    precondition(count > 0 && UInt64(count) <= UInt64(Index.max) && recordBytes > 0)
    memory = arena.take(count * recordBytes)
    self.recordBytes = recordBytes
    self.count = count
  }

  /// The bytes that `count` strings take up in an arena.
  public static func byteCount(_ count: Int, recordBytes: Int) -> Int { Arena.byteCount(count * recordBytes) }

  /// The string at `index`. Traps when the index is out of range.
  public subscript(index: Index) -> UnsafeMutableRawBufferPointer {
    precondition(index >= 0 && Int(index) < count)
    let start = Int(index) * recordBytes
    return UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + recordBytes])
  }
}
