import Testing

@testable import Transfer

/// The leaves that tests of Certificate Transparency use, and the root of the tree over the first n leaves.
private let leaves: [[UInt8]] = [
  [], [0x00], [0x10], [0x20, 0x21], [0x30, 0x31], Array(0x40...0x43), Array(0x50...0x57), Array(0x60...0x6f),
]
private let roots = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]

/// A file of 2.5 MiB.
private let pattern = (0..<2_621_440).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

@Test func `the tree of RFC 6962 has the roots of its known leaves`() {
  for count in 0...leaves.count {
    #expect(hex(Tree.root(leaves[..<count].map { Tree.leaf($0[...]) }).bytes) == roots[count], "\(count) leaves")
  }
}

@Test func `a file is hashed in leaves of 1 MiB, whatever the size of its pieces`() {
  var whole = Tree(), pieces = Tree()
  whole.append(pattern)
  for start in stride(from: 0, to: pattern.count, by: 300_007) {
    pieces.append(pattern[start..<min(start + 300_007, pattern.count)])
  }
  #expect(hex(whole.root.bytes) == "d25465919055d0c6c733d24ae740b6a9dfd8a167a7d31da6fdefd6c155a774fd")
  #expect(pieces == whole && whole.leaves.count == 2 && whole.allLeaves.count == 3)
  #expect(whole.byteCount == 2_621_440)
  #expect(whole.allLeaves[2] == Tree.leaf(pattern[2_097_152...]))
}

@Test func `a tree is truncated to complete leaves and continues from there`() {
  var tree = Tree()
  tree.append(pattern)
  let root = tree.root
  tree.truncate(leaves: 1)
  #expect(tree.byteCount == 1_048_576)
  tree.append(pattern[1_048_576...])
  #expect(tree.root == root)
  #expect(Tree(leaves: Array(tree.leaves[..<1])).root == tree.leaves[0])
}
