import Primitives

/// What identifies a session: SHA-256 of its origin. Ordered as the bytes are: of two merged sessions the lower id stays.
public struct SessionID: Hashable, Comparable, Sendable {
  public static let byteCount = 16
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  init(_ reader: inout ByteReader<SessionRefusal>) throws(SessionRefusal) {
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

/// The rules of a session, which its founder fixed: the session's id depends on them.
public struct SessionRules: Equatable, Sendable {
  /// Only the founder admits members; otherwise every member does.
  public var onlyFounderAdmits: Bool
  /// Members meet only where their nodes seal their traffic.
  public var onlySealed: Bool
  /// Members at once, 2 … 64.
  public var membersMax: UInt8

  public init(
    onlyFounderAdmits: Bool = false, onlySealed: Bool = true, membersMax: Int = SessionLimits.membersDefault
  ) {
    self.onlyFounderAdmits = onlyFounderAdmits
    self.onlySealed = onlySealed
    self.membersMax = UInt8(min(max(membersMax, SessionLimits.membersMin), SessionLimits.membersMax))
  }

  init(_ reader: inout ByteReader<SessionRefusal>) throws(SessionRefusal) {
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

  /// Sessions merge when their rules differ in nothing but the number of members.
  func allowsMerge(with other: SessionRules) -> Bool {
    onlyFounderAdmits == other.onlyFounderAdmits && onlySealed == other.onlySealed
  }
}

/// How a session began. Everything in a table is checked against the origins that it lists.
///
///     0–19 founder · 20–84 its public key · 85–100 nonce · 101 rules: bit 0 only the founder admits, bit 1 only sealed ·
///     102 most members
public struct SessionOrigin: Equatable, Sendable {
  public static let byteCount = 103

  public let founder: MemberAddress
  /// The key of the founder's node. Whether it is, each signature shows that it verifies.
  public let point: PublicPoint
  /// Random, so that two sessions of one founder differ.
  public let nonce: SessionID
  public let rules: SessionRules

  public init(founder: MemberAddress, point: PublicPoint, nonce: SessionID, rules: SessionRules) {
    self.founder = founder
    self.point = point
    self.nonce = nonce
    self.rules = rules
  }

  init(_ reader: inout ByteReader<SessionRefusal>) throws(SessionRefusal) {
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

  /// The bytes whose SHA-256 begins with the id: the text "causeway-session-1", and the origin.
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
