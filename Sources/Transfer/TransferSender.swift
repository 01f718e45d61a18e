/// The outcome of a transfer at the sender.
public enum SenderOutcome: Equatable, Sendable {
  /// Every file has a verdict. If a verdict is not `stored`, the receiver lacks that file.
  case complete([Verdict])
  case refused(AnswerCode, text: [UInt8])
  case cancelledHere
  case cancelledByPeer(CancelCode, text: [UInt8])
  /// The receiver violated the protocol.
  case broken(TransferError)
}

/// The state machine of a sender of files and folders.
///
/// The caller passes each received record to `handle`. After each call of `handle` or `start`, the caller calls
/// `nextCommand` until it returns nil, and carries out each command. After `read` the caller calls `provide` or
/// `sourceFailed` before the next command. Files are hashed during the transfer.
///
/// After a lost stream the caller calls `start`, which sends the same offer on another stream. The receiver reports
/// which bytes it has stored. The sender compares the hashes of these bytes with its own files, and sends the remaining
/// bytes.
public struct TransferSender: Sendable {
  /// A command to the caller.
  public enum Command: Equatable, Sendable {
    case send(Record)
    case read(file: Int, offset: UInt64, count: Int)
    case finish(SenderOutcome)
  }

  private struct Held: Equatable {
    var bytes: UInt64 = 0
    var root: Digest?
  }

  private enum Phase: Equatable {
    case idle
    /// The sender waits for the answer to the offer.
    case offered
    /// The sender sends the manifest, from this byte on.
    case listing(Int)
    /// The sender waits for `held` records and `ready`.
    case hearing
    /// The sender continues with this file next.
    case turn(Int)
    /// The sender reads and hashes as many bytes of this file as the receiver has stored.
    case hashing(Int)
    /// The sender receives the hashes of the receiver's leaves (blocks of 1 MiB) and compares them with the leaves of
    /// its own file. The first `same` leaves are equal.
    case comparing(Int, same: Int)
    case sending(Int)
    /// All files were sent; the sender waits for verdicts.
    case sent
    case ended
  }

  public let manifest: Manifest
  private var phase = Phase.idle
  private var held: [Held] = []
  /// The file that is being sent, and the hash tree over its bytes up to this point. The file and the tree are kept
  /// after a lost stream.
  private var current: (file: Int, tree: Tree)?
  /// For each file that was sent completely, the root of its hash tree.
  private var roots: [Digest?]
  /// The verdicts that the receiver has sent in this attempt.
  public private(set) var verdicts: [Verdict?]
  private var missing: Int
  private var output: [Record] = []
  private var outcome: SenderOutcome?
  private var isReading = false

  /// The number of file bytes that were sent in all attempts.
  public private(set) var bytesSent: UInt64 = 0
  /// The number of bytes that the receiver had stored at the start of this attempt. Only bytes whose hashes were
  /// already compared are included.
  public private(set) var bytesHeld: UInt64 = 0
  /// The sum of `bytesHeld` and the file bytes that were sent in this attempt.
  public private(set) var bytesDone: UInt64 = 0
  /// Whether the receiver's user or application is being asked to accept the offer.
  public private(set) var isAsking = false

  public init(_ manifest: Manifest) {
    self.manifest = manifest
    roots = Array(repeating: nil, count: manifest.files.count)
    verdicts = Array(repeating: nil, count: manifest.files.count)
    missing = manifest.files.count
  }

  public var filesDone: Int { manifest.files.count - missing }
  public var isEnded: Bool { phase == .ended }
  /// Whether the offer was accepted in this attempt.
  public var isAccepted: Bool { phase != .idle && phase != .offered && phase != .ended }

  /// The progress of hashing the bytes that the receiver has stored of a file, in bytes; nil in other phases.
  public var comparing: (done: UInt64, total: UInt64)? {
    guard case .hashing(let file) = phase else { return nil }
    return (current?.tree.byteCount ?? 0, held[file].bytes)
  }

  /// Starts an attempt: sends the offer on a newly opened stream.
  public mutating func start() {
    guard phase != .ended else { return }
    (phase, output, isReading, isAsking, bytesDone, bytesHeld) = (.offered, [], false, false, 0, 0)
    held = Array(repeating: Held(), count: manifest.files.count)
    verdicts = Array(repeating: nil, count: manifest.files.count)
    missing = manifest.files.count
    output.append(.offer(OfferRecord(manifest)))
  }

