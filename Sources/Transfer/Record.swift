/// The record that offers a set of files and folders to a receiver. See docs/resources.md, “Records”.
public struct OfferRecord: Equatable, Sendable {
  /// The SHA-256 of the manifest. Equal names and sizes have the same digest, so the digest identifies the resource
  /// after a lost stream or a restart.
  public let manifest: Digest
  /// The size of the manifest in bytes, without the headers of the records that carry it.
  public let manifestBytes: UInt32
  /// The number of files and folders in the manifest.
  public let entries: UInt32
  public let files: UInt32
  /// The sum of the sizes of all files, in bytes.
  public let bytes: UInt64
  /// The name of the first item of the manifest.
  public let name: [UInt8]

  public init(_ manifest: Manifest) {
    self.manifest = manifest.digest
    manifestBytes = UInt32(truncatingIfNeeded: manifest.bytes.count)
    entries = UInt32(truncatingIfNeeded: manifest.entries.count)
    files = UInt32(truncatingIfNeeded: manifest.files.count)
    bytes = manifest.byteCount
    name = manifest.name(item: 0)
  }

  init(_ fields: inout FieldReader) throws(TransferError) {
    guard try fields.short() >= TransferLimits.version else { throw .version }
    manifest = try fields.digest()
    manifestBytes = try fields.word()
    entries = try fields.word()
    files = try fields.word()
    bytes = try fields.long()
    name = try fields.name()
    guard manifestBytes <= TransferLimits.manifestBytesMax else { throw .manifestLength }
    guard (1...UInt32(TransferLimits.entriesMax)).contains(entries), files <= entries else {
      throw .entries
    }
    guard bytes <= TransferLimits.bytesMax else { throw .sizes }
  }

  func put(into fields: inout FieldWriter) {
    fields.put(TransferLimits.version)
    fields.put(manifest.bytes)
    fields.put(manifestBytes)
    fields.put(entries)
    fields.put(files)
    fields.put(bytes)
    fields.put(text: name)
  }
}

/// The answer to an offer.
public enum AnswerCode: UInt8, Equatable, Sendable, CaseIterable {
  /// The offer is accepted, and the sender must send the manifest.
  case accepted = 0
  /// The offer is accepted again after a break (a lost stream). The receiver still has the manifest, so the sender does
  /// not send the manifest again.
  case acceptedAgain = 1
  case declined = 2
  /// The receiver has not enough free disk space.
  case noSpace = 3
  /// The sum of the file sizes exceeds the receiver's limit.
  case tooLarge = 4
  /// The receiver's user or application did not answer in time.
  case timedOut = 5
  /// The receiver is already receiving this resource.
  case busy = 6
}

/// The result for one file.
public enum Verdict: UInt8, Equatable, Sendable, CaseIterable {
  /// The file is in the destination directory, and its bytes are those that were sent.
  case stored = 0
  /// The received bytes differ from the bytes that were sent.
  case differs = 1
  /// The file was not sent, because the sender could not read it, or it changed during the transfer.
  case notSent = 2
  /// The file arrived completely, but another file of the same item did not. The item is not moved to the destination
  /// directory.
  case kept = 3
}

/// The reason why a transfer was cancelled.
public enum CancelCode: UInt8, Equatable, Sendable, CaseIterable {
  case wanted = 0
  /// The receiver cannot write to its disk.
  case storageFailed = 1
  /// The receiver's disk or disk quota is full.
  case storageFull = 2
  /// The peer at the other end violated the protocol.
  case broken = 3
}

/// A record of a transfer: length (4), type (1), fields. See docs/resources.md, “Records”.
public enum Record: Equatable, Sendable {
  case offer(OfferRecord)
  /// The receiver's user or application is being asked. The offer waits this many seconds for an answer.
  case prompt(seconds: UInt32)
  case answer(AnswerCode, text: [UInt8])
  /// The next piece of the manifest.
  case manifest([UInt8])
  /// The receiver has already stored this many bytes of a file. `root` is the root of the hash tree over these bytes.
  case held(file: UInt32, bytes: UInt64, root: Digest)
  /// The receiver has sent `held` for all files of which bytes are stored.
  case ready
  /// The bytes of a file from this offset on follow.
  case begin(file: UInt32, offset: UInt64)
  case bytes([UInt8])
  /// All bytes of a file were sent. The digest is the root of the hash tree over the complete file.
  case root(file: UInt32, Digest)
  /// A file is not sent. `text` explains the reason.
  case skip(file: UInt32, text: [UInt8])
  case verdict(file: UInt32, Verdict)
  /// Requests the hashes of all leaves that the receiver has stored of a file.
  case compare(file: UInt32)
  case leaves(file: UInt32, first: UInt32, [Digest])
  case cancel(CancelCode, text: [UInt8])

