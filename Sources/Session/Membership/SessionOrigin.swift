import Primitives

/// The id of a session: the first 16 bytes of SHA-256 over its origin. Ids are ordered by their bytes. The lower of two
/// ids becomes the id of a merged session.
public struct SessionID: Hashable, Comparable, Sendable {
  public static let byteCount = 16
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  init(_ reader: inout ByteReader<SessionMessageError>) throws(SessionMessageError) {
    high = try reader.u64()
    low = try reader.u64()
  }

  public static func < (a: SessionID, b: SessionID) -> Bool {
    a.high != b.high ? a.high < b.high : a.low < b.low
  }
}

extension [UInt8] {
  mutating func append(_ session: SessionID) {
    append(bigEndian: session.high)
    append(bigEndian: session.low)
  }
}

/// The rules of a session. The founder fixes the rules, and the session's id depends on these rules.
public struct SessionRules: Equatable, Sendable {
  /// Whether only the founder admits members; otherwise every member does.
  public var onlyFounderAdmits: Bool
  /// Whether members connect only if their nodes seal their traffic.
  public var onlySealed: Bool
  /// The maximum number of members at once, 2 … 64.
  public var membersMax: UInt8

  public init(
    onlyFounderAdmits: Bool = false, onlySealed: Bool = true, membersMax: Int = SessionLimits.membersDefault
  ) {
    self.onlyFounderAdmits = onlyFounderAdmits
    self.onlySealed = onlySealed
    self.membersMax = UInt8(min(max(membersMax, SessionLimits.membersMin), SessionLimits.membersMax))
  }

  init(_ reader: inout ByteReader<SessionMessageError>) throws(SessionMessageError) {
    let flags = try reader.u8()
    membersMax = try reader.u8()
    guard flags & ~3 == 0 else { throw .reservedNotZero }
    guard (SessionLimits.membersMin...SessionLimits.membersMax).contains(Int(membersMax)) else { throw .outOfRange }
    onlyFounderAdmits = flags & 1 != 0
    onlySealed = flags & 2 != 0
  }

  fileprivate func append(to bytes: inout [UInt8]) {
    bytes.append((onlyFounderAdmits ? 1 : 0) | (onlySealed ? 2 : 0))
    bytes.append(membersMax)
  }

  /// Whether two sessions can merge: their rules may differ only in the number of members.
  func allowsMerge(with other: SessionRules) -> Bool {
    onlyFounderAdmits == other.onlyFounderAdmits && onlySealed == other.onlySealed
  }
}

/// The origin of a session: its founder, the key of the founder's node, a nonce and the rules. Every entry of a table
/// is verified against the origins that the table lists.
public struct SessionOrigin: Equatable, Sendable {
  public static let byteCount = 103

  public let founder: MemberAddress
  /// The public key of the founder's node. Every valid signature by this key proves that the key belongs to the
  /// founder's node id.
  public let point: PublicPoint
  /// A random value, so that two sessions of one founder differ.
  public let nonce: SessionID
  public let rules: SessionRules

  public init(founder: MemberAddress, point: PublicPoint, nonce: SessionID, rules: SessionRules) {
    self.founder = founder
    self.point = point
    self.nonce = nonce
    self.rules = rules
  }

  init(_ reader: inout ByteReader<SessionMessageError>) throws(SessionMessageError) {
    founder = try MemberAddress(&reader)
    point = try PublicPoint(&reader)
    guard point.bytes[0] == 4 else { throw .malformed }
    nonce = try SessionID(&reader)
    rules = try SessionRules(&reader)
  }

  func append(to bytes: inout [UInt8]) {
    bytes.append(founder)
    bytes += point.array
    bytes.append(nonce)
    rules.append(to: &bytes)
  }

  /// The bytes that are hashed for the session's id: the text "causeway-session-1", and the origin.
  public var identifying: [UInt8] {
    var bytes = [UInt8]("causeway-session-1".utf8)
    append(to: &bytes)
    return bytes
  }

  public func id(_ cryptography: any SessionCryptography) -> SessionID {
    let digest = cryptography.digest(identifying.span.bytes)
    return SessionID(high: digest.span.bytes.word64(0), low: digest.span.bytes.word64(8))
  }
}
