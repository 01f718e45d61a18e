@testable import Transfer

/// A sender and a receiver of a file transfer, with all files in memory. Every record between the two is encoded and
/// decoded.
struct Exchange {
  var sender: TransferSender
  var receiver = TransferReceiver()
  /// The contents of the sender's files.
  var source: [[UInt8]]
  /// The bytes that the receiver has written to each file. Nil if the receiver has not created the file.
  var disk: [[UInt8]?]
  var journal: [UInt8] = []
  var placed: [Int] = []
  var free = UInt64.max
  var sent: SenderOutcome?
  var received: ReceiverOutcome?
  /// All records that were sent in either direction.
  var log: [Record] = []
  /// The number of bytes of files that were sent.
  var moved = 0
  /// The size in bytes at which each further write to a file fails.
  var diskBytesMax = Int.max
  /// The number of sent bytes of files after which the stream breaks.
  var breaksAfter = Int.max
  /// The numbers of the files that the sender cannot read.
  var unreadable: Set<Int> = []
  var decision: (inout TransferReceiver, Exchange) -> Int? = { receiver, exchange in
    receiver.accept(freeBytes: exchange.free, journal: exchange.journal)
  }
  private var toReceiver = RecordSplitter(), toSender = RecordSplitter()

  init(_ entries: [Entry], _ source: [[UInt8]]) throws(TransferError) {
    let manifest = try Manifest(entries)
    sender = TransferSender(manifest)
    self.source = source
    disk = Array(repeating: nil, count: manifest.files.count)
  }

  /// Creates a transfer of a single file.
  init(_ content: [UInt8], name: String = "a") throws(TransferError) {
    try self.init([try Entry([Array(name.utf8)], size: UInt64(content.count))], [content])
  }

  /// Runs the transfer over a new stream, until neither end has anything to do or the stream breaks.
  mutating func run() {
    (toReceiver, toSender, sent, received) = (RecordSplitter(), RecordSplitter(), nil, nil)
    sender.start()
    var isMoving = true
    while isMoving && moved < breaksAfter {
      isMoving = stepSender()
      isMoving = stepReceiver() || isMoving
    }
    if case .complete? = sent { _ = receiver.streamFinished() }
    _ = stepReceiver()
  }

  /// Breaks the stream. The bytes in flight are lost.
  mutating func cut() {
    receiver.restart()
    _ = stepReceiver()
    breaksAfter = .max
  }

  mutating func send(_ record: Record) {
    log.append(record)
    toReceiver.append(record.encoded)
  }

  mutating func stepSender() -> Bool {
    var isMoving = false
    while let record = try! toSender.next() {
      sender.handle(record)
      isMoving = true
    }
    // The sender creates its next record only after the receiver has handled the former one.
    guard let command = sender.nextCommand() else { return isMoving }
    switch command {
    case .send(let record):
      if case .bytes(let bytes) = record { moved += bytes.count }
      send(record)
    case .read(let file, let offset, let count):
      if unreadable.contains(file) {
        sender.sourceFailed(Array("gone".utf8))
      } else {
        sender.provide(Array(source[file].dropFirst(Int(offset)).prefix(count)))
      }
    case .finish(let outcome): sent = outcome
    }
    return true
  }

  mutating func stepReceiver() -> Bool {
    var isMoving = false
    while let record = try! toReceiver.next() {
      receiver.handle(record)
      isMoving = true
      carryOut()
    }
    carryOut()
    return isMoving
  }

  private mutating func carryOut() {
    while let command = receiver.nextCommand() {
      switch command {
      case .send(let record):
        log.append(record)
        toSender.append(record.encoded)
      case .ask:
        let copy = self
        let valid = decision(&receiver, copy)
        journal.removeLast(journal.count - (valid ?? 0))
      case .makeFolders, .keep: break
      case .read(let file, let offset, let count):
        receiver.provide(Array((disk[file] ?? []).dropFirst(Int(offset)).prefix(count)))
      case .write(let file, let offset, let bytes):
        guard Int(offset) + bytes.count <= diskBytesMax else {
          receiver.storageFailed(isFull: true, Array("full".utf8))
          continue
        }
        var content = disk[file] ?? []
        content.replaceSubrange(Int(offset)..<min(content.count, Int(offset) + bytes.count), with: bytes)
        disk[file] = content
      case .truncate(let file, let bytes): disk[file] = Array((disk[file] ?? []).prefix(Int(bytes)))
      case .note(let bytes): journal += bytes
      case .place(let item):
        placed.append(item)
        receiver.placed(item: item, number: 1)
      case .finish(let outcome): received = outcome
      }
    }
  }
}

/// Content of `mebibytes` MiB and `more` bytes. Each MiB has other bytes.
func content(_ mebibytes: Int, and more: Int = 0) -> [UInt8] {
  (0..<mebibytes * 1_048_576 + more).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 20) }
}
