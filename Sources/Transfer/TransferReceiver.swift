/// The outcome of a transfer at the receiver.
public enum ReceiverOutcome: Equatable, Sendable {
  /// Every file has a verdict. The verdicts in the value are in the order of the files.
  case complete([Verdict])
  /// This end refused the offer.
  case refused(AnswerCode)
  case cancelledHere
  case cancelledByPeer(CancelCode, text: [UInt8])
  /// This end could not write to its disk. `isFull` states whether the disk or the quota is full.
  case storageFailed(isFull: Bool, text: [UInt8])
  /// The sender violated the protocol.
  case broken(TransferError)
}

/// The state machine of a receiver of files and folders.
///
/// The caller passes each received record to `handle`. After each call of this type, the caller calls `nextCommand`
/// until it returns nil, and carries out each command:
///
/// - After `read` the caller calls `provide` before the next command.
/// - After `place` the caller calls `placed` before the next command.
/// - If the caller cannot read or write, it calls `storageFailed`.
///
/// After a lost stream the caller calls `restart`. The receiver then expects the same offer on another stream, and
/// accepts it without asking again.
public struct TransferReceiver: Sendable {
  /// A command to the caller. Files and items are numbered as in the manifest.
  public enum Command: Equatable, Sendable {
    case send(Record)
    /// An offer has arrived. To answer the offer, the caller must call `accept` or `refuse`.
    case ask(OfferRecord)
    /// Create the folders of the manifest that do not exist yet.
    case makeFolders(Manifest)
    /// Read from a file of the partial (the stored part of an incomplete resource). Pass fewer bytes, or none, to
    /// `provide` if the file is shorter.
    case read(file: Int, offset: UInt64, count: Int)
    case write(file: Int, offset: UInt64, [UInt8])
    case truncate(file: Int, bytes: UInt64)
    /// Append these bytes to the journal of the partial.
    case note([UInt8])
    /// Sync the file and then the journal to disk, so that both survive a loss of power. `isLast` means that nothing
    /// more will be written to the file.
    case keep(file: Int, isLast: Bool)
    /// Move an item to the destination directory.
    case place(item: Int)
    case finish(ReceiverOutcome)
  }

  enum Phase: Equatable {
    /// The receiver waits for the offer.
    case idle
    case asking
    case listing
    /// The receiver checks what the partial already contains.
    case checking
    /// The receiver waits for the beginning of this file.
    case receiving(Int)
    /// The receiver receives bytes of this file.
    case filling(Int)
    case ended
  }

  struct File {
    var leaves: [Digest] = []
    /// The number of stored bytes, including the bytes after the last complete leaf (block of 1 MiB).
    var bytes: UInt64 = 0
    var isWhole = false
    var verdict: Verdict?
  }

  public internal(set) var offer: OfferRecord?
  public internal(set) var manifest: Manifest?
  var phase = Phase.idle
  var files: [File] = []
  /// The file that was written last, and the hash tree over its stored bytes.
  var current: (file: Int, tree: Tree)?
  var output = Outputs<Command>()
  private var listed: [UInt8] = []
  private var unsynced = 0
  private var placing: Int?
  var numbers: [Int?] = []
  /// The leaves of the partial that must still be checked.
  var checks: [(file: Int, leaf: Int)] = []
  var reading: (file: Int, leaf: Int)?
  var found: [PartialJournal.Entry] = []
  /// Whether the check of the partial has ended.
  var isChecked = false

  /// The number of file bytes that were already stored when this attempt began.
  public private(set) var bytesHeld: UInt64 = 0
  /// The number of file bytes that are stored now.
  public private(set) var bytesDone: UInt64 = 0
  /// The number of file bytes that were received in all attempts.
  public private(set) var bytesReceived: UInt64 = 0

  public init() {}

  public var filesDone: Int { files.count { $0.isWhole } }
  public var isEnded: Bool { phase == .ended }
  /// Whether the manifest was received and the transfer has not ended.
  public var isAccepted: Bool { manifest != nil && phase != .ended }

  /// The number in the name of an item that was moved to the destination directory; nil if the item was not moved yet.
  public func number(item: Int) -> Int? { item < numbers.count ? numbers[item] : nil }

  // MARK: The answer

