import Primitives

/// SHA-256 of a resource's bytes.
public struct ResourceDigest: Equatable, Sendable {
  public static let byteCount = 32
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// Nil unless `bytes` has 32 bytes.
  public init?(_ bytes: RawSpan) {
    guard bytes.byteCount == Self.byteCount else { return nil }
    words = (bytes.word64(0), bytes.word64(8), bytes.word64(16), bytes.word64(24))
  }

  public var bytes: [UInt8] {
    var result: [UInt8] = []
    result.append(bigEndian: words.0)
    result.append(bigEndian: words.1)
    result.append(bigEndian: words.2)
    result.append(bigEndian: words.3)
    return result
  }

  public static func == (a: ResourceDigest, b: ResourceDigest) -> Bool { a.words == b.words }
}

/// Kind 2: an offer to send a resource.
///
///     0–3 transfer · 4–11 size · 12–43 SHA-256 · 44 length of the name, at least 1 · 45… name, UTF-8
public struct ResourceOffer: Equatable, Sendable {
  /// Chosen by the sender, unique among its current transfers to this peer.
  public var transfer: UInt32
  public var size: UInt64
  public var digest: ResourceDigest
  /// Valid UTF-8, but not trusted; see `ResourceName`.
  public var name: [UInt8]

  public init(transfer: UInt32, size: UInt64, digest: ResourceDigest, name: [UInt8]) throws(MessageRefusal) {
    guard size <= MessageLimits.resourceBytesMax else { throw .offsetTooLarge }
    guard !name.isEmpty else { throw .empty }
    guard name.count <= MessageLimits.nameBytesMax else { throw .tooLong }
    guard UTF8Text.isValid(name.span.bytes) else { throw .notUTF8 }
    self.transfer = transfer
    self.size = size
    self.digest = digest
    self.name = name
  }

  public init(_ bytes: RawSpan) throws(MessageRefusal) {
    guard bytes.byteCount >= 45 else { throw .tooShort }
    let end = 45 + Int(bytes.octet(44))
    guard bytes.byteCount >= end else { throw .tooShort }
    guard bytes.byteCount == end else { throw .tooLong }
    guard let digest = ResourceDigest(bytes.extracting(12..<44)) else { throw .tooShort }
    try self.init(
      transfer: bytes.word32(0), size: bytes.word64(4), digest: digest,
      name: [UInt8](copying: bytes.extracting(45..<end)))
  }

  public var message: Message {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: transfer)
    bytes.append(bigEndian: size)
    bytes += digest.bytes
    bytes.append(UInt8(name.count))
    bytes += name
    return Message(kind: .resourceOffer, bytes: bytes)
  }
}

/// Answers of the receiver: to the offer, and at the end.
public enum ResourceStatus: UInt8, Sendable, CaseIterable {
  /// To the offer: send, from the resume offset on.
  case accepted = 0
  /// To the offer: the user or application declined.
  case declined = 1
  /// To the offer: longer than the receiver accepts.
  case tooLarge = 2
  /// To the offer: the receiver has its limit of transfers.
  case busy = 3
  /// At the end: everything arrived and has the offered digest.
  case complete = 16
  /// At the end: everything arrived, but the digest differs.
  case digestMismatch = 17
  /// At any time: the receiver cannot write it; the explanation says why.
  case storageFailed = 18
}

/// Kind 3: the answer to an offer, and the final answer of a transfer.
///
///     0–3 transfer · 4 status · 5–6 reserved 0 · 7 length of the explanation · 8–15 resume offset ·
///     16… explanation, UTF-8
public struct ResourceAnswer: Equatable, Sendable {
  public static let headerBytes = 16

  public var transfer: UInt32
  public var status: ResourceStatus
  /// Where the sender begins: the receiver has this many bytes of an earlier attempt. 0 unless accepted.
  public var resumeOffset: UInt64
  public var explanation: [UInt8]

  /// An explanation that is too long is cut; one that is not UTF-8 is omitted.
  public init(transfer: UInt32, status: ResourceStatus, resumeOffset: UInt64 = 0, explanation: [UInt8] = []) {
    self.transfer = transfer
    self.status = status
    self.resumeOffset = resumeOffset
    self.explanation = fittingExplanation(explanation)
  }

  public init(_ bytes: RawSpan) throws(MessageRefusal) {
    guard bytes.byteCount >= Self.headerBytes else { throw .tooShort }
    guard let status = ResourceStatus(rawValue: bytes.octet(4)) else { throw .unknownCode }
    guard bytes.octet(5) == 0, bytes.octet(6) == 0 else { throw .reservedNotZero }
    guard bytes.word64(8) <= MessageLimits.resourceBytesMax else { throw .offsetTooLarge }
    self.transfer = bytes.word32(0)
    self.status = status
    resumeOffset = bytes.word64(8)
    explanation = try checkedExplanation(bytes, lengthAt: 7, from: Self.headerBytes)
  }

  public var message: Message {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: transfer)
    bytes += [status.rawValue, 0, 0, UInt8(explanation.count)]
    bytes.append(bigEndian: resumeOffset)
    bytes += explanation
    return Message(kind: .resourceAnswer, bytes: bytes)
  }
}

