import Primitives

/// The reason for rejecting a frame or its payload. Rejections are counted by reason. The raw value is the counter's
/// index and the code in the journal.
public enum FrameError: UInt8, Error, Sendable {
  /// The input ends within a field or the payload.
  case truncated = 0
  /// The length field is zero, but every frame has a payload.
  case zeroLength = 1
  /// A length field, a count or a text exceeds its limit.
  case overLength = 2
  /// This node does not support the version.
  case unknownVersion = 3
  /// The frame's TTL is used up.
  case ttlZero = 4
  /// A frame that this node originated came back.
  case loopedSource = 5
  /// An advertisement has a wrong signature, or its key is not that of the frame's source.
  case wrongSignature = 6
  /// A reserved field is not zero, a value is undefined, or extra bytes follow.
  case malformed = 7
  /// This node does not know the frame type, and skips the frame by its length.
  case unknownType = 8
  /// The frame was received before.
  case duplicate = 9
  /// The advertisement or deny-list is older than the stored one of the same source, or the frame belongs to another
  /// boot or channel epoch.
  case stale = 10
  /// The frame is not allowed in the current state, such as data before the hello, or a second hello.
  case unexpected = 11
  /// The source is not trusted: its key is revoked, or its name belongs to another node.
  case notTrusted = 12
  /// The payload is plaintext, although the encryption preferences of the two end nodes require encryption.
  case inClear = 13
  /// No end-to-end session can decrypt the payload. The payload was altered or replayed, or its session has ended.
  case notOpened = 14
  /// The frame exceeds a rate limit of the neighbour or the source. A refused advertisement is requested again later.
  case tooMany = 15

  /// The number of reasons.
  public static let count = 16

  /// The name used in status output.
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

/// Rejection counters by reason.
public struct RefusalCounters: Sendable {
  private var counts = FixedArray<16, UInt64>(repeating: 0)
  public init() {}
  public mutating func count(_ refusal: FrameError) { counts[Int(refusal.rawValue)] &+= 1 }
  public subscript(refusal: FrameError) -> UInt64 { counts[Int(refusal.rawValue)] }
}