  /// Accepts the offer, or refuses it if the destination has not enough space or the offer is too large.
  ///
  /// - Parameters:
  ///   - freeBytes: the free space of the destination, in bytes.
  ///   - bytesMax: the maximum sum of the file sizes of an offer, in bytes.
  ///   - journal: the journal of the partial of this resource; empty without a partial.
  /// - Returns: the number of valid bytes of the journal, to which the caller truncates the journal. nil if the journal
  ///   does not belong to this resource. If the result is nil, a `note` command begins a new journal.
  public mutating func accept(freeBytes: UInt64, bytesMax: UInt64 = .max, journal: [UInt8] = []) -> Int? {
    guard phase == .asking, let offer else { return nil }
    let known = PartialJournal.read(journal, offer.manifest)
    guard offer.bytes <= bytesMax else {
      refuse(.tooLarge)
      return known?.bytes
    }
    let held = PartialJournal.bytesHeld(known?.entries ?? [])
    guard offer.bytes - min(held, offer.bytes) <= freeBytes else {
      refuse(.noSpace)
      return known?.bytes
    }
    found = known?.entries ?? []
    if known == nil { output.append(.note(PartialJournal.header(offer.manifest))) }
    phase = .listing
    output.append(.send(.answer(.accepted, text: [])))
    return known?.bytes
  }

  /// Refuses the offer. `text` is an explanation for the sender's user.
  public mutating func refuse(_ code: AnswerCode, _ text: [UInt8] = []) {
    guard phase == .asking else { return }
    end(.refused(code), saying: .answer(code, text: FileNames.explanation(text)))
  }

  /// Cancels the transfer. The partial remains on disk for another attempt.
  public mutating func cancel(_ text: [UInt8] = []) {
    end(.cancelledHere, saying: .cancel(.wanted, text: FileNames.explanation(text)))
  }

  /// Ends the transfer because the caller could not read or write its disk.
  public mutating func storageFailed(isFull: Bool, _ text: [UInt8]) {
    let text = FileNames.explanation(text)
    end(
      .storageFailed(isFull: isFull, text: text), saying: .cancel(isFull ? .storageFull : .storageFailed, text: text))
  }

  /// Handles the loss of the stream. If the offer was accepted, the receiver expects the same offer on another stream;
  /// otherwise the transfer ends.
  public mutating func restart() {
    guard phase != .ended else { return }
    if offer == nil || phase == .asking { return end(.cancelledByPeer(.wanted, text: []), saying: nil) }
    if let reading, reading.leaf < files[reading.file].leaves.count { checks.insert(reading, at: 0) }
    // If the check was interrupted, the bytes after the last leaf are checked again.
    if !isChecked { current = nil }
    (phase, listed, reading) = (.idle, [], nil)
    output.keep(Self.stands)
  }

  /// Whether a pending command remains valid when the stream is lost. Records for the sender and reads for the check
  /// become invalid.
  private static func stands(_ command: Command) -> Bool {
    switch command {
    case .send, .read: false
    case .ask, .makeFolders, .write, .truncate, .note, .keep, .place, .finish: true
    }
  }

  // MARK: Records

  /// Handles a record of the sender.
  public mutating func handle(_ record: Record) {
    guard phase != .ended else { return }
    do throws(TransferError) {
      try take(record)
    } catch {
      broken(error)
    }
  }

  /// Ends the transfer because the sender's bytes violate the protocol.
  public mutating func broken(_ fault: TransferError) {
    end(.broken(fault), saying: .cancel(.broken, text: Array(fault.text.utf8)))
  }

  /// Handles the end of the sender's stream. Returns false if a file or verdict is missing; the caller then treats the
  /// end as a lost stream.
  public mutating func streamFinished() -> Bool {
    guard phase != .ended else { return true }
    guard case .receiving(files.count) = phase, placing == nil else { return false }
    end(.complete(files.map { $0.verdict ?? .notSent }), saying: nil)
    return true
  }

  /// Whether every file has a verdict, so that the receiver waits only for the end of the sender's stream.
  public var isComplete: Bool { phase == .receiving(files.count) && manifest != nil && placing == nil }

  private mutating func take(_ record: Record) throws(TransferError) {
    switch record {
    case .offer(let offer):
      guard phase == .idle else { throw .unexpected }
      if let known = self.offer {
        guard known == offer else { throw .unexpected }
        if manifest != nil {
          output.append(.send(.answer(.acceptedAgain, text: [])))
          if isChecked { reportHeld() } else { phase = .checking }
        } else {
          phase = .listing
          output.append(.send(.answer(.accepted, text: [])))
        }
      } else {
        self.offer = offer
        phase = .asking
        output.append(.send(.prompt(seconds: TransferLimits.offerSeconds)))
        output.append(.ask(offer))
      }
    case .manifest(let bytes): try list(bytes)
    case .begin(let file, let offset): try begin(Int(file), offset)
    case .bytes(let bytes): try fill(bytes)
    case .root(let file, let root): try conclude(Int(file), root)
    case .skip(let file, _):
      guard phase == .receiving(Int(file)) || phase == .filling(Int(file)), file < files.count else { throw .file }
      empty(Int(file))
      settle(Int(file), .notSent)
    case .compare(let file):
      guard phase == .receiving(Int(file)), file < files.count else { throw .file }
      reportLeaves(Int(file))
    case .cancel(let code, let text): end(.cancelledByPeer(code, text: text), saying: nil)
    case .prompt, .answer, .held, .ready, .verdict, .leaves: throw .unexpected
    }
  }

