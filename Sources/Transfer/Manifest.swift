/// A file or folder of an offer.
public struct Entry: Equatable, Sendable {
  /// The legal names of its folders, outermost first, and its own, joined by `/`. A list of lists could take much more
  /// memory than the received bytes.
  public let path: [UInt8]
  /// The size in bytes; nil for a folder.
  public let size: UInt64?

  /// - Throws: `name`; `path` for no component or more than 64.
  public init(_ components: [[UInt8]], size: UInt64?) throws(TransferFault) {
    guard (1...TransferLimits.componentsMax).contains(components.count) else { throw .path }
    var path: [UInt8] = []
    for name in components {
      guard Names.isLegal(name) else { throw .name }
      if !path.isEmpty { path.append(Self.slash) }
      path += name
    }
    self.path = path
    self.size = size
  }

  public var components: [[UInt8]] { path.split(separator: Self.slash).map { Array($0) } }

  static let slash = UInt8(ascii: "/")

  /// The path of the enclosing folder; empty for an item.
  var parent: ArraySlice<UInt8> { path[..<(path.lastIndex(of: Self.slash) ?? 0)] }

  /// Compares component by component: `/` ranks below every byte of a name.
  static func precedes(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    func rank(_ byte: UInt8) -> UInt8 { byte == slash ? 0 : byte }
    for (one, other) in zip(a, b) where one != other { return rank(one) < rank(other) }
    return a.count < b.count
  }
}

/// A file or folder that was offered, with its content. It is placed as a whole.
public struct Item: Equatable, Sendable {
  /// Its entries in the manifest. The first one is the item itself.
  public let entries: Range<Int>
  public let files: Range<Int>
}

/// The files and folders of an offer, ordered by path, component by component. Files are numbered in this order.
public struct Manifest: Equatable, Sendable {
  public let entries: [Entry]
  public let bytes: [UInt8]
  public let digest: Digest
  /// The indices of the entries that are files.
  public let files: [Int]
  public let items: [Item]
  /// Bytes of all files.
  public let byteCount: UInt64

  /// Creates a manifest, and sorts the entries.
  public init(_ entries: [Entry]) throws(TransferFault) {
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

  /// Parses the manifest of an offer, and checks it against the offer.
  public init(_ bytes: [UInt8], _ offer: OfferRecord) throws(TransferFault) {
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

  /// Checks that the entries are in order and that each is in the open folder. So a duplicate path, and an entry below
  /// a file, is found by comparing neighbours.
  private init(_ entries: [Entry], _ bytes: [UInt8]) throws(TransferFault) {
    guard (1...TransferLimits.entriesMax).contains(entries.count) else { throw .entries }
    var files: [Int] = [], items: [Item] = [], byteCount: UInt64 = 0
    var folder: ArraySlice<UInt8> = [], before: [UInt8] = [], begin = (entry: 0, file: 0)
    for (index, entry) in entries.enumerated() {
      let parent = entry.parent
      // In this order the open folder cannot be one whose name merely starts with the parent's name.
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

  /// The item that contains a file.
  public func item(file: Int) -> Int {
    var low = 0, high = items.count - 1
    while low < high {
      let middle = (low + high) / 2
      if items[middle].files.upperBound > file { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The name of an item at its sender.
  public func name(item: Int) -> [UInt8] { entries[items[item].entries.lowerBound].path }
}
