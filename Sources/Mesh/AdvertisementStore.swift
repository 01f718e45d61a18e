import Frame
import Primitives

/// The bytes of all stored advertisements, contiguous and without gaps. Most advertisements are far shorter than the
/// longest, so the store touches only as much memory as it has held at once.
///
/// A new advertisement of the same length, as most renewals are, replaces the old one in place. One of another length
/// moves the bytes after it. At worst that is all of the memory, which is less work than the signature check before it.
struct AdvertisementStore {
  static let places = Limits.nodesMax * AdvertisementKind.count
  static let byteCount = Table<Extent, Int>.byteCount(places) + Arena.byteCount(bytesMax)
  private static let bytesMax = places * Limits.advertisementBytesMax

  /// The position of an advertisement. It has no bytes when none is stored.
  private struct Extent {
    var first: UInt32 = 0
    var byteCount: UInt32 = 0
  }

  private let extents: Table<Extent, Int>
  private let memory: UnsafeMutableRawBufferPointer
  /// The number of bytes of all advertisements.
  private(set) var end = 0

  /// Allocates `byteCount` bytes from `arena`.
  init(in arena: inout Arena) {
    extents = Table(count: Self.places, in: &arena)
    extents.fill(Extent())
    memory = arena.take(Self.bytesMax)
  }

  /// The bytes at a place, or nil if it is empty. They are valid until the store changes.
  subscript(place: Int) -> UnsafeRawBufferPointer? {
    let extent = extents[place]
    if extent.byteCount == 0 { return nil }
    return UnsafeRawBufferPointer(rebasing: memory[Int(extent.first)..<Int(extent.first + extent.byteCount)])
  }

  /// Copies `bytes` to a place. They are at most `Limits.advertisementBytesMax` and not part of this store.
  mutating func replace(_ place: Int, by bytes: RawSpan) {
    precondition(bytes.byteCount <= Limits.advertisementBytesMax)
    if Int(extents[place].byteCount) != bytes.byteCount {
      remove(place)
      extents[place] = Extent(first: UInt32(end), byteCount: UInt32(bytes.byteCount))
      end += bytes.byteCount
    }
    let first = Int(extents[place].first)
    bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: memory[first...]).copyMemory(from: $0) }
  }

  /// Frees a place and closes the gap.
  mutating func remove(_ place: Int) {
    let gone = extents[place]
    if gone.byteCount == 0 { return }
    let base = memory.baseAddress! + Int(gone.first)
    base.copyMemory(from: base + Int(gone.byteCount), byteCount: end - Int(gone.first + gone.byteCount))
    end -= Int(gone.byteCount)
    extents[place] = Extent()
    for other in extents.indices where extents[other].first > gone.first { extents[other].first -= gone.byteCount }
  }
}