  private mutating func list(_ bytes: [UInt8]) throws(TransferError) {
    guard phase == .listing, let offer else { throw .unexpected }
    listed += bytes
    guard listed.count <= offer.manifestBytes else { throw .manifestLength }
    guard listed.count == offer.manifestBytes else { return }
    let manifest = try Manifest(listed, offer)
    listed = []
    self.manifest = manifest
    files = Array(repeating: File(), count: manifest.files.count)
    numbers = Array(repeating: nil, count: manifest.items.count)
    output.append(.makeFolders(manifest))
    phase = .checking
    restore(manifest)
  }

  /// Reports to the sender which bytes of each file are stored (`held`), and then sends `ready`. After `ready` the
  /// sender sends files.
  mutating func reportHeld() {
    isChecked = true
    // Only the first incomplete file may have bytes after its last complete leaf.
    if let file = current?.file, file != files.firstIndex(where: { !$0.isWhole }) {
      if !files[file].isWhole { cut(file, files[file].leaves.count) }
      current = nil
    }
    var held: UInt64 = 0
    for (index, file) in files.enumerated() where file.bytes > 0 {
      held += file.bytes
      let tree = tree(index)
      output.append(.send(.held(file: UInt32(index), bytes: file.bytes, root: tree.root)))
    }
    (bytesHeld, bytesDone) = (held, held)
    for index in files.indices { files[index].verdict = nil }
    // Without files there are no verdicts. The sender regards `ready` as the verdict, so the folders are placed before
    // `ready` is sent.
    if files.isEmpty { placeFolders() }
    output.append(.send(.ready))
    phase = .receiving(0)
  }

  /// The hash tree over the stored bytes of a file.
  private func tree(_ file: Int) -> Tree {
    if let current, current.file == file { return current.tree }
    return Tree(leaves: files[file].leaves)
  }

  private mutating func reportLeaves(_ file: Int) {
    let leaves = files[file].isWhole ? files[file].leaves : tree(file).allLeaves
    for first in stride(from: 0, to: leaves.count, by: TransferLimits.leavesMax) {
      let some = Array(leaves[first..<min(first + TransferLimits.leavesMax, leaves.count)])
      output.append(.send(.leaves(file: UInt32(file), first: UInt32(first), some)))
    }
  }

  // MARK: A file

  private mutating func begin(_ file: Int, _ offset: UInt64) throws(TransferError) {
    guard phase == .receiving(file), file < files.count, let manifest else { throw .file }
    let held = files[file].bytes, whole = offset / UInt64(Tree.leafBytes)
    guard offset <= held, offset == held || offset % UInt64(Tree.leafBytes) == 0 else { throw .offset }
    let isPlaced = numbers[manifest.item(file: file)] != nil
    if offset < held {
      // The file was already moved to the destination directory, so it must not be written again.
      guard !isPlaced else { throw .offset }
      bytesDone -= held - offset
      cut(file, Int(whole))
    } else if current?.file != file && !files[file].isWhole {
      current = (file, Tree(leaves: files[file].leaves))
    }
    // No bytes arrive for an empty file, so `truncate` creates it.
    if manifest.size(file: file) == 0 && !isPlaced { output.append(.truncate(file: file, bytes: 0)) }
    phase = .filling(file)
  }

  /// Truncates a file to this number of leaves, because the bytes after them will be sent again.
  mutating func cut(_ file: Int, _ leaves: Int) {
    files[file].leaves.removeLast(max(0, files[file].leaves.count - leaves))
    files[file].bytes = min(UInt64(leaves) * UInt64(Tree.leafBytes), manifest?.size(file: file) ?? 0)
    files[file].isWhole = false
    current = (file, Tree(leaves: files[file].leaves))
    output.append(.truncate(file: file, bytes: files[file].bytes))
    output.append(.note(PartialJournal.Entry.truncated(file: file, leaves: leaves).encoded))
  }

  private mutating func empty(_ file: Int) {
    guard files[file].bytes > 0, let item = manifest?.item(file: file), numbers[item] == nil else { return }
    bytesDone -= files[file].bytes
    cut(file, 0)
  }

  private mutating func fill(_ bytes: [UInt8]) throws(TransferError) {
    guard case .filling(let file) = phase, let manifest else { throw .unexpected }
    let offset = files[file].bytes
    guard UInt64(bytes.count) <= manifest.size(file: file) - offset else { throw .bytesBeyond }
    output.append(.write(file: file, offset: offset, bytes))
    append(file, bytes[...])
    bytesReceived += UInt64(bytes.count)
    bytesDone += UInt64(bytes.count)
    if unsynced >= TransferLimits.leavesChecked {
      unsynced = 0
      output.append(.keep(file: file, isLast: false))
    }
  }

