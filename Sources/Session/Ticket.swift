import Primitives

/// The right to be a member: an admitter names an address, and the address takes it. Both sign, so nobody is admitted
/// without its will, and each node that knows the session's origin can check both without asking anybody.
///
///     0–3 version · 4 depth · 5–24 admitter · 25–88 its signature · 89–152 the member's
public struct Ticket: Equatable, Sendable {
  public static let byteCount = 153

  /// 1 for the first ticket of an address in a session, greater by 1 for each further one.
  public var version: UInt32
  /// Links from the founder, whose own ticket has 0. Who admits has a ticket of less depth, so that chains end.
  public var depth: UInt8
  public var admitter: MemberAddress
  public var admission: Signature
  /// The member's, over what the admitter signed.
  public var acceptance: Signature

  public init(
    version: UInt32, depth: UInt8, admitter: MemberAddress, admission: Signature, acceptance: Signature
  ) {
    self.version = version
    self.depth = depth
    self.admitter = admitter
    self.admission = admission
    self.acceptance = acceptance
  }

  init(_ reader: inout ByteReader<SessionRefusal>) throws(SessionRefusal) {
    version = try reader.u32()
    depth = try reader.u8()
    guard version > 0, depth <= SessionLimits.depthMax else { throw .outOfRange }
    admitter = try MemberAddress(&reader)
    admission = try Signature(&reader)
    acceptance = try Signature(&reader)
  }

  func append(to bytes: inout [UInt8]) {
    bytes.append(bigEndian: version)
    bytes.append(depth)
    bytes.append(admitter)
    bytes += admission.array
    bytes += acceptance.array
  }

  /// What is signed: by the admitter, and by the member, behind different words.
  static func admissionText(
    _ session: SessionID, _ member: MemberAddress, version: UInt32, depth: UInt8, _ admitter: MemberAddress
  ) -> [UInt8] {
    text("causeway-admits-1", session, member, version: version, depth: depth, admitter)
  }

  static func acceptanceText(
    _ session: SessionID, _ member: MemberAddress, version: UInt32, depth: UInt8, _ admitter: MemberAddress
  ) -> [UInt8] {
    text("causeway-accepts-1", session, member, version: version, depth: depth, admitter)
  }

  private static func text(
    _ word: StaticString, _ session: SessionID, _ member: MemberAddress, version: UInt32, depth: UInt8,
    _ admitter: MemberAddress
  ) -> [UInt8] {
    var bytes = word.byteArray
    bytes.append(session)
    bytes.append(member)
    bytes.append(bigEndian: version)
    bytes.append(depth)
    bytes.append(admitter)
    return bytes
  }
}

/// The end of a membership. It ends the ticket with its version; a later ticket begins another one.
///
///     0 state: 1 left, 2 ejected · 1 reason · 2 length of the text, at most 63 · 3… text · then the signature
public struct Departure: Equatable, Sendable {
  /// Why a member left. The raw value is sent on the wire.
  public enum Reason: UInt8, Sendable, CaseIterable {
    /// Its application wanted it.
    case wanted = 1
    /// Its application ended without a word.
    case crashed = 2
    /// Sessions were merged, and together have more members than there are places.
    case full = 3
  }

  /// The founder ended it; otherwise the member itself.
  public var isEjection: Bool
  public var reason: Reason
  /// Plain text for people; untrusted.
  public var text: [UInt8]
  /// By the member; of an ejection by the founder of the session that the ticket names.
  public var signature: Signature

  public init(isEjection: Bool, reason: Reason, text: [UInt8], signature: Signature) {
    self.isEjection = isEjection
    self.reason = reason
    self.text = text
    self.signature = signature
  }

  /// The rest of it, after its state.
  init(isEjection: Bool, _ reader: inout ByteReader<SessionRefusal>) throws(SessionRefusal) {
    self.isEjection = isEjection
    guard let reason = Reason(rawValue: try reader.u8()) else { throw .unknownCode }
    self.reason = reason
    let length = Int(try reader.u8())
    guard length <= SessionLimits.farewellBytesMax else { throw .tooLong }
    let text = try reader.array(length)
    guard isPlainText(text.span.bytes) else { throw .notText }
    self.text = text
    signature = try Signature(&reader)
  }

  func append(to bytes: inout [UInt8]) {
    bytes.append(isEjection ? 2 : 1)
    bytes.append(reason.rawValue)
    bytes.append(UInt8(text.count))
    bytes += text
    bytes += signature.array
  }

  /// What is signed.
  static func signedText(
    _ session: SessionID, _ member: MemberAddress, version: UInt32, isEjection: Bool, _ reason: Reason, _ text: [UInt8]
  ) -> [UInt8] {
    var bytes = (isEjection ? "causeway-ejects-1" as StaticString : "causeway-leaves-1").byteArray
    bytes.append(session)
    bytes.append(member)
    bytes.append(bigEndian: version)
    bytes.append(reason.rawValue)
    bytes += text
    return bytes
  }
}

extension StaticString {
  var byteArray: [UInt8] { withUTF8Buffer { [UInt8]($0) } }
}
