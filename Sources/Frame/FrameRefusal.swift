import Primitives

/// Why a frame or its payload was refused. Each is counted; the raw value is the index in the counters and the code in
/// the journal.
public enum FrameRefusal: UInt8, Error, Sendable {
  /// The input ends within a field or the payload.
  case truncated = 0
  /// The length field is zero: every frame has a payload.
  case zeroLength = 1
  /// The length field, a count or a text is above its limit.
  case overLength = 2
  /// Not a version that this node supports.
  case unknownVersion = 3
  /// The TTL is used up.
  case ttlZero = 4
  /// A frame of this node's own came back.
  case loopedSource = 5
  /// An advertisement's signature is wrong, or its key is not the source's.
  case wrongSignature = 6
  /// A reserved field is not zero, a number is undefined, or bytes follow the end.
  case malformed = 7
  /// A type that this node does not know; the frame is skipped by its length.
  case unknownType = 8
  /// Seen before.
  case duplicate = 9
  /// Older than what is held of its source.
  case stale = 10
  /// Not allowed in the current state: data before the hello, a second hello.
  case unexpected = 11
  /// From a node that is not trusted here: its key is revoked, or its name belongs to another node.
  case notTrusted = 12
  /// Plaintext, although the preferences of the two end nodes require sealing.
  case inClear = 13
  /// A sealed payload that no session can open: altered, replayed, or of a session that has ended.
  case notOpened = 14
  /// An advertisement beyond what this node verifies for the neighbour or of the source; it will be asked for again.
  case tooMany = 15

  /// The number of reasons.
  public static let count = 16

  /// The word in status.
  public var name: StaticString {
    switch self {
    case .truncated: "truncated"
    case .zeroLength: "zero-length"
    case .overLength: "over-length"
    case .unknownVersion: "unknown-version"
    case .ttlZero: "ttl-zero"
    case .loopedSource: "looped-source"
    case .wrongSignature: "wrong-signature"
    case .malformed: "malformed"
    case .unknownType: "unknown-type"
    case .duplicate: "duplicate"
    case .stale: "stale"
    case .unexpected: "unexpected"
    case .notTrusted: "not-trusted"
    case .inClear: "in-clear"
    case .notOpened: "not-opened"
    case .tooMany: "too-many"
    }
  }
}

/// Number of refusals by reason.
public struct RefusalCounters: Sendable {
  private var counts = FixedArray<16, UInt64>(repeating: 0)
  public init() {}
  public mutating func count(_ refusal: FrameRefusal) { counts[Int(refusal.rawValue)] &+= 1 }
  public subscript(refusal: FrameRefusal) -> UInt64 { counts[Int(refusal.rawValue)] }
}
