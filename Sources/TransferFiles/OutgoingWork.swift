import Transfer

/// What a sender does at a time: the state of the transfer, and the files.
public struct OutgoingWork: Sendable {
  /// What came of a step.
  public struct Step: Sendable {
    /// For the receiver.
    public var bytes: [UInt8] = []
    public var outcome: SenderOutcome?
    /// There is more to do without the receiver.
    public var isMore = false
  }

  public private(set) var sender: TransferSender
  private var source: ResourceSource
  private var splitter = RecordSplitter()
  /// The first file that could not be read, by its path, and why.
  public private(set) var failure: [UInt8]?
  public private(set) var outcome: SenderOutcome?

  public init(_ source: ResourceSource) {
    sender = TransferSender(source.manifest)
    self.source = source
  }

  /// Offers on a stream that has just been opened.
  public mutating func start() {
    splitter = RecordSplitter()
    sender.start()
  }

  public mutating func cancel(_ text: [UInt8] = []) { sender.cancel(text) }

  /// Bytes of the receiver's stream.
  public mutating func hear(_ bytes: [UInt8]) {
    splitter.append(bytes)
    do throws(TransferFault) {
      while let record = try splitter.next() { sender.handle(record) }
    } catch {
      sender.broken(error)
    }
  }

  /// As much as is read and hashed at once: `readsMax` times 64 KiB.
  public mutating func step(readsMax: Int = 16) -> Step {
    var step = Step(), records: [[UInt8]] = []
    step.isMore = carryOut(readsMax, &records, &step.outcome)
    step.bytes = records.count == 1 ? records[0] : joined(records.map { $0[...] })
    return step
  }

  /// Carries out what the transfer wants, until there is enough for the receiver. False when there is nothing more.
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
        do throws(FileFailure) {
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

  /// A file's path in the manifest.
  public func path(_ file: Int) -> [UInt8] { source.path(file) }

  public mutating func close() { source.close() }
}
