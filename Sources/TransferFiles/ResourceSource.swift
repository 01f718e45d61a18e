import Transfer

/// The reason why files cannot be offered or received.
public struct ResourceError: Error {
  /// The kind of error.
  public enum Reason: Sendable {
    /// The argument names nothing that can be offered.
    case invalid
    case storage
    case noSpace
    /// Another transfer is receiving the same resource into the same directory.
    case busy
    /// A required program is not installed.
    case unsupported
    /// A server is unreachable, or does not have the file.
    case outOfReach
    case timedOut
    case cancelled
  }

  public let reason: Reason
  /// The path or URL that caused the error, as the caller passed it; the text is untrusted. The text is empty if no
  /// single file caused the error.
  public let path: String
  /// The error in one line, for people.
  public let text: String

  public init(_ reason: Reason, _ path: String, _ text: String) {
    self.reason = reason
    self.path = path
    self.text = text
  }
}

/// The files of an offer, read from their original location on the sender's disk. Reading fails for a file that has
/// changed since the offer was made.
public struct ResourceSource: Sendable {
  public let manifest: Manifest
  /// The name and path of each offered file or folder.
  private let roots: [(name: [UInt8], path: String)]
  /// The metadata of each file of the manifest when the offer was made.
  private let known: [Files.Information]
  private var open: (file: Int, descriptor: OpenFile)?
  /// The temporary folder with fetched files; nil if nothing was fetched. The folder is removed with this object.
  private var spool: SpoolFolder?

  /// Collects the files of an offer. First, http and https URLs are fetched by the program curl. If `takesInput` is
  /// true, the argument “-” stands for standard input, which is also stored in a file. The call blocks on the disk, on
  /// servers and on standard input.
  ///
  /// - Parameters:
  ///   - spool: the folder in which a temporary folder for fetched files is created. If nil, TMPDIR is used; without
  ///     TMPDIR, /var/tmp.
  ///   - onProgress: called several times a second with the argument that is being fetched and the number of its bytes
  /// so
  ///     far. If `onProgress` returns false, the call is cancelled.
  public init(
    fetching arguments: [String], spool parent: String? = nil, takesInput: Bool = false,
    onProgress: (String, UInt64) -> Bool = { _, _ in true }
  ) throws(ResourceError) {
    func isInput(_ argument: String) -> Bool {
      takesInput && argument.utf8.elementsEqual(Fetch.standardInput.utf8)
    }
    guard arguments.contains(where: { Fetch.isURL($0) || isInput($0) }) else {
      self = try ResourceSource(arguments)
      return
    }
    let spool: SpoolFolder
    do throws(FileError) {
      spool = try SpoolFolder(in: parent)
    } catch {
      throw ResourceError(.storage, "", error.text)
    }
    var paths: [String] = []
    for (number, argument) in arguments.enumerated() {
      guard Fetch.isURL(argument) || isInput(argument) else {
        paths.append(argument)
        continue
      }
      // Each argument has a folder of its own, because two URLs may have the same last component.
      let folder = "\(spool.path)/\(number)"
      do throws(FileError) {
        try Files.makeFolder(path: folder)
      } catch {
        throw ResourceError(.storage, folder, error.text)
      }
      let report = { onProgress(argument, $0) }
      paths.append(
        isInput(argument)
          ? try Fetch.readInput(into: folder, onProgress: report)
          : try Fetch.fetch(argument, into: folder, onProgress: report))
    }
    self = try ResourceSource(paths)
    self.spool = spool
  }

