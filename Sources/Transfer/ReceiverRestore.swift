/// Resumes a partial (the stored part of an incomplete resource) from its journal. The journal lists the leaves (blocks
/// of 1 MiB) that should be on disk. The last 16 leaves are hashed again, because they may not have been synced before
/// a loss of power. The bytes after the last leaf of the incomplete file are hashed as well, because the journal has no
/// entry for them.
extension TransferReceiver {
  /// Applies the journal entries that are consistent with the manifest, and ignores all other entries.
  mutating func restore(_ manifest: Manifest) {
    var recent: [(file: Int, leaf: Int)] = []
    for entry in found {
      switch entry {
      case .leaf(let file, let leaf, let bytes, let digest):
        guard file < files.count, leaf == files[file].leaves.count else { continue }
        let rest = manifest.size(file: file) - files[file].bytes
        guard rest > 0, UInt64(bytes) == min(rest, UInt64(Tree.leafBytes)) else { continue }
        files[file].leaves.append(digest)
        files[file].bytes += UInt64(bytes)
        recent.append((file, leaf))
      case .whole(let file, let root):
        guard file < files.count, files[file].bytes == manifest.size(file: file) else { continue }
        files[file].isWhole = Tree.root(files[file].leaves) == root
      case .truncated(let file, let leaves):
        guard file < files.count, leaves <= files[file].leaves.count else { continue }
        files[file].leaves.removeLast(files[file].leaves.count - leaves)
        // The last leaf of a file may be shorter than `leafBytes`.
        files[file].bytes = min(UInt64(leaves) * UInt64(Tree.leafBytes), manifest.size(file: file))
        files[file].isWhole = false
        recent.removeAll { $0.file == file && $0.leaf >= leaves }
      case .placed(let item, let number):
        if item < numbers.count { numbers[item] = number }
      }
    }
    found = []
    // Items that were already moved to the destination directory are not checked, because the user may have changed
    // them.
    recent.removeAll { numbers[manifest.item(file: $0.file)] != nil }
    checks = Array(recent.suffix(TransferLimits.leavesChecked))
  }

  /// Requests the next read of the check: first each leaf in `checks`, and then the bytes after the last leaf of the
  /// incomplete file. After the last read, reports the stored bytes to the sender.
  mutating func check() {
    guard let manifest else { return }
    while !checks.isEmpty {
      let (file, leaf) = checks.removeFirst()
      guard leaf < files[file].leaves.count else { continue }
      return read(file, leaf, manifest)
    }
    // Files arrive one after another, so only the first incomplete file can have bytes.
    if let file = files.firstIndex(where: { !$0.isWhole }), current?.file != file {
      let leaves = files[file].leaves.prefix(Int(manifest.size(file: file) / UInt64(Tree.leafBytes)))
      files[file].leaves = Array(leaves)
      files[file].bytes = UInt64(leaves.count) * UInt64(Tree.leafBytes)
      current = (file, Tree(leaves: files[file].leaves))
      if files[file].bytes < manifest.size(file: file) { return read(file, leaves.count, manifest) }
    }
    reportHeld()
  }

  private mutating func read(_ file: Int, _ leaf: Int, _ manifest: Manifest) {
    let offset = UInt64(leaf) * UInt64(Tree.leafBytes)
    reading = (file, leaf)
    output.append(
      .read(
        file: file, offset: offset, count: Int(min(UInt64(Tree.leafBytes), manifest.size(file: file) - offset))))
  }

  /// Delivers the result of the last `read` command; fewer bytes if the file is shorter.
  public mutating func provide(_ bytes: [UInt8]) {
    guard phase == .checking, let (file, leaf) = reading, let manifest else { return }
    reading = nil
    if leaf < files[file].leaves.count {
      if Tree.leaf(bytes[...]) != files[file].leaves[leaf] { cut(file, leaf) }
      // If the file was truncated, `check` handles it again as the incomplete file.
      if !files[file].isWhole, current?.file == file { current = nil }
      return
    }
    append(file, bytes[...])
    if bytes.count == Tree.leafBytes, files[file].bytes < manifest.size(file: file) {
      read(file, leaf + 1, manifest)
    }
  }
}
