import Primitives

/// The right to be a member: an admitter names an address, and the address accepts. Admitter and address both sign, so
/// no address is admitted against its will. Every node that knows the session's records can verify both signatures by
/// itself.
///
///     0–3 version · 4 depth · 5–24 admitter · 25–88 its signature · 89–152 the member's
public struct Ticket: Equatable, Sendable {
  public static let byteCount = 153

  /// The version of the first ticket of an address in a session is 1, and each further ticket has a version 1 higher.
  public var version: UInt32
  /// The number of admissions from the founder to the member; 0 for the founder's own ticket. An admitter's depth is
  /// less than that of its tickets, so every chain of tickets ends.
  public var depth: UInt8
  public var admitter: MemberAddress
  public var admission: Signature
  /// The member's signature over the fields that the admitter signed.
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

  init(_ reader: inout ByteReader<SessionMessageError>) throws(SessionMessageError) {
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

  /// The texts that the admitter and the member sign. Only their first words differ.
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

/// The end of a membership. A departure ends the ticket of one version; a ticket with a greater version begins another
/// membership.
///
///     0 state: 1 left, 2 ejected · 1 reason · 2 length of the text, at most 63 · 3… text · then the signature
public struct Departure: Equatable, Sendable {
  /// Why a member left. The raw value is sent on the wire.
  public enum Reason: UInt8, Sendable, CaseIterable {
    /// An application requested the departure.
    case wanted = 1
    /// The application ended without leaving.
    case crashed = 2
    /// The merged sessions have more members than places.
    case full = 3
  }

  /// Whether the founder ended the membership; otherwise the member did.
  public var isEjection: Bool
  public var reason: Reason
  /// A plain text for people about the end of the membership; untrusted.
  public var text: [UInt8]
  /// The signature of the member. For an ejection: the signature of the founder of the session for which the ticket is.
  public var signature: Signature

  public init(isEjection: Bool, reason: Reason, text: [UInt8], signature: Signature) {
    self.isEjection = isEjection
    self.reason = reason
    self.text = text
    self.signature = signature
  }

  /// Reads the fields after the state.
  init(isEjection: Bool, _ reader: inout ByteReader<SessionMessageError>) throws(SessionMessageError) {
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

  /// The number of bytes that `append` appends.
  var byteCount: Int { 3 + text.count + Signature.byteCount }

  func append(to bytes: inout [UInt8]) {
    bytes.append(isEjection ? 2 : 1)
    bytes.append(reason.rawValue)
    bytes.append(UInt8(text.count))
    bytes += text
    bytes += signature.array
  }

  /// The text that is signed for a departure.
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