  public var encoded: [UInt8] {
    var fields = FieldWriter(), content: [UInt8] = []
    fields.put(type)
    switch self {
    case .offer(let offer): offer.put(into: &fields)
    case .prompt(let seconds): fields.put(seconds)
    case .answer(let code, let text):
      fields.put(code.rawValue)
      fields.put(text: text)
    case .manifest(let bytes), .bytes(let bytes): content = bytes
    case .held(let file, let bytes, let root):
      fields.put(file)
      fields.put(bytes)
      fields.put(root.bytes)
    case .ready: break
    case .begin(let file, let offset):
      fields.put(file)
      fields.put(offset)
    case .root(let file, let root):
      fields.put(file)
      fields.put(root.bytes)
    case .skip(let file, let text):
      fields.put(file)
      fields.put(text: text)
    case .verdict(let file, let verdict):
      fields.put(file)
      fields.put(verdict.rawValue)
    case .compare(let file): fields.put(file)
    case .leaves(let file, let first, let digests):
      fields.put(file)
      fields.put(first)
      fields.put(UInt16(truncatingIfNeeded: digests.count))
      for digest in digests { fields.put(digest.bytes) }
    case .cancel(let code, let text):
      fields.put(code.rawValue)
      fields.put(text: text)
    }
    var length = FieldWriter()
    length.put(UInt32(truncatingIfNeeded: fields.bytes.count + content.count))
    return joined(length.bytes[...], fields.bytes[...], content[...])
  }

  private var type: UInt8 {
    switch self {
    case .offer: 1
    case .prompt: 2
    case .answer: 3
    case .manifest: 4
    case .held: 5
    case .ready: 6
    case .begin: 7
    case .bytes: 8
    case .root: 9
    case .skip: 10
    case .verdict: 11
    case .compare: 12
    case .leaves: 13
    case .cancel: 14
    }
  }

  /// Parses the type and the fields of a record. Returns nil for an unknown type, which a later protocol version may
  /// define.
  static func read(_ record: ArraySlice<UInt8>) throws(TransferError) -> Record? {
    var fields = FieldReader(record)
    switch try fields.byte() {
    case 1: return .offer(try OfferRecord(&fields))
    case 2: return .prompt(seconds: try fields.word())
    case 3:
      guard let code = AnswerCode(rawValue: try fields.byte()) else { throw .recordField }
      return .answer(code, text: try fields.text())
    case 4:
      guard (1...TransferLimits.manifestPieceBytesMax).contains(fields.rest.count) else { throw .recordLength }
      return .manifest(joined(fields.rest))
    case 5: return .held(file: try fields.word(), bytes: try fields.long(), root: try fields.digest())
    case 6: return .ready
    case 7: return .begin(file: try fields.word(), offset: try fields.long())
    case 8:
      guard (1...TransferLimits.dataBytesMax).contains(fields.rest.count) else { throw .recordLength }
      return .bytes(joined(fields.rest))
    case 9: return .root(file: try fields.word(), try fields.digest())
    case 10: return .skip(file: try fields.word(), text: try fields.text())
    case 11:
      let file = try fields.word()
      guard let verdict = Verdict(rawValue: try fields.byte()) else { throw .recordField }
      return .verdict(file: file, verdict)
    case 12: return .compare(file: try fields.word())
    case 13:
      let file = try fields.word(), first = try fields.word(), count = Int(try fields.short())
      guard (1...TransferLimits.leavesMax).contains(count) else { throw .recordField }
      var digests: [Digest] = []
      for _ in 0..<count { digests.append(try fields.digest()) }
      return .leaves(file: file, first: first, digests)
    case 14:
      // An unknown code, which a later version may define, still cancels the transfer.
      let code = CancelCode(rawValue: try fields.byte()) ?? .wanted
      return .cancel(code, text: try fields.text())
    default: return nil
    }
  }
}

/// Splits the bytes of a stream into records. The splitter stores at most one incomplete record and the last piece of
/// bytes. Bytes that arrive in large pieces are copied once.
public struct RecordSplitter: Sendable {
  /// The maximum number of pieces before they are joined. Many tiny pieces would need more memory than a record.
  private static let piecesMax = 64

  private var pieces: [ArraySlice<UInt8>] = []
  private var count = 0

  public init() {}

  /// Whether there are no bytes of an incomplete record.
  public var isEmpty: Bool { count == 0 }

  public mutating func append(_ bytes: [UInt8]) {
    if pieces.count == Self.piecesMax { join() }
    pieces.append(bytes[...])
    count += bytes.count
  }

  /// The next complete record; nil if no complete record has arrived. Records of an unknown type are skipped.
  public mutating func next() throws(TransferError) -> Record? {
    while let end = try recordEnd(), count >= end {
      if pieces[0].count < end { join() }
      let whole = pieces[0]
      pieces[0] = whole.dropFirst(end)
      count -= end
      if count == 0 { pieces = [] }
      if let known = try Record.read(whole.prefix(end).dropFirst(Self.lengthBytes)) { return known }
    }
    return nil
  }

  private static let lengthBytes = 4

  /// The size of the next record with its length field, in bytes; nil if the length field has not arrived.
  private mutating func recordEnd() throws(TransferError) -> Int? {
    guard count >= Self.lengthBytes else { return nil }
    if pieces[0].count < Self.lengthBytes { join() }
    var length = 0
    for byte in pieces[0].prefix(Self.lengthBytes) { length = length &<< 8 | Int(byte) }
    guard (1...TransferLimits.recordBytesMax).contains(length) else { throw .recordLength }
    return Self.lengthBytes + length
  }

  private mutating func join() { pieces = [joined(pieces)[...]] }
}
