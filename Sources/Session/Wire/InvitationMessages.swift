import Primitives

/// Kind 16: an invitation into a session.
///
///     0–3 number · 4–5 seconds, 1 … 3600 · 6–9 inviter's endpoint · 10–13 invitee's endpoint · 14 members, 1 … 64 ·
///     15 zero · 16–118 origin of the session · 119… context, at most 4096 bytes
public struct InviteMessage: Equatable, Sendable {
  /// The number of the invitation. The inviter's node chooses a different number for each invitation until the node
  /// restarts.
  public var number: UInt32
  /// The validity of the invitation in seconds, counted from the arrival of this message.
  public var seconds: UInt16
  public var from: UInt32
  public var to: UInt32
  /// The current number of members of the inviter's session, 1 … 64.
  public var memberCount: UInt8
  /// The origin of the session for which the inviter admits.
  public var origin: SessionOrigin
  /// Opaque bytes of the inviting application; untrusted.
  public var context: [UInt8]

  public init(
    number: UInt32, seconds: UInt16, from: UInt32, to: UInt32, memberCount: UInt8, origin: SessionOrigin,
    context: [UInt8]
  ) {
    self.number = number
    self.seconds = seconds
    self.from = from
    self.to = to
    self.memberCount = memberCount
    self.origin = origin
    self.context = context
  }

  public init(_ bytes: RawSpan) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    number = try reader.u32()
    seconds = try reader.u16()
    from = try reader.u32()
    to = try reader.u32()
    memberCount = try reader.u8()
    guard try reader.u8() == 0 else { throw .reservedNotZero }
    guard (1...UInt16(SessionLimits.invitationTimeMax.milliseconds / 1000)).contains(seconds), from != 0, to != 0,
      (1...SessionLimits.membersMax).contains(Int(memberCount))
    else { throw .outOfRange }
    origin = try SessionOrigin(&reader)
    guard reader.remaining <= SessionLimits.contextBytesMax else { throw .tooLong }
    context = try reader.array(reader.remaining)
  }

  /// The number of `bytes`.
  public var byteCount: Int { 16 + SessionOrigin.byteCount + context.count }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    bytes.append(bigEndian: seconds)
    bytes.append(bigEndian: from)
    bytes.append(bigEndian: to)
    bytes += [memberCount, 0]
    origin.append(to: &bytes)
    return bytes + context
  }
}

/// The answer of an invitee. The raw value is sent on the wire.
public enum InvitationAnswer: UInt8, Sendable, CaseIterable {
  case accepted = 0
  case declined = 1
  /// Too many invitations wait at the invitee.
  case busy = 2
  case full = 3
  /// The endpoint offers no service.
  case noService = 4
  /// The rules of the two sessions differ, or the invitee is not allowed to admit others into its own session. Also:
  /// the rules require sealing, and the two nodes do not seal.
  case incompatible = 5
  /// The invitee has invited the inviter too, has the lower address, and the invitee's application agrees. So the
  /// invitee's own invitation decides about both.
  case crossed = 6
}

/// Kind 17: the answer to an invitation.
///
///     0–3 number · 4 answer · 5 length of the explanation, at most 200 · 6… explanation · for answer 0 also:
///     0 without, or 1 with a session of the invitee's own: its id (16), the invitee's signature of the merge (64),
///     its table
public struct AnswerMessage: Equatable, Sendable {
  /// The invitee's own session, which is to be merged with the inviter's session.
  public struct Offer: Equatable, Sendable {
    public var session: SessionID
    public var signature: Signature
    public var entries: TableEntries

    public init(session: SessionID, signature: Signature, entries: TableEntries) {
      self.session = session
      self.signature = signature
      self.entries = entries
    }
  }

  public var number: UInt32
  public var answer: InvitationAnswer
  /// Plain text for people; untrusted.
  public var explanation: [UInt8]
  public var offer: Offer?

  public init(number: UInt32, answer: InvitationAnswer, explanation: [UInt8] = [], offer: Offer? = nil) {
    self.number = number
    self.answer = answer
    self.explanation = explanation
    self.offer = offer
  }