  /// Cancels the transfer. The receiver keeps the received bytes for another attempt.
  public mutating func cancel(_ text: [UInt8] = []) {
    end(.cancelledHere, saying: .cancel(.wanted, text: FileNames.explanation(text)))
  }

  // MARK: Records

  /// Handles a record of the receiver.
  public mutating func handle(_ record: Record) {
    guard phase != .ended else { return }
    do throws(TransferError) {
      try take(record)
    } catch {
      broken(error)
    }
  }

  /// Ends the transfer because the receiver's bytes violate the protocol.
  public mutating func broken(_ fault: TransferError) {
    end(.broken(fault), saying: .cancel(.broken, text: Array(fault.text.utf8)))
  }

  private mutating func take(_ record: Record) throws(TransferError) {
    switch record {
    case .prompt:
      guard phase == .offered else { throw .unexpected }
      isAsking = true
    case .answer(let code, let text):
      guard phase == .offered else { throw .unexpected }
      isAsking = false
      switch code {
      case .accepted: phase = .listing(0)
      case .acceptedAgain: phase = .hearing
      case .declined, .noSpace, .tooLarge, .timedOut, .busy: end(.refused(code, text: text), saying: nil)
      }
    case .held(let file, let bytes, let root):
      let file = try checked(file)
      guard phase == .hearing, held[file].root == nil else { throw .unexpected }
      guard bytes > 0, bytes <= manifest.size(file: file) else { throw .offset }
      held[file] = Held(bytes: bytes, root: root)
    case .ready:
      guard phase == .hearing else { throw .unexpected }
      phase = .turn(0)
    case .leaves(let file, let first, let digests):
      try compare(try checked(file), Int(first), digests)
    case .verdict(let file, let verdict):
      let file = try checked(file)
      guard isAccepted, verdicts[file] == nil, file < sendingFrom else { throw .file }
      verdicts[file] = verdict
      missing -= 1
      if missing == 0 { end(.complete(verdicts.map { $0 ?? .notSent }), saying: nil) }
    case .cancel(let code, let text): end(.cancelledByPeer(code, text: text), saying: nil)
    case .offer, .manifest, .begin, .bytes, .root, .skip, .compare: throw .unexpected
    }
  }

  private func checked(_ file: UInt32) throws(TransferError) -> Int {
    guard file < manifest.files.count else { throw .file }
    return Int(file)
  }

  /// The number of the first file that was not sent completely.
  private var sendingFrom: Int {
    switch phase {
    case .idle, .offered, .listing, .hearing, .ended: 0
    case .turn(let file), .hashing(let file), .comparing(let file, _), .sending(let file): file
    case .sent: manifest.files.count
    }
  }

  // MARK: Files

  private mutating func takeTurn(_ file: Int) {
    guard file < manifest.files.count else {
      current = nil
      phase = .sent
      // For an offer of folders without files, there is no verdict to wait for.
      if missing == 0 { end(.complete([]), saying: nil) }
      return
    }
    let held = held[file], size = manifest.size(file: file)
    if held.bytes == size, let root = roots[file], root == held.root {
      // The file was sent completely before the stream was lost.
      count(held: size)
      output.append(.begin(file: UInt32(file), offset: size))
      output.append(.root(file: UInt32(file), root))
      phase = .turn(file + 1)
      return
    }
    var tree = current?.file == file ? current?.tree ?? Tree() : Tree()
    // The known hashes of complete leaves are reused. The bytes after these leaves are read again.
    if tree.byteCount != held.bytes {
      tree.truncate(leaves: Int(min(UInt64(tree.leaves.count), held.bytes / UInt64(Tree.leafBytes))))
    }
    current = (file, tree)
    phase = .hashing(file)
    if tree.byteCount == held.bytes { hashed(file) }
  }

  private mutating func count(held bytes: UInt64) {
    bytesHeld += bytes
    bytesDone += bytes
  }

  /// Continues when the bytes that the receiver has stored of a file were hashed.
  private mutating func hashed(_ file: Int) {
    if held[file].bytes == 0 || current?.tree.root == held[file].root { return send(file) }
    phase = .comparing(file, same: 0)
    output.append(.compare(file: UInt32(file)))
  }

