import Frame
import Primitives

/// Why a session is refused although its keys are valid. The raw value is sent on the wire.
public enum SealRefusal: UInt8, Error, Sendable {
  /// One node requires encryption that the other node does not support.
  case preferences = 1
  /// The hello contradicts a signed advertisement, so the advertisement was altered or replayed.
  case contradiction = 2
  /// The application rejected the certificate.
  case rejected = 3
  /// The application did not decide in time.
  case undecided = 4
  /// The two nodes have no version in common, or the hello is malformed.
  case version = 5
  /// The sender gives the slot of the session to another peer. The refusal `busy` is sent only to a node that announced
  /// support for this refusal. No pause of `SealLimits.refusedTime` follows, and no message fails.
  case busy = 6

  /// The name of the refusal in the status and the journal: one word.
  public var name: StaticString {
    switch self {
    case .preferences: "preferences"
    case .contradiction: "contradiction"
    case .rejected: "rejected"
    case .undecided: "undecided"
    case .version: "version"
    case .busy: "busy"
    }
  }
}

/// The first sealed message of each end in a session. A hello accepts or refuses the session. A hello repeats the
/// values that a relay could have altered in unencrypted frames (docs/protocol.md, "Sealed hello").
///
///     0 version · 1 flags: bit 0 the receiver's hello has arrived, bit 1 answer requested ·
///     2 refusal, 0 for none · 3 zero ·
///     4 topology flags of the sender · 5 topology flags of the receiver, as the sender knows them · 6–7 zero ·
///     8–15 boot epoch of the sender · 16–23 boot epoch of the receiver, as the sender knows it ·
///     24–31 channel epoch of the sender; if absent, its boot epoch ·
///     32 features: bit 0 reads payloads of type 38, bit 1 reads the refusal 6 (busy); if absent, none
public struct SealHello: Equatable, Sendable {
  private static let byteCountMin = 24
  private static let byteCountWithChannel = 32
  /// The length of a hello that this node writes, in bytes.
  public static let byteCount = 33
  public static let version: UInt8 = 1

  /// Whether the receiver's own hello has arrived at the sender.
  public var hasYours: Bool
  /// Whether the sender requests a hello as the answer. The sender requests an answer until a message shows that the
  /// sender's own hello has arrived.
  public var wantsAnswer: Bool
  public var refusal: SealRefusal?
  /// The topology flags of the sender.
  public var ownFlags: TopologyFlags
  /// The topology flags of the receiver, as known to the sender.
  public var yourFlags: TopologyFlags
  /// The boot epoch of the sender.
  public var ownEpoch: UInt64
  /// The boot epoch of the receiver, as known to the sender.
  public var yourEpoch: UInt64
  /// The epoch of the sender's channel: the sender's boot epoch, or a greater one if the sender has discarded or
  /// restarted a channel.
  public var channelEpoch: UInt64
  /// Whether the sender reads payloads of the type `FrameType.joined`.
  public var readsJoined: Bool
  /// Whether the sender reads the refusal `.busy`.
  public var readsBusy: Bool

  public init(
    hasYours: Bool, wantsAnswer: Bool, refusal: SealRefusal?, ownFlags: TopologyFlags, yourFlags: TopologyFlags,
    ownEpoch: UInt64, yourEpoch: UInt64, channelEpoch: UInt64, readsJoined: Bool = true, readsBusy: Bool = true
  ) {
    self.hasYours = hasYours
    self.wantsAnswer = wantsAnswer
    self.refusal = refusal
    self.ownFlags = ownFlags
    self.yourFlags = yourFlags
    self.ownEpoch = ownEpoch
    self.yourEpoch = yourEpoch
    self.channelEpoch = channelEpoch
    self.readsJoined = readsJoined
    self.readsBusy = readsBusy
  }

  /// Reads a hello. Bytes after the last field, and unknown features, belong to a later version and are ignored. An
  /// unknown refusal or version is read as the refusal `.version`. Throws `.truncated`, and `.malformed` if a reserved
  /// field is not zero or the channel epoch is less than the boot epoch.
  public init(_ payload: RawSpan) throws(FrameError) {
    guard payload.byteCount >= Self.byteCountMin else { throw .truncated }
    guard payload.octet(1) & ~3 == 0, payload.octet(3) == 0, payload.word16(6) == 0 else { throw .malformed }
    hasYours = payload.octet(1) & 1 != 0
    wantsAnswer = payload.octet(1) & 2 != 0
    let reason = payload.octet(2)
    refusal = reason == 0 ? nil : SealRefusal(rawValue: reason) ?? .version
    if payload.octet(0) != Self.version { refusal = .version }
    ownFlags = TopologyFlags(rawValue: payload.octet(4))
    yourFlags = TopologyFlags(rawValue: payload.octet(5))
    ownEpoch = payload.word64(8)
    yourEpoch = payload.word64(16)
    channelEpoch = payload.byteCount < Self.byteCountWithChannel ? ownEpoch : payload.word64(24)
    guard channelEpoch >= ownEpoch else { throw .malformed }
    let features = payload.byteCount >= Self.byteCount ? payload.octet(32) : 0
    readsJoined = features & 1 != 0
    readsBusy = features & 2 != 0
  }

  /// Writes `byteCount` bytes to the start of `buffer`, which must be at least that long.
  public func encode(into buffer: UnsafeMutableRawBufferPointer) {
    buffer.write { output in
      output.append(Self.version)
      output.append(UInt8((hasYours ? 1 : 0) | (wantsAnswer ? 2 : 0)))
      output.append(refusal?.rawValue ?? 0)
      output.append(0)
      output.append(ownFlags.rawValue)
      output.append(yourFlags.rawValue)
      output.append(bigEndian: UInt16(0))
      output.append(bigEndian: ownEpoch)
      output.append(bigEndian: yourEpoch)
      output.append(bigEndian: channelEpoch)
      output.append((readsJoined ? 1 : 0) | (readsBusy ? 2 : 0))
    }
  }
}
