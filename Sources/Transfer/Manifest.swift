/// A file or folder in an offer (the message that announces the files to be sent).
public struct Entry: Equatable, Sendable {
  /// The names of the enclosing folders, outermost first, and the entry's own name, joined by `/`. All names are legal.
  /// The path is one array, because an array of arrays could need much more memory than the received bytes.
  public let path: [UInt8]
  /// The size in bytes; nil for a folder.
  public let size: UInt64?

  /// - Throws: `name` if a component is not a legal name; `path` if there is no component, or more than 64.
  public init(_ components: [[UInt8]], size: UInt64?) throws(TransferError) {
    guard (1...TransferLimits.componentsMax).contains(components.count) else { throw .path }
    var path: [UInt8] = []
    for name in components {
      guard FileNames.isLegal(name) else { throw .name }
      if !path.isEmpty { path.append(Self.slash) }
      path += name
    }
    self.path = path
    self.size = size
  }

  public var components: [[UInt8]] { path.split(separator: Self.slash).map { Array($0) } }

  static let slash = UInt8(ascii: "/")

  /// The path of the enclosing folder; empty for an entry at the top level.
  var parent: ArraySlice<UInt8> { path[..<(path.lastIndex(of: Self.slash) ?? 0)] }

  /// Whether path `a` comes before path `b`. Paths are compared name by name. For this comparison, `/` is less than
  /// every byte of a name.
  static func precedes(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    func rank(_ byte: UInt8) -> UInt8 { byte == slash ? 0 : byte }
    for (one, other) in zip(a, b) where one != other { return rank(one) < rank(other) }
    return a.count < b.count
  }
}

/// A file or folder at the top level of an offer, with everything in it. An item is moved to the destination directory
/// in one step, when all its files are complete.
public struct Item: Equatable, Sendable {
  /// The indexes of the item's entries in the manifest. The first entry is the item itself.
  public let entries: Range<Int>
  public let files: Range<Int>
}

/// The list of all files and folders of an offer, ordered by path, name by name. Files are numbered in this order, from
/// 0.
public struct Manifest: Equatable, Sendable {
  public let entries: [Entry]
  public let bytes: [UInt8]
  public let digest: Digest
  /// The indices of the entries that are files.
  public let files: [Int]
  public let items: [Item]
  /// The sum of the sizes of all files, in bytes.
  public let byteCount: UInt64

  /// Creates a manifest from entries in any order.
  public init(_ entries: [Entry]) throws(TransferError) {
    let sorted = Self.order(entries).map { entries[$0] }
    var fields = FieldWriter()
    for entry in sorted {
      let components = entry.components
      fields.put(UInt8(entry.size == nil ? 1 : 0))
      fields.put(UInt8(components.count))
      for name in components { fields.put(text: name) }
      if let size = entry.size { fields.put(size) }
      guard fields.bytes.count <= TransferLimits.manifestBytesMax else { throw .manifestLength }
    }
    try self.init(sorted, fields.bytes)
  }

  /// The indices of the entries in the order of a manifest.
  public static func order(_ entries: [Entry]) -> [Int] {
    entries.indices.sorted { Entry.precedes(entries[$0].path, entries[$1].path) }
  }

  /// Parses a received manifest, and checks its length, counts, sizes and digest against the offer.
  public init(_ bytes: [UInt8], _ offer: OfferRecord) throws(TransferError) {
    guard bytes.count == offer.manifestBytes else { throw .manifestLength }
    var fields = FieldReader(bytes[...]), entries: [Entry] = []
    while !fields.rest.isEmpty {
      guard entries.count < offer.entries else { throw .entries }
      let isFolder = try fields.byte()
      guard isFolder <= 1 else { throw .recordField }
      let depth = Int(try fields.byte())
      guard (1...TransferLimits.componentsMax).contains(depth) else { throw .path }
      var components: [[UInt8]] = []
      for _ in 0..<depth { components.append(try fields.name()) }
      entries.append(try Entry(components, size: isFolder == 1 ? nil : try fields.long()))
    }
    try self.init(entries, bytes)
    guard entries.count == offer.entries, files.count == offer.files else { throw .entries }
    guard byteCount == offer.bytes else { throw .sizes }
    guard digest == offer.manifest else { throw .manifestDigest }
  }

  /// Creates a manifest from entries that must be in order. The enclosing folder of each entry must be the preceding
  /// folder, or enclose it. So a comparison with the preceding entry detects a duplicate path, and an entry below a
  /// file.
  private init(_ entries: [Entry], _ bytes: [UInt8]) throws(TransferError) {
    guard (1...TransferLimits.entriesMax).contains(entries.count) else { throw .entries }
    var files: [Int] = [], items: [Item] = [], byteCount: UInt64 = 0
    var folder: ArraySlice<UInt8> = [], before: [UInt8] = [], begin = (entry: 0, file: 0)
    for (index, entry) in entries.enumerated() {
      let parent = entry.parent
      // A comparison of bytes is sufficient here. In a sorted list, `folder` cannot be another folder whose name merely
      // begins with the name of `parent`.
      guard Entry.precedes(before, entry.path), folder.starts(with: parent) else { throw .path }
      if parent.isEmpty && index > 0 {
        items.append(Item(entries: begin.entry..<index, files: begin.file..<files.count))
        begin = (index, files.count)
      }
      if let size = entry.size {
        guard size <= TransferLimits.bytesMax, byteCount + size <= TransferLimits.bytesMax else { throw .sizes }
        byteCount += size
        files.append(index)
        folder = parent
      } else {
        folder = entry.path[...]
      }
      before = entry.path
    }
    items.append(Item(entries: begin.entry..<entries.count, files: begin.file..<files.count))
    self.entries = entries
    self.bytes = bytes
    self.files = files
    self.items = items
    self.byteCount = byteCount
    digest = SHA256.digest(bytes)
  }

  public func size(file: Int) -> UInt64 { entries[files[file]].size ?? 0 }

  /// The number of the item that contains a file.
  public func item(file: Int) -> Int {
    var low = 0, high = items.count - 1
    while low < high {
      let middle = (low + high) / 2
      if items[middle].files.upperBound > file { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The name that an item has at its sender.
  public func name(item: Int) -> [UInt8] { entries[items[item].entries.lowerBound].path }
}
