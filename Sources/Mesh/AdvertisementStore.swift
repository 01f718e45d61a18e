import Frame
import Primitives

/// The bytes of all stored advertisements, contiguous and without gaps. Most advertisements are far shorter than
/// `Limits.advertisementBytesMax`. The store touches only as many bytes of its memory as advertisements have used at
/// one time.
///
/// A renewal usually has the length of the advertisement that is replaced, and overwrites that advertisement. If a
/// renewal has a different length, the old bytes are removed, and the new bytes are appended. The removal moves all
/// bytes behind the removed bytes. In the worst case the removal moves all of the memory, which takes less time than
/// the preceding signature check.
struct AdvertisementStore {
  static let capacity = Limits.nodesMax * AdvertisementKind.count
  static let byteCount = Table<Extent, Int>.byteCount(capacity) + Arena.byteCount(bytesMax)
  private static let bytesMax = capacity * Limits.advertisementBytesMax

  /// The position of one advertisement in `memory`. `byteCount` is 0 if no advertisement is stored.
  private struct Extent {
    var first: UInt32 = 0
    var byteCount: UInt32 = 0
  }

  private let extents: Table<Extent, Int>
  private let memory: UnsafeMutableRawBufferPointer
  /// The number of bytes of all stored advertisements.
  private(set) var end = 0

  /// Allocates `byteCount` bytes from `arena`.
  init(in arena: inout Arena) {
    extents = Table(count: Self.capacity, in: &arena)
    extents.fill(Extent())
    memory = arena.take(Self.bytesMax)
  }

  /// The bytes of the advertisement with an index, or nil if none is stored. The bytes are valid until the store
  /// changes.
  subscript(index: Int) -> UnsafeRawBufferPointer? {
    let extent = extents[index]
    if extent.byteCount == 0 { return nil }
    return UnsafeRawBufferPointer(rebasing: memory[Int(extent.first)..<Int(extent.first + extent.byteCount)])
  }

  /// Stores `bytes` as the advertisement with an index. `bytes` has at most `Limits.advertisementBytesMax` bytes and is
  /// not part of this store.
  mutating func replace(_ index: Int, by bytes: RawSpan) {
    precondition(bytes.byteCount <= Limits.advertisementBytesMax)
    if Int(extents[index].byteCount) != bytes.byteCount {
      remove(index)
      extents[index] = Extent(first: UInt32(end), byteCount: UInt32(bytes.byteCount))
      end += bytes.byteCount
    }
    let first = Int(extents[index].first)
    bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: memory[first...]).copyMemory(from: $0) }
  }

  /// Removes the advertisement with an index, and closes the gap in `memory`.
  mutating func remove(_ index: Int) {
    let gone = extents[index]
    if gone.byteCount == 0 { return }
    let base = memory.baseAddress! + Int(gone.first)
    base.copyMemory(from: base + Int(gone.byteCount), byteCount: end - Int(gone.first + gone.byteCount))
    end -= Int(gone.byteCount)
    extents[index] = Extent()
    for other in extents.indices where extents[other].first > gone.first { extents[other].first -= gone.byteCount }
  }
}