/// Kind 4: a part of a resource.
///
///     0–3 transfer · 4–11 offset · 12… data, 1 to `MessageLimits.chunkBytesMax` bytes
public struct ResourceChunk: Equatable, Sendable {
  public static let headerBytes = 12

  public var transfer: UInt32
  public var offset: UInt64
  public var data: [UInt8]

  /// `data` holds 1 to `MessageLimits.chunkBytesMax` bytes.
  public init(transfer: UInt32, offset: UInt64, data: [UInt8]) throws(MessageRefusal) {
    guard !data.isEmpty else { throw .empty }
    guard data.count <= MessageLimits.chunkBytesMax else { throw .tooLong }
    guard offset <= MessageLimits.resourceBytesMax else { throw .offsetTooLarge }
    self.transfer = transfer
    self.offset = offset
    self.data = data
  }

  public init(_ bytes: RawSpan) throws(MessageRefusal) {
    guard bytes.byteCount >= Self.headerBytes else { throw .tooShort }
    try self.init(
      transfer: bytes.word32(0), offset: bytes.word64(4), data: [UInt8](copying: bytes.extracting(Self.headerBytes...)))
  }

  public var message: Message {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.headerBytes + data.count)
    bytes.append(bigEndian: transfer)
    bytes.append(bigEndian: offset)
    bytes += data
    return Message(kind: .resourceChunk, bytes: bytes)
  }
}

/// Kind 5: the sender has sent every chunk.
///
///     0–3 transfer
public struct ResourceEnd: Equatable, Sendable {
  public static let byteCount = 4
  public var transfer: UInt32

  public init(transfer: UInt32) { self.transfer = transfer }

  public init(_ bytes: RawSpan) throws(MessageRefusal) {
    guard bytes.byteCount >= Self.byteCount else { throw .tooShort }
    guard bytes.byteCount == Self.byteCount else { throw .tooLong }
    transfer = bytes.word32(0)
  }

  public var message: Message {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: transfer)
    return Message(kind: .resourceEnd, bytes: bytes)
  }
}

/// The role of an end in a transfer. The sender chooses transfer numbers, so a number alone does not identify a
/// transfer: both ends may be sending.
public enum ResourceRole: UInt8, Sendable, CaseIterable {
  case sender = 1
  case receiver = 2
}

/// Kind 6: one end cancels the transfer. It sends nothing more of it, and expects no answer.
///
///     0–3 transfer · 4 role of the cancelling end · 5 reason · 6 reserved 0 · 7 length of the explanation ·
///     8… explanation, UTF-8
public struct ResourceCancel: Equatable, Sendable {
  /// Why a transfer was cancelled.
  public enum Reason: UInt8, Sendable, CaseIterable {
    /// A user or program requested it.
    case wanted = 0
    /// The resource cannot be read any more.
    case sourceFailed = 1
    /// The other end broke the protocol.
    case protocolBroken = 2
    /// The other end did not send anything for too long.
    case timedOut = 3
    /// The transfer is not known here, because it began before a restart.
    case unknownTransfer = 4
  }
  public static let headerBytes = 8

  public var transfer: UInt32
  public var role: ResourceRole
  public var reason: Reason
  public var explanation: [UInt8]

  /// An explanation that is too long is cut; one that is not UTF-8 is omitted.
  public init(transfer: UInt32, role: ResourceRole, reason: Reason, explanation: [UInt8] = []) {
    self.transfer = transfer
    self.role = role
    self.reason = reason
    self.explanation = fittingExplanation(explanation)
  }

  public init(_ bytes: RawSpan) throws(MessageRefusal) {
    guard bytes.byteCount >= Self.headerBytes else { throw .tooShort }
    guard let role = ResourceRole(rawValue: bytes.octet(4)), let reason = Reason(rawValue: bytes.octet(5)) else {
      throw .unknownCode
    }
    guard bytes.octet(6) == 0 else { throw .reservedNotZero }
    transfer = bytes.word32(0)
    self.role = role
    self.reason = reason
    explanation = try checkedExplanation(bytes, lengthAt: 7, from: Self.headerBytes)
  }

  public var message: Message {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: transfer)
    bytes += [role.rawValue, reason.rawValue, 0, UInt8(explanation.count)]
    bytes += explanation
    return Message(kind: .resourceCancel, bytes: bytes)
  }
}

private func fittingExplanation(_ text: [UInt8]) -> [UInt8] {
  guard UTF8Text.isValid(text.span.bytes) else { return [] }
  return Array(text[..<UTF8Text.prefixLength(text.span.bytes, byteCountMax: MessageLimits.explanationBytesMax)])
}

private func checkedExplanation(_ bytes: RawSpan, lengthAt: Int, from: Int) throws(MessageRefusal) -> [UInt8] {
  let length = Int(bytes.octet(lengthAt))
  guard length <= MessageLimits.explanationBytesMax, bytes.byteCount <= from + length else { throw .tooLong }
  guard bytes.byteCount == from + length else { throw .tooShort }
  guard UTF8Text.isValid(bytes.extracting(from..<from + length)) else { throw .notUTF8 }
  return [UInt8](copying: bytes.extracting(from...))
}
