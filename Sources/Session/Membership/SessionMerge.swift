import Primitives

/// The merge of two sessions, signed by an address in each session that is allowed to admit. The lower id becomes the
/// id of the merged session. The higher id becomes an alias, whose tickets stay valid.
public struct SessionMerge: Equatable, Sendable {
  /// One side of a merge: the signer, and the signer's signature for its own session.
  public struct Side: Equatable, Sendable {
    public static let byteCount = 84
    public var signer: MemberAddress
    public var signature: Signature

    public init(signer: MemberAddress, signature: Signature) {
      self.signer = signer
      self.signature = signature
    }

    init(_ reader: inout ByteReader<SessionMessageError>) throws(SessionMessageError) {
      signer = try MemberAddress(&reader)
      signature = try Signature(&reader)
    }

    func append(to bytes: inout [UInt8]) {
      bytes.append(signer)
      bytes += signature.array
    }

    static func isOrdered(_ a: Side, before b: Side) -> Bool {
      a.signer != b.signer ? a.signer < b.signer : a.signature < b.signature
    }
  }

  public static let byteCount = 2 + 2 * Side.byteCount

  public var lower: SessionID
  public var higher: SessionID
  public var lowerSide: Side
  public var higherSide: Side

  public init(lower: SessionID, higher: SessionID, lowerSide: Side, higherSide: Side) {
    self.lower = lower
    self.higher = higher
    self.lowerSide = lowerSide
    self.higherSide = higherSide
  }

  /// The text that each side signs: "causeway-merges-1", the lower id, the higher id, and the address of its signer.
  static func signedText(_ one: SessionID, _ other: SessionID, _ signer: MemberAddress) -> [UInt8] {
    var bytes = ("causeway-merges-1" as StaticString).byteArray
    bytes.append(min(one, other))
    bytes.append(max(one, other))
    bytes.append(signer)
    return bytes
  }

  /// The order of merges in a table, the same on all nodes. Among several merges that connect the same sessions, a
  /// table keeps the first one.
  static func isOrdered(_ a: SessionMerge, before b: SessionMerge) -> Bool {
    if a.lower != b.lower { return a.lower < b.lower }
    if a.higher != b.higher { return a.higher < b.higher }
    if a.lowerSide != b.lowerSide { return Side.isOrdered(a.lowerSide, before: b.lowerSide) }
    return Side.isOrdered(a.higherSide, before: b.higherSide)
  }

  /// Reads a merge of a table that lists `sessions`.
  ///
  ///     0 index of the lower id · 1 index of the higher id · 2–85 the side of the lower id: signer (20),
  ///     signature (64) · 86–169 the side of the higher id
  init(_ reader: inout ByteReader<SessionMessageError>, _ sessions: [SessionID]) throws(SessionMessageError) {
    let first = Int(try reader.u8()), second = Int(try reader.u8())
    guard first < second, second < sessions.count else { throw .malformed }
    lower = sessions[first]
    higher = sessions[second]
    lowerSide = try Side(&reader)
    higherSide = try Side(&reader)
  }

  func append(to bytes: inout [UInt8], first: Int, second: Int) {
    bytes.append(UInt8(first))
    bytes.append(UInt8(second))
    lowerSide.append(to: &bytes)
    higherSide.append(to: &bytes)
  }
}
