/// A file or folder of an offer.
public struct Entry: Equatable, Sendable {
  /// Folders from the outermost one on, and its own name, each a legal name, with `/` between them. Kept so because a
  /// list of lists could take much more memory than the bytes that came.
  public let path: [UInt8]
  /// In bytes; nil for a folder.
  public let size: UInt64?

  /// - Throws: `name`; `path` with none, or more than 64.
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

  /// Of the folder that it is in; empty for what was offered itself.
  var parent: ArraySlice<UInt8> { path[..<(path.lastIndex(of: Self.slash) ?? 0)] }

  /// Component by component: no name has a byte below `/` that stands for one.
  static func precedes(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    func rank(_ byte: UInt8) -> UInt8 { byte == slash ? 0 : byte }
    for (one, other) in zip(a, b) where one != other { return rank(one) < rank(other) }
    return a.count < b.count
  }
}

/// Something that is placed as a whole: one of the files and folders that were offered, with what is in it.
public struct Item: Equatable, Sendable {
  /// Its entries in the manifest; the first one is itself.
  public let entries: Range<Int>
  public let files: Range<Int>
}

/// The files and folders of an offer, in the order of their paths, folder by folder. Files have numbers in this order.
public struct Manifest: Equatable, Sendable {
  public let entries: [Entry]
  public let bytes: [UInt8]
  public let digest: Digest
  /// The entries of files.
  public let files: [Int]
  public let items: [Item]
  /// Of all files.
  public let byteCount: UInt64

  /// Puts them in order.
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

  /// The places of entries in the order of a manifest.
  public static func order(_ entries: [Entry]) -> [Int] {
    entries.indices.sorted { Entry.precedes(entries[$0].path, entries[$1].path) }
  }

  /// Reads what was offered.
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

  /// In their order, so that a path that is there twice is found as its neighbour, and what is below a file too: each is
  /// in a folder that is open.
  private init(_ entries: [Entry], _ bytes: [UInt8]) throws(TransferFault) {
    guard (1...TransferLimits.entriesMax).contains(entries.count) else { throw .entries }
    var files: [Int] = [], items: [Item] = [], byteCount: UInt64 = 0
    var folder: ArraySlice<UInt8> = [], before: [UInt8] = [], begin = (entry: 0, file: 0)
    for (index, entry) in entries.enumerated() {
      let parent = entry.parent
      // In this order a folder that only begins like the parent's name cannot be the one that is open.
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

  /// The item that a file is part of.
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
