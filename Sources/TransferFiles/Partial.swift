import Transfer

/// The received part of an incomplete resource: a hidden folder in the destination directory, which contains the files
/// and a journal. Only one transfer can use a partial at a time. A partial is deleted 24 hours after its last change.
/// See docs/resources.md, “Partials”.
public struct Partial: Sendable {
  private let destination: OpenFile
  private let name: [UInt8]
  private let folder: OpenFile
  private let files: OpenFile
  private let journal: OpenFile
  private let lock: FileLock
  private var journalBytes: UInt64 = 0
  private var open: (file: Int, descriptor: OpenFile)?

  /// The time after the last change at which a partial can be deleted: 24 hours.
  private static let keptNanoseconds: Int64 = 86_400_000_000_000
  private static let filesName = Array("files".utf8), journalName = Array("journal".utf8)

  /// The name of the folder for the partial of this offer. `sender` is the sender's address.
  static func name(_ offer: OfferRecord, from sender: [UInt8]) -> [UInt8] {
    var hash = SHA256()
    hash.update(sender)
    hash.update(offer.manifest.bytes)
    return FileNames.partial(offer.name, hash.digest())
  }

  /// Opens the partial with this name, or creates it. Returns nil if another transfer uses the partial.
  init?(_ destination: OpenFile, _ name: [UInt8]) throws(FileError) {
    self.destination = destination
    self.name = name
    folder = try Self.folder(name, in: destination)
    files = try Self.folder(Self.filesName, in: folder)
    journal = try Files.write(Self.journalName, in: folder)
    guard let lock = FileLock(journal) else { return nil }
    self.lock = lock
  }

  private static func folder(_ name: [UInt8], in parent: OpenFile) throws(FileError) -> OpenFile {
    do throws(FileError) {
      try Files.makeFolder(name, in: parent)
    } catch {
      guard error.isThere else { throw error }
    }
    return try Files.folder(name, in: parent)
  }

  /// Removes partials whose last change was more than 24 hours ago and that no transfer uses.
  static func removeOld(in destination: OpenFile) {
    guard let names = try? Files.names(in: destination, max: 65_536) else { return }
    for name in names where FileNames.isPartial(name) {
      guard let folder = try? Files.folder(name, in: destination) else { continue }
      var lock: FileLock?
      if let journal = try? Files.read(journalName, in: folder) {
        lock = FileLock(journal)
        guard let changed = try? Files.information(journal).changed, lock != nil else { continue }
        guard Files.now &- changed > keptNanoseconds else { continue }
      } else {
        guard let changed = try? Files.information(folder).changed else { continue }
        guard Files.now &- changed > keptNanoseconds else { continue }
      }
      withExtendedLifetime(lock) { try? Files.removeAll(name, in: destination) }
    }
  }

  /// The content of a partial's journal; empty if there is no journal. Nothing is created or locked.
  static func journal(_ name: [UInt8], in destination: OpenFile) -> [UInt8] {
    guard let folder = try? Files.folder(name, in: destination), let file = try? Files.read(journalName, in: folder),
      let bytes = try? Files.read(file, offset: 0, count: size(file))
    else { return [] }
    return bytes
  }

  /// The number of bytes that an interrupted transfer of this offer has left in a directory. nil if the directory has
  /// no partial of this offer.
  public static func bytesHeld(_ offer: OfferRecord, from sender: [UInt8], in directory: String) -> UInt64? {
    guard let folder = try? Files.folder(path: directory) else { return nil }
    let journal = journal(name(offer, from: sender), in: folder)
    return PartialJournal.read(journal, offer.manifest).map { PartialJournal.bytesHeld($0.entries) }
  }

  private static func size(_ file: OpenFile) -> Int {
    Int(min((try? Files.information(file).size) ?? 0, UInt64(TransferLimits.journalBytesMax)))
  }

  func journalContent() throws(FileError) -> [UInt8] {
    try Files.read(journal, offset: 0, count: Self.size(journal))
  }

  /// Truncates the journal to its valid bytes. nil discards all entries, so that the stored files are received again.
  mutating func begin(journalBytes valid: Int?) throws(FileError) {
    journalBytes = UInt64(valid ?? 0)
    try Files.truncate(journal, to: journalBytes)
  }

  /// Appends bytes to the journal.
  mutating func note(_ bytes: [UInt8]) throws(FileError) {
    try Files.write(journal, offset: journalBytes, bytes)
    journalBytes += UInt64(bytes.count)
  }

  func makeFolders(_ manifest: Manifest) throws(FileError) {
    for entry in manifest.entries where entry.size == nil {
      let components = entry.components
      _ = try Self.folder(components[components.count - 1], in: try Files.folder(components.dropLast(), in: files))
    }
  }

  /// Opens a file of the resource, and creates the file if it does not exist.
  private mutating func file(_ file: Int, _ manifest: Manifest) throws(FileError) -> OpenFile {
    if let open, open.file == file { return open.descriptor }
    let components = manifest.entries[manifest.files[file]].components
    let folder = try Files.folder(components.dropLast(), in: files)
    let descriptor = try Files.write(components[components.count - 1], in: folder)
    guard try Files.information(descriptor).isFile else { throw FileError(saying: "it is not a regular file") }
    open = (file, descriptor)
    return descriptor
  }

  mutating func write(_ file: Int, _ offset: UInt64, _ bytes: [UInt8], _ manifest: Manifest) throws(FileError) {
    try Files.write(try self.file(file, manifest), offset: offset, bytes)
  }

  mutating func truncate(_ file: Int, _ bytes: UInt64, _ manifest: Manifest) throws(FileError) {
    try Files.truncate(try self.file(file, manifest), to: bytes)
  }

  mutating func read(_ file: Int, _ offset: UInt64, _ count: Int, _ manifest: Manifest) -> [UInt8] {
    guard let descriptor = try? self.file(file, manifest) else { return [] }
    return (try? Files.read(descriptor, offset: offset, count: count)) ?? []
  }

  mutating func keep(_ file: Int, isLast: Bool, _ manifest: Manifest) throws(FileError) {
    try Files.sync(try self.file(file, manifest))
    try Files.sync(journal)
    if isLast { open = nil }
  }

  /// Moves an item to the destination directory. Returns the number in its name there (`FileNames.numbered`).
  mutating func place(_ item: Int, _ manifest: Manifest) throws(FileError) -> Int {
    open = nil
    let name = manifest.name(item: item), visible = FileNames.visible(name)
    let isFolder = manifest.entries[manifest.items[item].entries.lowerBound].size == nil
    for number in 1...TransferLimits.numberMax {
      let free = FileNames.numbered(visible, number)
      if try Files.move(name, in: files, to: free, in: destination, isFolder: isFolder) {
        Files.syncFolder(destination)
        return number
      }
    }
    throw FileError(saying: "there are already \(TransferLimits.numberMax) files of this name")
  }

  /// Removes the partial from disk.
  mutating func remove() {
    open = nil
    try? Files.removeAll(name, in: destination)
  }
}
