import CSystem

/// Writes one file of the state directory, with a checksum, in a separate thread. A write to a card may take seconds,
/// and the reactor must not block. At most one write runs at a time.
public final class StateWriter {
  /// Whether a write has begun and `end` has not been called.
  public private(set) var isBusy = false
  private let writer: OpaquePointer
  private let file: String

  /// Returns nil if no memory or no descriptor is left.
  public init?(_ directory: StateDirectory, file name: String) {
    guard let writer = csystem_writer_new(directory.path, name, StateDirectory.checkedMode) else { return nil }
    self.writer = writer
    file = directory.file(name)
  }

  deinit {
    if isBusy { _ = csystem_writer_end(writer) }
    csystem_writer_free(writer)
  }

  /// A descriptor that becomes readable when a write has ended. The caller then calls `end`. The writer closes the
  /// descriptor.
  public var descriptor: CInt { csystem_writer_descriptor(writer) }

  /// Begins a write. Must not be called while `isBusy` is true. Returns false if no thread or memory is available.
  public func begin(_ contents: [UInt8]) -> Bool {
    let bytes = contents + sha256(contents)
    isBusy = bytes.withUnsafeBytes { csystem_writer_begin(writer, $0.baseAddress, $0.count) } == 0
    return isBusy
  }

  /// Waits for the end of the write. Throws if the write failed.
  public func end() throws(IdentityError) {
    if !isBusy { return }
    isBusy = false
    let code = csystem_writer_end(writer)
    if code != 0 { throw .unwritable(path: file, code: code) }
  }
}
