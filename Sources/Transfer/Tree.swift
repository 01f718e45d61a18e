/// The Merkle hash tree of RFC 6962, section 2.1, over the bytes of a file. A leaf is a block of 1 MiB; the last leaf
/// may be shorter. The input of a leaf hash begins with a byte 0, that of a node hash with a byte 1. Bytes are hashed
/// on arrival, so the root is known once the last byte has arrived.
public struct Tree: Equatable, Sendable {
  public static let leafBytes = 1_048_576

  /// The hashes of complete leaves.
  public private(set) var leaves: [Digest] = []
  private var last = Self.emptyLeaf
  /// The number of bytes after the last complete leaf, 0 to 1,048,575.
  private var lastBytes = 0

  public init() {}

  /// Creates a tree from the hashes of complete leaves.
  public init(leaves: [Digest]) { self.leaves = leaves }

  /// The number of bytes hashed so far.
  public var byteCount: UInt64 { UInt64(leaves.count) * UInt64(Self.leafBytes) + UInt64(lastBytes) }

  public mutating func append(_ bytes: ArraySlice<UInt8>) {
    var rest = bytes
    while !rest.isEmpty {
      let part = rest.prefix(Self.leafBytes - lastBytes)
      last.update(part)
      lastBytes += part.count
      rest = rest.dropFirst(part.count)
      if lastBytes == Self.leafBytes {
        leaves.append(last.digest())
        (last, lastBytes) = (Self.emptyLeaf, 0)
      }
    }
  }

  public mutating func append(_ bytes: [UInt8]) { append(bytes[...]) }

  /// Removes all bytes after this number of complete leaves.
  public mutating func truncate(leaves count: Int) {
    if count < leaves.count { leaves.removeLast(leaves.count - count) }
    (last, lastBytes) = (Self.emptyLeaf, 0)
  }

  /// The hashes of all leaves, including a shorter last leaf.
  public var allLeaves: [Digest] { lastBytes == 0 ? leaves : leaves + [last.digest()] }

  /// The root of the tree over all bytes so far.
  public var root: Digest { Self.root(allLeaves) }

  public static func leaf(_ bytes: ArraySlice<UInt8>) -> Digest {
    var hash = emptyLeaf
    hash.update(bytes)
    return hash.digest()
  }

  /// The root of the tree with these leaf hashes.
  public static func root(_ leaves: [Digest]) -> Digest {
    // The complete subtrees so far, whose sizes are different powers of two, largest first.
    var subtrees: [(leaves: Int, digest: Digest)] = []
    for leaf in leaves {
      var (count, digest) = (1, leaf)
      while let before = subtrees.last, before.leaves == count {
        digest = node(before.digest, digest)
        count *= 2
        subtrees.removeLast()
      }
      subtrees.append((count, digest))
    }
    guard var root = subtrees.popLast()?.digest else { return SHA256().digest() }
    while let before = subtrees.popLast() { root = node(before.digest, root) }
    return root
  }

  public static func == (a: Tree, b: Tree) -> Bool { a.byteCount == b.byteCount && a.allLeaves == b.allLeaves }

  private static let emptyLeaf: SHA256 = {
    var hash = SHA256()
    hash.update([0])
    return hash
  }()

  private static func node(_ left: Digest, _ right: Digest) -> Digest {
    var hash = SHA256()
    hash.update([1])
    hash.update(left.bytes)
    hash.update(right.bytes)
    return hash.digest()
  }
}
