import CSystem

/// Writes one file with a checksum of the state directory on a thread of its own: a card may take seconds for it, and the
/// reactor waits for nobody. One write at a time.
public final class StateWriter {
  /// Whether a write was begun whose end nobody has asked for.
  public private(set) var isBusy = false
  private let writer: OpaquePointer
  private let file: String

  /// Nil when there is no memory or no descriptor for it.
  public init?(_ directory: StateDirectory, file name: String) {
    guard let writer = csystem_writer_new(directory.path, name, StateDirectory.checkedMode) else { return nil }
    self.writer = writer
    file = directory.file(name)
  }

  deinit {
    if isBusy { _ = csystem_writer_end(writer) }
    csystem_writer_free(writer)
  }

  /// Readable when a write has ended: call `end` then. It stays the writer's own.
  public var descriptor: CInt { csystem_writer_descriptor(writer) }

  /// Begin to write, when not `isBusy`. False when no thread can be made.
  public func begin(_ contents: [UInt8]) -> Bool {
    let bytes = contents + sha256(contents)
    isBusy = bytes.withUnsafeBytes { csystem_writer_begin(writer, $0.baseAddress, $0.count) } == 0
    return isBusy
  }

  /// The end of the write that was begun, for which this waits.
  public func end() throws(IdentityError) {
    if !isBusy { return }
    isBusy = false
    let code = csystem_writer_end(writer)
    if code != 0 { throw .unwritable(path: file, code: code) }
  }
}