  /// Begins to send the file at the first byte that is not in `current`.
  private mutating func send(_ file: Int) {
    guard let offset = current?.tree.byteCount else { return }
    count(held: offset)
    output.append(.begin(file: UInt32(file), offset: offset))
    phase = .sending(file)
    finishIfWhole(file)
  }

  private mutating func finishIfWhole(_ file: Int) {
    guard current?.tree.byteCount == manifest.size(file: file), let root = current?.tree.root else { return }
    roots[file] = root
    output.append(.root(file: UInt32(file), root))
    phase = .turn(file + 1)
  }

  private mutating func compare(_ file: Int, _ first: Int, _ digests: [Digest]) throws(TransferError) {
    guard case .comparing(let compared, var same) = phase, compared == file, let tree = current?.tree else {
      // The sender has already found a difference, so leaves that still arrive are ignored.
      guard isAccepted, file <= sendingFrom, held[file].bytes > 0 else { throw .unexpected }
      return
    }
    let own = tree.allLeaves
    guard first == same, digests.count <= own.count - same else { throw .leaves }
    for digest in digests {
      guard digest == own[same] else {
        current?.tree.truncate(leaves: same)
        return send(file)
      }
      same += 1
    }
    // If all leaves were equal, the roots would be equal, and there would have been no comparison.
    guard same < own.count else { throw .leaves }
    phase = .comparing(file, same: same)
  }

  // MARK: Commands

  public mutating func nextCommand() -> Command? {
    while output.isEmpty, case .turn(let file) = phase { takeTurn(file) }
    if !output.isEmpty { return .send(output.removeFirst()) }
    if let outcome {
      self.outcome = nil
      return .finish(outcome)
    }
    guard !isReading else { return nil }
    switch phase {
    case .listing(let from):
      let bytes = manifest.bytes, end = min(from + TransferLimits.manifestPieceBytesMax, bytes.count)
      phase = end == bytes.count ? .hearing : .listing(end)
      return .send(.manifest(joined(bytes[from..<end])))
    case .hashing(let file): return read(file, upTo: held[file].bytes)
    case .sending(let file): return read(file, upTo: manifest.size(file: file))
    case .idle, .offered, .hearing, .turn, .comparing, .sent, .ended: return nil
    }
  }

  private mutating func read(_ file: Int, upTo end: UInt64) -> Command? {
    guard let done = current?.tree.byteCount else { return nil }
    isReading = true
    return .read(file: file, offset: done, count: Int(min(UInt64(TransferLimits.readBytesMax), end - done)))
  }

  /// Delivers the result of the last `read` command. If there are fewer bytes than requested, the file has become
  /// shorter and is not sent.
  public mutating func provide(_ bytes: [UInt8]) {
    guard isReading, let done = current?.tree.byteCount else { return }
    isReading = false
    switch phase {
    case .hashing(let file):
      let wanted = min(UInt64(TransferLimits.readBytesMax), held[file].bytes - done)
      guard bytes.count == wanted else { return sourceFailed(Self.shorter) }
      current?.tree.append(bytes)
      if current?.tree.byteCount == held[file].bytes { hashed(file) }
    case .sending(let file):
      let wanted = min(UInt64(TransferLimits.readBytesMax), manifest.size(file: file) - done)
      guard bytes.count == wanted else { return sourceFailed(Self.shorter) }
      current?.tree.append(bytes)
      bytesSent += wanted
      bytesDone += wanted
      output.append(.bytes(bytes))
      finishIfWhole(file)
    case .idle, .offered, .listing, .hearing, .turn, .comparing, .sent, .ended: return
    }
  }

  private static let shorter = Array("it became shorter during the transfer".utf8)

  /// Records that the file of the last `read` cannot be read or has changed. The file is not sent.
  public mutating func sourceFailed(_ text: [UInt8]) {
    isReading = false
    switch phase {
    case .hashing(let file), .sending(let file):
      output.append(.skip(file: UInt32(file), text: FileNames.explanation(text)))
      roots[file] = nil
      current = nil
      phase = .turn(file + 1)
    case .idle, .offered, .listing, .hearing, .turn, .comparing, .sent, .ended: return
    }
  }

  private mutating func end(_ outcome: SenderOutcome, saying last: Record?) {
    guard phase != .ended else { return }
    let mayBeHeard = phase != .idle
    phase = .ended
    output = last.map { mayBeHeard ? [$0] : [] } ?? []
    self.outcome = outcome
  }
}
