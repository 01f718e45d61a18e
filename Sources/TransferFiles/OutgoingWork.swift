import Transfer

/// The sender's side of a transfer: carries out the commands of `TransferSender` on files.
public struct OutgoingWork: Sendable {
  /// The result of a step.
  public struct Step: Sendable {
    /// The bytes to write to the sender's stream.
    public var bytes: [UInt8] = []
    public var outcome: SenderOutcome?
    /// Whether the caller can call `step` again at once, before more bytes arrive from the receiver.
    public var isMore = false
  }

  public private(set) var sender: TransferSender
  private var source: ResourceSource
  private var splitter = RecordSplitter()
  /// The path of the first file that could not be read, and the reason.
  public private(set) var failure: [UInt8]?
  public private(set) var outcome: SenderOutcome?

  public init(_ source: ResourceSource) {
    sender = TransferSender(source.manifest)
    self.source = source
  }

  /// Starts an attempt on a newly opened stream.
  public mutating func start() {
    splitter = RecordSplitter()
    sender.start()
  }

  public mutating func cancel(_ text: [UInt8] = []) { sender.cancel(text) }

  /// Handles bytes of the receiver's stream.
  public mutating func receive(_ bytes: [UInt8]) {
    splitter.append(bytes)
    do throws(TransferError) {
      while let record = try splitter.next() { sender.handle(record) }
    } catch {
      sender.broken(error)
    }
  }

  /// Carries out commands of the state machine until there are 64 KiB for the receiver. Reads files at most `readsMax`
  /// times, 64 KiB each.
  public mutating func step(readsMax: Int = 16) -> Step {
    var step = Step(), records: [[UInt8]] = []
    step.isMore = carryOut(readsMax, &records, &step.outcome)
    step.bytes = records.count == 1 ? records[0] : joined(records.map { $0[...] })
    return step
  }

  /// Carries out commands until there are 64 KiB for the receiver, or `readsMax` reads were made. Returns false if no
  /// command is left.
  private mutating func carryOut(
    _ readsMax: Int, _ records: inout [[UInt8]], _ outcome: inout SenderOutcome?
  ) -> Bool {
    var reads = 0, bytes = 0
    while reads < readsMax, bytes < TransferLimits.readBytesMax, outcome == nil {
      guard let command = sender.nextCommand() else { return false }
      switch command {
      case .send(let record):
        records.append(record.encoded)
        bytes += records[records.count - 1].count
      case .finish(let end): (outcome, self.outcome) = (end, end)
      case .read(let file, let offset, let count):
        reads += 1
        do throws(FileError) {
          sender.provide(try source.read(file, offset, count))
        } catch {
          let what = source.path(file) + Array(": ".utf8) + Array(error.text.utf8)
          failure = failure ?? what
          source.close()
          sender.sourceFailed(what)
        }
      }
    }
    return true
  }

  /// The path of a file as written in the manifest.
  public func path(_ file: Int) -> [UInt8] { source.path(file) }

  public mutating func close() { source.close() }
}
