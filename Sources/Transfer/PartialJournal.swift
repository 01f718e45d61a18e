/// What a receiver notes of a resource that is not whole yet, so that it can go on after a restart: a header, and entries
/// of 56 bytes that are only appended. One that was not written whole, and all behind it, does not count.
///
///     header: “CWPART1\n” · SHA-256 of the manifest (32)
///     entry: kind (1) · 0 (3) · file or item (4) · leaf or number (4) · bytes (4) · hash (32) · first 8 bytes of the
///     SHA-256 of all this
public enum PartialJournal {
  /// A line of the journal.
  public enum Entry: Equatable, Sendable {
    /// A leaf of a file was written.
    case leaf(file: Int, leaf: Int, bytes: Int, Digest)
    /// A file is whole, and has this root.
    case whole(file: Int, root: Digest)
    /// Behind so many leaves a file is written anew.
    case truncated(file: Int, leaves: Int)
    /// An item stands in its place, as the n-th of its name.
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

    /// Nil for what was not written whole, or is of another version.
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

  /// The entries, and how many bytes of the journal count. Nil when it is of another resource, or none.
  public static func read(_ bytes: [UInt8], _ manifest: Digest) -> (entries: [Entry], bytes: Int)? {
    let header = header(manifest)
    guard bytes.count >= header.count, Array(bytes[..<header.count]) == header else { return nil }
    var entries: [Entry] = [], place = header.count
    while place + entryBytes <= bytes.count, let entry = Entry(bytes[place..<(place + entryBytes)]) {
      entries.append(entry)
      place += entryBytes
    }
    return (entries, place)
  }

  /// So many bytes of the resource are there, as far as leaves were noted.
  public static func bytesHeld(_ entries: [Entry]) -> UInt64 {
    // Files come one after the other: only the last one is ever written anew behind a leaf. What begins again earlier
    // is counted as if it were not there.
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
