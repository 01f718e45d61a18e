import Frame
import Primitives

/// The bytes of the advertisements that are held: one behind the other without gaps, so that only as much memory is ever
/// touched as there were bytes at once. Most advertisements are far shorter than the longest one.
///
/// A new advertisement of the same length, which most renewals are, takes the place of the old one. One of another length
/// moves what lies behind it: all of the memory at worst, which is less work than the check of the signature before it.
struct AdvertisementStore {
  static let places = Limits.nodesMax * AdvertisementKind.count
  static let byteCount = Table<Extent, Int>.byteCount(places) + Arena.byteCount(bytesMax)
  private static let bytesMax = places * Limits.advertisementBytesMax

  /// Where an advertisement lies; no bytes when none is held.
  private struct Extent {
    var first: UInt32 = 0
    var byteCount: UInt32 = 0
  }

  private let extents: Table<Extent, Int>
  private let memory: UnsafeMutableRawBufferPointer
  /// Bytes of all advertisements.
  private(set) var end = 0

  /// Takes `byteCount` bytes of `arena`.
  init(in arena: inout Arena) {
    extents = Table(count: Self.places, in: &arena)
    extents.fill(Extent())
    memory = arena.take(Self.bytesMax)
  }

  /// The bytes at a place, valid until the next change of any; nil when none are there.
  subscript(place: Int) -> UnsafeRawBufferPointer? {
    let extent = extents[place]
    if extent.byteCount == 0 { return nil }
    return UnsafeRawBufferPointer(rebasing: memory[Int(extent.first)..<Int(extent.first + extent.byteCount)])
  }

  /// Copies `bytes` to a place, at most `Limits.advertisementBytesMax` and not of this store.
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

  /// Frees a place. What lies behind its bytes moves up.
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
