import Primitives

/// Why a frame, or what it carries, was refused. Each is counted; the raw value is its place in the
/// counters and in the journal.
public enum FrameRefusal: UInt8, Error, Sendable {
  /// A field or the payload ends before it is whole.
  case truncated = 0
  /// The length field says zero: no frame is without a payload.
  case zeroLength = 1
  /// The length field, a count or a text is above its limit.
  case overLength = 2
  /// Not the version that this node speaks.
  case unknownVersion = 3
  /// Hops used up.
  case ttlZero = 4
  /// A frame of this node's own came back.
  case loopedSource = 5
  /// The signature of an advertisement does not match, or its key is not the source's.
  case wrongSignature = 6
  /// A reserved field that is not zero, a number outside its table, bytes behind the end.
  case malformed = 7
  /// A type that this node does not know: skipped by its length.
  case unknownType = 8
  /// Seen before.
  case duplicate = 9
  /// Older than what is known of its source.
  case stale = 10
  /// A frame that its state does not allow: data before hello, a second hello.
  case unexpected = 11
  /// Of a node that is not trusted here: its key is revoked, or its name is another's.
  case notTrusted = 12
  /// Readable by everybody on the way, where the two end nodes' preferences ask for sealing.
  case inClear = 13
  /// A sealed payload that no session opens: altered, replayed, or of a session that is over.
  case notOpened = 14

  /// How many reasons there are.
  public static let count = 15

  /// The word used in status.
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
    }
  }
}

/// How often each refusal happened.
public struct RefusalCounters: Sendable {
  private var counts = FixedArray<15, UInt64>(repeating: 0)
  public init() {}
  public mutating func count(_ refusal: FrameRefusal) { counts[Int(refusal.rawValue)] &+= 1 }
  public subscript(refusal: FrameRefusal) -> UInt64 { counts[Int(refusal.rawValue)] }
}
