/// How a transfer ended at its receiver.
public enum ReceiverOutcome: Equatable, Sendable {
  /// Every file has a verdict.
  case complete([Verdict])
  /// This end refused it.
  case refused(AnswerCode)
  case cancelledHere
  case cancelledByPeer(CancelCode, text: [UInt8])
  /// This end could not write.
  case storageFailed(isFull: Bool, text: [UInt8])
  /// The sender broke the protocol.
  case broken(TransferFault)
}

/// Receives files and folders. Records come in by `handle`; after each call `nextCommand` is asked until it returns nil,
/// and its commands are carried out in their order. `read` is answered by `provide`, `place` by `placed`, before the next
/// command is asked for; what fails is told by `storageFailed`.
///
/// When the stream breaks, `restart` waits for the same offer on another one, and accepts it by itself.
public struct TransferReceiver: Sendable {
  /// What the caller does. Files and items have the numbers of the manifest.
  public enum Command: Equatable, Sendable {
    case send(Record)
    /// The offer has come: `accept` or `refuse` it.
    case ask(OfferRecord)
    /// Folders of the manifest are made where they are missing.
    case makeFolders(Manifest)
    /// Of a partial: fewer bytes, or none, when the file is shorter.
    case read(file: Int, offset: UInt64, count: Int)
    case write(file: Int, offset: UInt64, [UInt8])
    case truncate(file: Int, bytes: UInt64)
    /// Appends to the journal.
    case note([UInt8])
    /// What was written of a file, and then the journal, must survive a loss of power. Last: nothing more is written to
    /// it.
    case keep(file: Int, isLast: Bool)
    /// Moves an item to its place.
    case place(item: Int)
    case finish(ReceiverOutcome)
  }

  enum Phase: Equatable {
    /// Until the offer.
    case idle
    case asking
    case listing
    /// A partial is looked at.
    case checking
    /// This file is the next one.
    case receiving(Int)
    /// Bytes of this file come.
    case filling(Int)
    case ended
  }

  struct File {
    var leaves: [Digest] = []
    /// With those behind the last whole leaf.
    var bytes: UInt64 = 0
    var isWhole = false
    var verdict: Verdict?
  }

  public internal(set) var offer: OfferRecord?
  public internal(set) var manifest: Manifest?
  var phase = Phase.idle
  var files: [File] = []
  /// Of the file that was written last.
  var current: (file: Int, tree: Tree)?
  var output = Outputs<Command>()
  private var listed: [UInt8] = []
  private var unsynced = 0
  private var placing: Int?
  var numbers: [Int?] = []
  /// What is left to look at of a partial.
  var checks: [(file: Int, leaf: Int)] = []
  var reading: (file: Int, leaf: Int)?
  var found: [PartialJournal.Entry] = []
  /// The partial was looked at.
  var isChecked = false

  /// Bytes that were here when this attempt began.
  public private(set) var bytesHeld: UInt64 = 0
  /// Bytes that are here.
  public private(set) var bytesDone: UInt64 = 0
  /// Bytes that came, all attempts counted.
  public private(set) var bytesReceived: UInt64 = 0

  public init() {}

  public var filesDone: Int { files.count { $0.isWhole } }
  public var isEnded: Bool { phase == .ended }
  /// Files come, or were all here.
  public var isAccepted: Bool { manifest != nil && phase != .ended }

  /// The n-th of its name, of an item that stands in its place.
  public func number(item: Int) -> Int? { item < numbers.count ? numbers[item] : nil }

  // MARK: The answer

  /// Accepts the offer. The caller says what it knows of the destination.
  ///
  /// - Parameters:
  ///   - freeBytes: what can still be written there.
  ///   - bytesMax: the largest offer that is taken.
  ///   - journal: of a partial of this resource, empty when there is none.
  /// - Returns: so many bytes of the journal count; what is behind them has to be cut off. Nil when it is none of this
  ///   resource: a new one begins with a `note`.
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

  /// Refuses the offer, with a word for the sender's user.
  public mutating func refuse(_ code: AnswerCode, _ text: [UInt8] = []) {
    guard phase == .asking else { return }
    end(.refused(code), saying: .answer(code, text: Names.explanation(text)))
  }

  /// Ends it; what came is kept for another time.
  public mutating func cancel(_ text: [UInt8] = []) {
    end(.cancelledHere, saying: .cancel(.wanted, text: Names.explanation(text)))
  }

  /// Something could not be written.
  public mutating func storageFailed(isFull: Bool, _ text: [UInt8]) {
    let text = Names.explanation(text)
    end(
      .storageFailed(isFull: isFull, text: text), saying: .cancel(isFull ? .storageFull : .storageFailed, text: text))
  }

  /// The stream broke: the same offer is waited for.
  public mutating func restart() {
    guard phase != .ended else { return }
    if offer == nil || phase == .asking { return end(.cancelledByPeer(.wanted, text: []), saying: nil) }
    if let reading, reading.leaf < files[reading.file].leaves.count { checks.insert(reading, at: 0) }
    // The end of a file that was being looked at is looked at again.
    if !isChecked { current = nil }
    (phase, listed, reading) = (.idle, [], nil)
    output.keep(Self.stands)
  }

  /// Of what is still to be done when the stream breaks, only what is for the sender is void.
  private static func stands(_ command: Command) -> Bool {
    switch command {
    case .send, .read: false
    case .ask, .makeFolders, .write, .truncate, .note, .keep, .place, .finish: true
    }
  }

