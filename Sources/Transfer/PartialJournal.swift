/// The receiver's journal of an incomplete resource, from which a restarted receiver resumes. The journal lists which
/// leaves (blocks of 1 MiB, see `Tree`) were written. A journal is a header and entries of 56 bytes, which are only
/// appended. A reader ignores an incomplete or damaged entry and all entries after it.
///
///     header: “CWPART1\n” · SHA-256 of the manifest (32)
///     entry: kind (1) · 0 (3) · file or item (4) · leaf or number (4) · bytes (4) · hash (32) · first 8 bytes of the
///     SHA-256 of all this
public enum PartialJournal {
  /// An entry of the journal.
  public enum Entry: Equatable, Sendable {
    /// A leaf of a file was written. `bytes` is the size of the leaf; the digest is its hash.
    case leaf(file: Int, leaf: Int, bytes: Int, Digest)
    /// A file is complete. `root` is the root of the hash tree over the file.
    case whole(file: Int, root: Digest)
    /// The leaves of a file from this number on are discarded and will be written again.
    case truncated(file: Int, leaves: Int)
    /// An item was moved to the destination directory. `number` is the number in its name (`FileNames.numbered`).
    case placed(item: Int, number: Int)

    public var encoded: [UInt8] {
      var fields = FieldWriter()
      let (kind, a, b, bytes, digest): (UInt8, Int, Int, Int, Digest?) =
        switch self {
        case .leaf(let file, let leaf, let bytes, let digest): (1, file, leaf, bytes, digest)
        case .whole(let file, let root): (2, file, 0, 0, root)
        case .truncated(let file, let leaves): (3, file, leaves, 0, nil)
        case .placed(let item, let number): (4, item, number, 0, nil)
        }
      fields.put([kind, 0, 0, 0])
      fields.put(UInt32(truncatingIfNeeded: a))
      fields.put(UInt32(truncatingIfNeeded: b))
      fields.put(UInt32(truncatingIfNeeded: bytes))
      fields.put(digest?.bytes ?? [UInt8](repeating: 0, count: Digest.byteCount))
      fields.put(Array(SHA256.digest(fields.bytes).bytes.prefix(8)))
      return fields.bytes
    }

    /// Parses an entry. Returns nil if the entry is incomplete, damaged or of an unknown kind.
    init?(_ bytes: ArraySlice<UInt8>) {
      var fields = FieldReader(bytes)
      guard SHA256.digest(Array(bytes.prefix(48))).bytes.prefix(8) == bytes.suffix(8), let kind = try? fields.byte(),
        (try? fields.bytes(3)) != nil, let a = try? fields.word(), let b = try? fields.word(),
        let count = try? fields.word(), let digest = try? fields.digest()
      else { return nil }
      switch kind {
      case 1 where count <= Tree.leafBytes: self = .leaf(file: Int(a), leaf: Int(b), bytes: Int(count), digest)
      case 2: self = .whole(file: Int(a), root: digest)
      case 3: self = .truncated(file: Int(a), leaves: Int(b))
      case 4: self = .placed(item: Int(a), number: Int(b))
      default: return nil
      }
    }
  }

  public static let entryBytes = 56
  private static let magic = Array("CWPART1\n".utf8)

  public static func header(_ manifest: Digest) -> [UInt8] { magic + manifest.bytes }

  /// Parses a journal. Returns the entries, and the number of bytes up to the end of the last valid entry. Returns nil
  /// if the journal belongs to another resource, or the bytes are not a journal.
  public static func read(_ bytes: [UInt8], _ manifest: Digest) -> (entries: [Entry], bytes: Int)? {
    let header = header(manifest)
    guard bytes.count >= header.count, Array(bytes[..<header.count]) == header else { return nil }
    var entries: [Entry] = [], offset = header.count
    while offset + entryBytes <= bytes.count, let entry = Entry(bytes[offset..<(offset + entryBytes)]) {
      entries.append(entry)
      offset += entryBytes
    }
    return (entries, offset)
  }

  /// The number of file bytes that a journal records as written.
  public static func bytesHeld(_ entries: [Entry]) -> UInt64 {
    // Files arrive one after another, so normally only the file that arrived last is truncated. If an earlier file is
    // truncated, the later files are no longer counted either.
    var bytes: [(file: Int, leaf: Int, bytes: Int)] = []
    for entry in entries {
      switch entry {
      case .leaf(let file, let leaf, let count, _): bytes.append((file, leaf, count))
      case .truncated(let file, let leaves):
        while let last = bytes.last, last.file > file || (last.file == file && last.leaf >= leaves) {
          bytes.removeLast()
        }
      case .whole, .placed: break
      }
    }
    return bytes.reduce(0) { $0 + UInt64($1.bytes) }
  }
}
