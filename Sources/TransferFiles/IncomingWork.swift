import Transfer

/// The receiver's side of a transfer: carries out the commands of `TransferReceiver` on files.
public struct IncomingWork: Sendable {
  /// The result of a step.
  public struct Step: Sendable {
    /// The bytes to write to the receiver's stream.
    public var bytes: [UInt8] = []
    /// An offer that has arrived and must be answered; nil if there is none.
    public var offer: OfferRecord?
    public var outcome: ReceiverOutcome?
  }

  public private(set) var receiver = TransferReceiver()
  private var splitter = RecordSplitter()
  private var partial: Partial?
  private var directory = ""

  public init() {}

  /// Handles bytes of the sender's stream.
  public mutating func receive(_ bytes: [UInt8]) -> Step {
    splitter.append(bytes)
    var step = Step()
    do throws(TransferError) {
      while let record = try splitter.next() {
        receiver.handle(record)
        carryOut(&step)
      }
    } catch {
      receiver.broken(error)
      carryOut(&step)
    }
    return step
  }

  /// Handles the regular end of the sender's stream.
  public mutating func finished() -> Step {
    if !receiver.streamFinished() { receiver.broken(.bytesMissing) }
    return rest()
  }

  public mutating func refuse(_ code: AnswerCode, _ text: [UInt8]) -> Step {
    receiver.refuse(code, text)
    return rest()
  }

  public mutating func cancel(_ text: [UInt8]) -> Step {
    receiver.cancel(text)
    return rest()
  }

  /// Handles the loss of the stream: prepares for the same offer on another stream.
  public mutating func restart() -> Step {
    receiver.restart()
    splitter = RecordSplitter()
    return rest()
  }

  private mutating func rest() -> Step {
    var step = Step()
    carryOut(&step)
    return step
  }

  public mutating func accept(
    _ directory: String, _ bytesMax: UInt64, _ offer: OfferRecord, from sender: [UInt8]
  ) throws(ResourceError) -> Step {
    var isBusy = false
    do throws(FileError) {
      let folder = try Files.folder(path: directory)
      Partial.removeOld(in: folder)
      guard var partial = try Partial(folder, Partial.name(offer, from: sender)) else {
        isBusy = true
        throw FileError(saying: "it is already being received into this directory")
      }
      let journal = try partial.journalContent()
      let valid = receiver.accept(freeBytes: try Files.space(folder), bytesMax: bytesMax, journal: journal)
      try partial.begin(journalBytes: valid)
      // If the offer was refused, a partial (the stored part of an incomplete resource) that was just created is
      // removed.
      if receiver.isEnded && valid == nil { partial.remove() }
      self.partial = partial
      self.directory = directory
    } catch {
      throw ResourceError(isBusy ? .busy : error.isFull ? .noSpace : .storage, directory, error.text)
    }
    return rest()
  }

  /// Carries out all commands of the state machine, and adds their results to `step`.
  private mutating func carryOut(_ step: inout Step) {
    while let command = receiver.nextCommand() {
      switch command {
      case .send(let record): step.bytes += record.encoded
      case .ask(let offer): step.offer = offer
      case .finish(let outcome): step.outcome = outcome
      case .makeFolders, .read, .write, .truncate, .note, .keep, .place:
        do throws(FileError) {
          try store(command)
        } catch {
          let text = error.isFull ? "the disk is full" : error.text
          receiver.storageFailed(isFull: error.isFull, Array(text.utf8))
        }
      }
    }
  }

  private mutating func store(_ command: TransferReceiver.Command) throws(FileError) {
    guard partial != nil, let manifest = receiver.manifest else {
      if case .note(let bytes) = command { try partial?.note(bytes) }
      return
    }
    switch command {
    case .makeFolders(let manifest): try partial?.makeFolders(manifest)
    case .read(let file, let offset, let count):
      receiver.provide(partial?.read(file, offset, count, manifest) ?? [])
    case .write(let file, let offset, let bytes): try partial?.write(file, offset, bytes, manifest)
    case .truncate(let file, let bytes): try partial?.truncate(file, bytes, manifest)
    case .note(let bytes): try partial?.note(bytes)
    case .keep(let file, let isLast): try partial?.keep(file, isLast: isLast, manifest)
    case .place(let item):
      if let number = try partial?.place(item, manifest) { receiver.placed(item: item, number: number) }
    case .send, .ask, .finish: break
    }
  }

  /// The paths of the items that were moved to the destination directory.
  public var paths: [String] {
    guard let manifest = receiver.manifest else { return [] }
    return manifest.items.indices.compactMap { path(item: $0) }
  }

  /// The path of an item in the destination directory; nil if the item was not moved there yet.
  public func path(item: Int) -> String? {
    guard let manifest = receiver.manifest, let number = receiver.number(item: item) else { return nil }
    let base = directory.utf8.last == UInt8(ascii: "/") ? directory : directory + "/"
    return base
      + String(decoding: FileNames.numbered(FileNames.visible(manifest.name(item: item)), number), as: UTF8.self)
  }

  /// The path of a file as written in the manifest; empty without a manifest.
  public func path(_ file: Int) -> [UInt8] {
    receiver.manifest.map { $0.entries[$0.files[file]].path } ?? []
  }

  /// Removes the partial from disk. Call this method when the partial is no longer needed.
  public mutating func removePartial() {
    partial?.remove()
    partial = nil
  }

  public mutating func close() { partial = nil }
}
