import Channel
import Frame
import Journal
import Primitives
import Seal

/// What the node needs of cryptography. The firmware brings mbedTLS; the simulator a fast stand-in.
public protocol NodeCryptography: SessionMaker {
  /// ECDSA P-256 with SHA-256 over `message`, with this node's key: r then s, 32 bytes each.
  func sign(_ message: RawSpan) -> InlineArray<64, UInt8>
  /// Whether `signature` over `message` is by the key `point`, and `node` is that key's id.
  func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool
}

/// What a node is told at start-up.
public struct NodeSettings {
  public var id: NodeID
  /// Greater at every start of this node.
  public var epoch: UInt64
  /// The public key, an uncompressed P-256 point of 65 bytes.
  public var point: [UInt8]
  public var name: DisplayName
  /// 1 … 15 bytes, see `isServiceType`.
  public var serviceType: [UInt8]
  /// `key=value` pairs, see `isInfoPair`; at most `Limits.infoBytesMax` with a length byte each.
  public var info: [[UInt8]]
  /// Whether the node forwards for others.
  public var relays: Bool
  /// Whether sealed frames may travel beside TLS.
  public var bypass: Bool
  /// Links at once, 1 … `Limits.linksMax`.
  public var linksMax: Int
  /// What the node wants of what is said between itself and another node.
  public var encryption: EncryptionPreference
  /// When keys between two nodes are renewed.
  public var sessionLifetime = SessionLifetime()
  /// Whether the application decides on the certificate of each peer (`Output.decisionWanted`, `decide`) before anything flows.
  public var asksApplication = false

  public init(
    id: NodeID, epoch: UInt64, point: [UInt8], name: DisplayName, serviceType: [UInt8], info: [[UInt8]],
    relays: Bool, bypass: Bool, linksMax: Int = Limits.linksMax, encryption: EncryptionPreference = .required
  ) {
    self.id = id
    self.epoch = epoch
    self.point = point
    self.name = name
    self.serviceType = serviceType
    self.info = info
    self.relays = relays
    self.bypass = bypass
    self.linksMax = min(max(linksMax, 1), Limits.linksMax)
    self.encryption = encryption
  }

  /// What the node signs about itself.
  var topologyFlags: TopologyFlags { TopologyFlags(relays: relays, encryption: encryption) }

  var capabilities: Capabilities {
    var all = Capabilities.none
    if relays { all = all.union(.relay) }
    if bypass { all = all.union(.bypass) }
    return all
  }
}

/// Times that shape a node's behaviour.
enum Timing {
  /// When a neighbour that found no free slot may come back.
  static let fullRetryAfterSeconds: UInt16 = 30
  /// When somebody who is refused may try again: people have to do something first.
  static let notTrustedRetryAfterSeconds: UInt16 = 60
  /// How long an advertisement holds, and how often it is renewed.
  static let advertisementLifetimeSeconds: UInt16 = 600
  static let advertisementInterval = TimeSpan.seconds(200)
  /// Own advertisements change at most this often, so that a burst of links costs one signature.
  static let advertisementPause = TimeSpan.milliseconds(100)
  /// A peer without a route is still shown for this long: a change of bearer is not a departure.
  static let peerGrace = TimeSpan.seconds(3)
}
