internal import Transfer

/// The files of an offer where they are. They are read as they were when they were offered, or not at all.
struct ResourceSource: Sendable {
  let manifest: Manifest
  /// Of each of the files and folders that were offered, by its name.
  private let roots: [[UInt8]: String]
  /// Of files, by their paths in the manifest.
  private let known: [[UInt8]: Files.Information]
  private var open: (file: Int, descriptor: OpenFile)?

  /// Looks at all files. It waits for the disk.
  ///
  /// - Throws: `storage`, `invalid`, `full`.
  init(_ paths: [String]) throws(CausewayError) {
    var scan = Scan()
    var roots: [[UInt8]: String] = [:]
    for path in paths {
      var name = Array(path.utf8)
      while name.count > 1, name.last == UInt8(ascii: "/") { name.removeLast() }
      if let slash = name.lastIndex(of: UInt8(ascii: "/")) { name.removeFirst(slash + 1) }
      guard Names.isLegal(name) else { throw Self.illegal(path) }
      guard roots.updateValue(path, forKey: name) == nil else {
        throw CausewayError(.invalid, "\(harmless(path)): another one of this name is offered with it")
      }
      do throws(FileFailure) {
        try scan.add(try Files.open(path: path), [name], path)
      } catch {
        throw scan.error(error, path)
      }
    }
    do throws(TransferFault) {
      manifest = try Manifest(scan.entries)
    } catch {
      throw CausewayError(
        .invalid, scan.entries.isEmpty ? "nothing is offered" : "this cannot be offered: \(error.text)")
    }
    self.roots = roots
    known = scan.known
  }

  private static func illegal(_ path: String) -> CausewayError {
    CausewayError(.invalid, "\(harmless(path)): its name is not one that every system could take")
  }

  /// What is found on the way through the folders.
  private struct Scan {
    var entries: [Entry] = []
    var known: [[UInt8]: Files.Information] = [:]
    /// What cannot be offered, by its path.
    var refusal: CausewayError?

    mutating func add(_ file: OpenFile, _ components: [[UInt8]], _ path: String) throws(FileFailure) {
      let information = try Files.information(file)
      guard information.isFile || information.isFolder else {
        throw FileFailure(saying: "neither a file nor a folder")
      }
      guard entries.count < TransferLimits.entriesMax else {
        throw FileFailure(saying: "more than \(TransferLimits.entriesMax) files and folders cannot be offered at once")
      }
      guard let entry = try? Entry(components, size: information.isFile ? information.size : nil) else {
        throw FileFailure(saying: "its name is not one that every system could take, or it is too deep")
      }
      entries.append(entry)
      guard information.isFolder else {
        known[entry.path] = information
        return
      }
      for name in try Files.names(in: file, max: TransferLimits.entriesMax + 1) {
        let inner = path + "/" + String(decoding: name, as: UTF8.self)
        do throws(FileFailure) {
          try add(try Files.read(name, in: file), components + [name], inner)
        } catch {
          // The innermost name is the one that helps.
          if refusal == nil { refusal = self.error(error, inner) }
          throw error
        }
      }
    }

    func error(_ failure: FileFailure, _ path: String) -> CausewayError {
      if let refusal { return refusal }
      let text = failure.isLink ? "a symbolic link: resources have none" : failure.text
      return CausewayError(failure.code == 0 || failure.isLink ? .invalid : .storage, "\(harmless(path)): \(text)")
    }
  }

  /// Bytes of a file; fewer when it has become shorter.
  mutating func read(_ file: Int, _ offset: UInt64, _ count: Int) throws(FileFailure) -> [UInt8] {
    if open?.file != file { open = (file, try open(file)) }
    guard let descriptor = open?.descriptor else { return [] }
    guard try Files.information(descriptor) == known[manifest.entries[manifest.files[file]].path] else {
      throw FileFailure(saying: "it changed after it was offered")
    }
    return try Files.read(descriptor, offset: offset, count: count)
  }

  private func open(_ file: Int) throws(FileFailure) -> OpenFile {
    let components = manifest.entries[manifest.files[file]].components
    guard let root = roots[components[0]] else { throw FileFailure(saying: "it was not offered") }
    var found = try Files.open(path: root)
    for name in components.dropFirst() { found = try Files.read(name, in: found) }
    return found
  }

  mutating func close() { open = nil }

  /// A file for people.
  func path(_ file: Int) -> String { readable(manifest.entries[manifest.files[file]].path) }
}