  public init(_ bytes: RawSpan, _ cryptography: any SessionCryptography) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    number = try reader.u32()
    guard let answer = InvitationAnswer(rawValue: try reader.u8()) else { throw .unknownCode }
    self.answer = answer
    let length = Int(try reader.u8())
    guard length <= SessionLimits.explanationBytesMax else { throw .tooLong }
    explanation = try reader.array(length)
    guard isPlainText(explanation.span.bytes) else { throw .notText }
    let hasOffer = answer == .accepted ? try reader.u8() : 0
    guard hasOffer <= 1 else { throw .unknownCode }
    if hasOffer == 1 {
      let session = try SessionID(&reader)
      let signature = try Signature(&reader)
      let entries = try TableEntries(&reader, cryptography)
      guard entries.origins.contains(where: { $0.id == session }) else { throw .malformed }
      offer = Offer(session: session, signature: signature, entries: entries)
    }
    guard reader.remaining == 0 else { throw .tooLong }
  }

  /// The number of `bytes`.
  public var byteCount: Int {
    let offered = offer.map { SessionID.byteCount + Signature.byteCount + $0.entries.byteCount } ?? 0
    return 6 + explanation.count + (answer == .accepted ? 1 + offered : 0)
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    bytes += [answer.rawValue, UInt8(explanation.count)]
    bytes += explanation
    guard answer == .accepted else { return bytes }
    bytes.append(offer == nil ? 0 : 1)
    if let offer {
      bytes.append(offer.session)
      bytes += offer.signature.array
      offer.entries.append(to: &bytes)
    }
    return bytes
  }
}

/// Kind 18: the inviter's table, the inviter's half of the invitee's ticket (signed membership), and the pending
/// members. The ticket is for the session of the invitation.
///
///     0–3 number · 4: 1 with a ticket, 0 if the sessions were merged and the invitee has a ticket of its own ·
///     of the ticket version (4), depth (1), admission (64) · number of pending members, at most 16, and their
///     addresses (20) · then the table
public struct WelcomeMessage: Equatable, Sendable {
  /// The admitter's half of a ticket. The invitee completes the ticket by its own signature.
  public struct Admission: Equatable, Sendable {
    public var version: UInt32
    public var depth: UInt8
    public var signature: Signature

    public init(version: UInt32, depth: UInt8, signature: Signature) {
      self.version = version
      self.depth = depth
      self.signature = signature
    }
  }

  public var number: UInt32
  public var admission: Admission?
  /// Pending members: addresses that the inviter has welcomed too, and that are not in the inviter's table yet. If the
  /// inviter disappears without notifying the pending members, only this list introduces these members and the invitee
  /// to each other.
  public var newcomers: [MemberAddress]
  public var entries: TableEntries

  public init(number: UInt32, admission: Admission?, newcomers: [MemberAddress] = [], entries: TableEntries) {
    self.number = number
    self.admission = admission
    self.newcomers = newcomers
    self.entries = entries
  }

  public init(_ bytes: RawSpan, _ cryptography: any SessionCryptography) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    number = try reader.u32()
    switch try reader.u8() {
    case 0: admission = nil
    case 1:
      let version = try reader.u32(), depth = try reader.u8()
      guard version > 0, depth <= SessionLimits.depthMax else { throw .outOfRange }
      admission = Admission(version: version, depth: depth, signature: try Signature(&reader))
    default: throw .unknownCode
    }
    let count = Int(try reader.u8())
    guard count <= SessionLimits.pendingMembersMax else { throw .tooLong }
    newcomers = []
    for _ in 0..<count { newcomers.append(try MemberAddress(&reader)) }
    entries = try TableEntries(&reader, cryptography)
  }

  /// The number of `bytes`.
  public var byteCount: Int {
    6 + (admission == nil ? 0 : 5 + Signature.byteCount) + newcomers.count * MemberAddress.byteCount
      + entries.byteCount
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    bytes.append(admission == nil ? 0 : 1)
    if let admission {
      bytes.append(bigEndian: admission.version)
      bytes.append(admission.depth)
      bytes += admission.signature.array
    }
    bytes.append(UInt8(newcomers.count))
    for newcomer in newcomers { bytes.append(newcomer) }
    entries.append(to: &bytes)
    return bytes
  }
}

/// Kind 19: the inviter ends an invitation.
///
///     0–3 number · 4 reason · 5–7 zero
public struct EndMessage: Equatable, Sendable {
  /// The reason for the end of an invitation. The raw value is sent on the wire.
  public enum Reason: UInt8, Sendable, CaseIterable {
    case cancelled = 1
    case timedOut = 2
    /// The session has no place left.
    case full = 3
    /// The two sessions cannot be merged.
    case incompatible = 4
  }

  public var number: UInt32
  public var reason: Reason

  public init(number: UInt32, reason: Reason) {
    self.number = number
    self.reason = reason
  }

  public init(_ bytes: RawSpan) throws(SessionMessageError) {
    var reader = ByteReader(bytes, orThrow: SessionMessageError.truncated)
    number = try reader.u32()
    guard let reason = Reason(rawValue: try reader.u8()) else { throw .unknownCode }
    self.reason = reason
    guard try reader.u8() == 0, try reader.u16() == 0 else { throw .reservedNotZero }
    guard reader.remaining == 0 else { throw .tooLong }
  }

  public static let byteCount = 8

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: number)
    return bytes + [reason.rawValue, 0, 0, 0]
  }
}