  /// Adds bytes to a file's hash tree and byte count. Writes a journal entry for each leaf that is now complete.
  mutating func append(_ file: Int, _ bytes: ArraySlice<UInt8>) {
    current?.tree.append(bytes)
    files[file].bytes += UInt64(bytes.count)
    for leaf in files[file].leaves.count..<(current?.tree.leaves.count ?? 0) {
      guard let digest = current?.tree.leaves[leaf] else { return }
      files[file].leaves.append(digest)
      note(file, leaf, Tree.leafBytes, digest)
      unsynced += 1
    }
  }

  private mutating func note(_ file: Int, _ leaf: Int, _ bytes: Int, _ digest: Digest) {
    output.append(.note(PartialJournal.Entry.leaf(file: file, leaf: leaf, bytes: bytes, digest).encoded))
  }

  private mutating func conclude(_ file: Int, _ root: Digest) throws(TransferError) {
    guard phase == .filling(file), let manifest else { throw .file }
    let size = manifest.size(file: file)
    guard files[file].bytes == size else { throw .bytesMissing }
    if files[file].isWhole {
      let isSame = Tree.root(files[file].leaves) == root
      if !isSame { empty(file) }
      return settle(file, isSame ? .stored : .differs)
    }
    guard let tree = current?.tree, tree.root == root else {
      empty(file)
      return settle(file, .differs)
    }
    if let last = tree.allLeaves.last, tree.allLeaves.count > files[file].leaves.count {
      files[file].leaves.append(last)
      note(file, files[file].leaves.count - 1, Int(size % UInt64(Tree.leafBytes)), last)
    }
    files[file].isWhole = true
    unsynced = 0
    output.append(.note(PartialJournal.Entry.whole(file: file, root: root).encoded))
    output.append(.keep(file: file, isLast: true))
    settle(file, .stored)
  }

  // MARK: An item

  /// Sets the verdict of a file and continues with the next file. After the last file of an item, the item is placed if
  /// all its files are complete.
  private mutating func settle(_ file: Int, _ verdict: Verdict) {
    files[file].verdict = verdict
    if verdict == .notSent || verdict == .differs { output.append(.send(.verdict(file: UInt32(file), verdict))) }
    phase = .receiving(file + 1)
    current = nil
    guard let manifest else { return }
    let item = manifest.item(file: file), all = manifest.items[item].files
    if file + 1 == all.upperBound {
      if numbers[item] != nil {
        reportVerdicts(all, .stored)
      } else if all.allSatisfy({ files[$0].verdict == .stored }) {
        placing = item
        output.append(.place(item: item))
      } else {
        reportVerdicts(all, .kept)
      }
    }
    if file + 1 == files.count { placeFolders() }
  }

  /// Places the items that contain no file, because no verdict depends on these items.
  private mutating func placeFolders() {
    guard let manifest else { return }
    for (index, item) in manifest.items.enumerated() where item.files.isEmpty && numbers[index] == nil {
      output.append(.place(item: index))
    }
  }

  /// Records that an item was moved to the destination directory. `number` is the number in its name
  /// (`FileNames.numbered`).
  public mutating func placed(item: Int, number: Int) {
    guard let manifest, item < numbers.count, phase != .ended else { return }
    numbers[item] = number
    output.append(.note(PartialJournal.Entry.placed(item: item, number: number).encoded))
    if placing == item {
      placing = nil
      reportVerdicts(manifest.items[item].files, .stored)
    }
  }

  private mutating func reportVerdicts(_ range: Range<Int>, _ verdict: Verdict) {
    for file in range where files[file].verdict == .stored {
      files[file].verdict = verdict
      output.append(.send(.verdict(file: UInt32(file), verdict)))
    }
  }

  // MARK: Commands

  public mutating func nextCommand() -> Command? {
    if phase == .checking, output.isEmpty, reading == nil { check() }
    return output.removeFirst()
  }

  mutating func end(_ outcome: ReceiverOutcome, saying last: Record?) {
    guard phase != .ended else { return }
    let mayBeHeard = phase != .idle
    phase = .ended
    output.keep { _ in false }
    if let last, mayBeHeard { output.append(.send(last)) }
    output.append(.finish(outcome))
  }
}

/// A first-in, first-out queue.
struct Outputs<Element: Sendable>: Sendable {
  private var elements: [Element] = []
  private var head = 0

  var isEmpty: Bool { head == elements.count }
  mutating func append(_ element: Element) { elements.append(element) }

  mutating func removeFirst() -> Element? {
    guard head < elements.count else { return nil }
    defer {
      head += 1
      if head == elements.count { (elements, head) = ([], 0) }
    }
    return elements[head]
  }

  mutating func keep(_ stays: (Element) -> Bool) {
    elements = elements[head...].filter(stays)
    head = 0
  }
}
