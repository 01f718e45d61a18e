import Primitives

/// The entries of a table, or a part of these entries, as sent to another node. The entries are decoded and in order,
/// but not verified.
///
///     0 origins, 1 … 32 · 1 merges, at most 31 · 2 records, at most 106 · then the origins by id, the merges by their
///     ids, and the records by session and address. Entries name a session by its index among the origins.
public struct TableEntries: Equatable, Sendable {
  /// An origin and its id.
  public struct Origin: Equatable, Sendable {
    public let id: SessionID
    public let origin: SessionOrigin

    public init(_ origin: SessionOrigin, _ cryptography: any SessionCryptography) {
      self.origin = origin
      id = origin.id(cryptography)
    }
  }

  public var origins: [Origin]
  public var merges: [SessionMerge]
  public var records: [MemberRecord]

  public init(origins: [Origin], merges: [SessionMerge], records: [MemberRecord]) {
    self.origins = origins
    self.merges = merges
    self.records = records
  }

  /// Reads the entries, which are the rest of a message.
  init(
    _ reader: inout ByteReader<SessionMessageError>, _ cryptography: any SessionCryptography
  ) throws(SessionMessageError) {
    let originCount = Int(try reader.u8()), mergeCount = Int(try reader.u8()), recordCount = Int(try reader.u8())
    guard originCount > 0 else { throw .outOfRange }
    guard originCount <= SessionLimits.originsMax, mergeCount < SessionLimits.originsMax,
      recordCount <= SessionLimits.recordsMax
    else { throw .tooLong }
    origins = []
    merges = []
    records = []
    for _ in 0..<originCount { origins.append(Origin(try SessionOrigin(&reader), cryptography)) }
    let ids = origins.map { $0.id }
    for index in 1..<max(1, originCount) where !(ids[index - 1] < ids[index]) { throw .malformed }
    for _ in 0..<mergeCount {
      let merge = try SessionMerge(&reader, ids)
      if let last = merges.last, !SessionMerge.isOrdered(last, before: merge) { throw .malformed }
      merges.append(merge)
    }
    for _ in 0..<recordCount {
      let record = try MemberRecord(&reader, ids)
      if let last = records.last, !MemberRecord.isOrdered(last, before: record) { throw .malformed }
      records.append(record)
    }
    guard reader.remaining == 0 else { throw .tooLong }
  }

  /// The number of bytes that `append` appends.
  var byteCount: Int {
    records.reduce(3 + origins.count * SessionOrigin.byteCount + merges.count * SessionMerge.byteCount) {
      $0 + $1.byteCount
    }
  }

  func append(to bytes: inout [UInt8]) {
    bytes.append(UInt8(origins.count))
    bytes.append(UInt8(merges.count))
    bytes.append(UInt8(records.count))
    for origin in origins { origin.origin.append(to: &bytes) }
    for merge in merges { merge.append(to: &bytes, first: index(merge.lower), second: index(merge.higher)) }
    for record in records { record.append(to: &bytes, index: index(record.session)) }
  }

  private func index(_ session: SessionID) -> Int {
    guard let index = origins.firstIndex(where: { $0.id == session }) else {
      preconditionFailure("an entry of a session that the table does not list")
    }
    return index
  }
}