  /// Collects the files of an offer. The call blocks on the disk.
  public init(_ paths: [String]) throws(ResourceError) {
    var scan = Scan()
    var roots: [(name: [UInt8], path: String)] = []
    for path in paths {
      var name = Array(path.utf8)
      while name.count > 1, name.last == UInt8(ascii: "/") { name.removeLast() }
      if let slash = name.lastIndex(of: UInt8(ascii: "/")) { name.removeFirst(slash + 1) }
      guard FileNames.isLegal(name) else {
        throw ResourceError(.invalid, path, "its name is not valid on every system")
      }
      guard !roots.contains(where: { $0.name == name }) else {
        throw ResourceError(.invalid, path, "another file of this name is in the same offer")
      }
      roots.append((name, path))
      do throws(FileError) {
        try scan.add(try Files.open(path: path), [name], path)
      } catch {
        throw scan.failure(error, path)
      }
    }
    do throws(TransferError) {
      manifest = try Manifest(scan.entries)
    } catch {
      throw ResourceError(
        .invalid, "", scan.entries.isEmpty ? "nothing is offered" : "this cannot be offered: \(error.text)")
    }
    self.roots = roots
    known = Manifest.order(scan.entries).filter { scan.known[$0].isFile }.map { scan.known[$0] }
  }

  /// The files and folders found so far.
  private struct Scan {
    var entries: [Entry] = []
    /// The metadata of each element of `entries`.
    var known: [Files.Information] = []
    /// The error of the entry that cannot be offered, with the entry's complete path.
    var refusal: ResourceError?

    mutating func add(_ file: OpenFile, _ components: [[UInt8]], _ path: String) throws(FileError) {
      let information = try Files.information(file)
      guard information.isFile || information.isFolder else {
        throw FileError(saying: "neither a file nor a folder")
      }
      guard entries.count < TransferLimits.entriesMax else {
        throw FileError(saying: "more than \(TransferLimits.entriesMax) files and folders cannot be offered at once")
      }
      guard let entry = try? Entry(components, size: information.isFile ? information.size : nil) else {
        throw FileError(saying: "its name is not valid on every system, or it is too deep")
      }
      // The kernel generates some files while they are read, such as those of /proc. Files that the kernel generates
      // have size 0, so they cannot be sent.
      if information.isFile, information.size == 0, !(try Files.read(file, offset: 0, count: 1)).isEmpty {
        throw FileError(saying: "it has more bytes than its size says; send it from standard input, as “-”")
      }
      entries.append(entry)
      known.append(information)
      guard information.isFolder else { return }
      for name in try Files.names(in: file, max: TransferLimits.entriesMax + 1) {
        let inner = path + "/" + String(decoding: name, as: UTF8.self)
        do throws(FileError) {
          try add(try Files.read(name, in: file), components + [name], inner)
        } catch {
          // The first error has the complete path of the entry. The enclosing folders do not replace this error.
          if refusal == nil { refusal = failure(error, inner) }
          throw error
        }
      }
    }

    func failure(_ failure: FileError, _ path: String) -> ResourceError {
      if let refusal { return refusal }
      let text = failure.isLink ? "symbolic links cannot be sent" : failure.text
      return ResourceError(failure.code == 0 || failure.isLink ? .invalid : .storage, path, text)
    }
  }

  /// Reads bytes of a file; fewer if the file ends before. Fails if the file has changed since the offer.
  mutating func read(_ file: Int, _ offset: UInt64, _ count: Int) throws(FileError) -> [UInt8] {
    if open?.file != file { open = (file, try open(file)) }
    guard let descriptor = open?.descriptor else { return [] }
    guard try Files.information(descriptor) == known[file] else {
      throw FileError(saying: "it changed after it was offered")
    }
    return try Files.read(descriptor, offset: offset, count: count)
  }

  private func open(_ file: Int) throws(FileError) -> OpenFile {
    let components = manifest.entries[manifest.files[file]].components
    guard let root = roots.first(where: { $0.name == components[0] })?.path else {
      throw FileError(saying: "it was not offered")
    }
    var found = try Files.open(path: root)
    for name in components.dropFirst() { found = try Files.read(name, in: found) }
    return found
  }

  public mutating func close() { open = nil }

  /// The path of a file as written in the manifest.
  public func path(_ file: Int) -> [UInt8] { manifest.entries[manifest.files[file]].path }
}