  // MARK: Records

  /// A record of the sender.
  public mutating func handle(_ record: Record) {
    guard phase != .ended else { return }
    do throws(TransferFault) {
      try take(record)
    } catch {
      broken(error)
    }
  }

  /// The sender's bytes are no records.
  public mutating func broken(_ fault: TransferFault) {
    end(.broken(fault), saying: .cancel(.broken, text: Array(fault.text.utf8)))
  }

  /// The sender has finished its stream. False when something is missing.
  public mutating func streamFinished() -> Bool {
    guard phase != .ended else { return true }
    guard case .receiving(files.count) = phase, placing == nil else { return false }
    end(.complete(files.map { $0.verdict ?? .notSent }), saying: nil)
    return true
  }

  /// Every file has a verdict: the sender has only to hear the last ones.
  public var isComplete: Bool { phase == .receiving(files.count) && manifest != nil && placing == nil }

  private mutating func take(_ record: Record) throws(TransferFault) {
    switch record {
    case .offer(let offer):
      guard phase == .idle else { throw .unexpected }
      if let known = self.offer {
        guard known == offer else { throw .unexpected }
        if manifest != nil {
          output.append(.send(.answer(.acceptedAgain, text: [])))
          if isChecked { tellHeld() } else { phase = .checking }
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
      tellLeaves(Int(file))
    case .cancel(let code, let text): end(.cancelledByPeer(code, text: text), saying: nil)
    case .prompt, .answer, .held, .ready, .verdict, .leaves: throw .unexpected
    }
  }

  private mutating func list(_ bytes: [UInt8]) throws(TransferFault) {
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

  /// What is here, in the order of files; then it is the sender's turn.
  mutating func tellHeld() {
    isChecked = true
    // Only the file whose turn is next may end within a leaf.
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
    // Nothing will come, and the sender takes this for the verdict.
    if files.isEmpty { placeFolders() }
    output.append(.send(.ready))
    phase = .receiving(0)
  }

  /// Over all that is here of a file.
  private func tree(_ file: Int) -> Tree {
    if let current, current.file == file { return current.tree }
    return Tree(leaves: files[file].leaves)
  }

  private mutating func tellLeaves(_ file: Int) {
    let leaves = files[file].isWhole ? files[file].leaves : tree(file).allLeaves
    for first in stride(from: 0, to: leaves.count, by: TransferLimits.leavesMax) {
      let some = Array(leaves[first..<min(first + TransferLimits.leavesMax, leaves.count)])
      output.append(.send(.leaves(file: UInt32(file), first: UInt32(first), some)))
    }
  }

  // MARK: A file

  private mutating func begin(_ file: Int, _ offset: UInt64) throws(TransferFault) {
    guard phase == .receiving(file), file < files.count, let manifest else { throw .file }
    let held = files[file].bytes, whole = offset / UInt64(Tree.leafBytes)
    guard offset <= held, offset == held || offset % UInt64(Tree.leafBytes) == 0 else { throw .offset }
    let isPlaced = numbers[manifest.item(file: file)] != nil
    if offset < held {
      // It is the user's file by now.
      guard !isPlaced else { throw .offset }
      bytesDone -= held - offset
      cut(file, Int(whole))
    } else if current?.file != file && !files[file].isWhole {
      current = (file, Tree(leaves: files[file].leaves))
    }
    // An empty file has to be there too.
    if manifest.size(file: file) == 0 && !isPlaced { output.append(.truncate(file: file, bytes: 0)) }
    phase = .filling(file)
  }

  /// A file is written anew behind so many leaves.
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

  private mutating func fill(_ bytes: [UInt8]) throws(TransferFault) {
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

  /// Bytes that are in a file count as held; its leaves are noted.
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

  private mutating func conclude(_ file: Int, _ root: Digest) throws(TransferFault) {
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

  /// The turn of the next file. With the last one of an item the item can be placed.
  private mutating func settle(_ file: Int, _ verdict: Verdict) {
    files[file].verdict = verdict
    if verdict == .notSent || verdict == .differs { output.append(.send(.verdict(file: UInt32(file), verdict))) }
    phase = .receiving(file + 1)
    current = nil
    guard let manifest else { return }
    let item = manifest.item(file: file), all = manifest.items[item].files
    if file + 1 == all.upperBound {
      if numbers[item] != nil {
        tellVerdicts(all, .stored)
      } else if all.allSatisfy({ files[$0].verdict == .stored }) {
        placing = item
        output.append(.place(item: item))
      } else {
        tellVerdicts(all, .kept)
      }
    }
    if file + 1 == files.count { placeFolders() }
  }

  /// Folders without a file have no verdict to wait for.
  private mutating func placeFolders() {
    guard let manifest else { return }
    for (index, item) in manifest.items.enumerated() where item.files.isEmpty && numbers[index] == nil {
      output.append(.place(item: index))
    }
  }

  /// An item stands in its place, as the n-th of its name.
  public mutating func placed(item: Int, number: Int) {
    guard let manifest, item < numbers.count, phase != .ended else { return }
    numbers[item] = number
    output.append(.note(PartialJournal.Entry.placed(item: item, number: number).encoded))
    if placing == item {
      placing = nil
      tellVerdicts(manifest.items[item].files, .stored)
    }
  }

  private mutating func tellVerdicts(_ range: Range<Int>, _ verdict: Verdict) {
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

/// First in, first out.
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
