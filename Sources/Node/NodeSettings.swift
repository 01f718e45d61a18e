import Channel
import Frame
import Journal
import Link
import Primitives
import Seal
import Session

/// The cryptography of a node: mbedTLS in the firmware, a fast stand-in in the simulator.
public protocol NodeCryptography: SessionMaker, SessionCryptography {}

/// The configuration of a node, fixed at start-up except for the epoch.
public struct NodeSettings {
  public var id: NodeID
  /// Greater at every start of this node; the node raises it when a former start had a later one.
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
  /// Bluetooth links at once: what the adapters support.
  public var bluetoothPlaces = Limits.linksMax
  /// The node's preference for end-to-end encryption.
  public var encryption: EncryptionPreference
  /// When session keys are renewed.
  public var sessionLifetime = SessionLifetime()
  /// Whether the application decides on the certificate of each peer (`Output.decisionWanted`, `decide`) before data
  /// flows.
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

  /// The flags in the node's signed topology advertisement.
  var topologyFlags: TopologyFlags { TopologyFlags(relays: relays, encryption: encryption) }

  /// What this node announces in its hello.
  var hello: Link.Local { Link.Local(node: id, epoch: epoch, capabilities: capabilities, name: name) }

  var capabilities: Capabilities {
    var all = Capabilities.none
    if relays { all = all.union(.relay) }
    if bypass { all = all.union(.bypass) }
    // Others need a relay's links.
    if !relays { all = all.union(.parks) }
    return all
  }
}

/// Intervals and delays of a node.
enum Timing {
  /// When a neighbour may retry after it found no free slot.
  static let fullRetryAfterSeconds: UInt16 = 30
  /// When a refused node may retry. Long, because a person has to act first.
  static let notTrustedRetryAfterSeconds: UInt16 = 60
  /// How long an advertisement is valid, and how often it is renewed.
  static let advertisementLifetimeSeconds: UInt16 = 600
  static let advertisementInterval = TimeSpan.seconds(200)
  /// Topology advertisements of a change that can wait are this far apart (MinLSInterval, RFC 2328, appendix B).
  static let routinePause = TimeSpan.seconds(5)
  /// Urgent ones follow sooner, so that a burst of link changes costs one signature: the pause doubles from one to the
  /// next, and begins anew after `routinePause` without any.
  static let urgentPauseMin = TimeSpan.milliseconds(100)
  static let urgentPauseMax = TimeSpan.milliseconds(1_600)
  /// In a crowded domain a new way waits so long at most for the other links that are wanted there, and for the next turn:
  /// all are told at once.
  static let gatheringMax = TimeSpan.seconds(3)
  /// Pings that are due within this time are sent with one that is due now.
  static let pingsTogether = TimeSpan.milliseconds(500)
  /// A peer without a route is reported lost only after this time, so that a change of bearer is not a loss.
  static let peerGrace = TimeSpan.seconds(3)
}
