import Channel
import Frame
import Journal
import Link
import Primitives
import Seal
import Session

/// The cryptography of a node: mbedTLS in the firmware, a fast stand-in in the simulator.
public protocol NodeCryptography: SessionMaker, SessionCryptography {}

/// The configuration of a node. Only the epoch and `bluetoothSlots` change after the node's start-up.
public struct NodeSettings {
  public var id: NodeID
  /// The boot epoch, greater at every start of this node. The node raises its epoch if other nodes store a later epoch
  /// under its key.
  public var epoch: UInt64
  /// The public key: an uncompressed P-256 point of 65 bytes.
  public var point: [UInt8]
  public var name: DisplayName
  /// The service type that the node advertises, 1 to 15 bytes. See `isServiceType`.
  public var serviceType: [UInt8]
  /// The discovery info that the node advertises: `key=value` pairs (see `isInfoPair`). Together the pairs have at most
  /// `Limits.infoBytesMax` bytes, with a length byte for each pair.
  public var info: [[UInt8]]
  /// Whether the node forwards for others.
  public var relays: Bool
  /// Whether sealed frames may travel outside TLS.
  public var bypass: Bool
  /// The maximum of concurrent links with a stream, 1 to `Limits.linksMax`.
  public var linksMax: Int
  /// The number of concurrent Bluetooth links that the adapters support.
  public var bluetoothSlots = Limits.linksMax
  /// The node's preference for end-to-end encryption.
  public var encryption: EncryptionPreference
  /// The lifetime of session keys before renewal.
  public var sessionLifetime = SessionLifetime()
  /// Whether the application decides on the certificate of each peer before data flows (`Output.decisionWanted`,
  /// `decide`).
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

  /// The properties that this node announces in its hello.
  var hello: Link.Local { Link.Local(node: id, epoch: epoch, capabilities: capabilities, name: name) }

  var capabilities: Capabilities {
    var all = Capabilities.none
    if relays { all = all.union(.relay) }
    if bypass { all = all.union(.bypass) }
    // Other nodes depend on a relay's links, so a relay does not let itself be parked.
    if !relays { all = all.union(.parks) }
    return all
  }
}

/// Intervals and delays of a node.
enum Timing {
  /// The time after which a neighbour that found no free link slot may dial again.
  static let fullRetryAfterSeconds: UInt16 = 30
  /// The time after which a node whose key was refused may dial again. This time is long, because a person has to act
  /// first.
  static let notTrustedRetryAfterSeconds: UInt16 = 60
  /// The lifetime of an advertisement, and the interval of its renewal.
  static let advertisementLifetimeSeconds: UInt16 = 600
  static let advertisementInterval = TimeSpan.seconds(200)
  /// The least interval between topology advertisements for changes that can wait (MinLSInterval, RFC 2328, appendix
  /// B).
  static let routinePause = TimeSpan.seconds(5)
  /// The pause between urgent topology advertisements. This pause is short, but long enough that a burst of link
  /// changes costs one signature. The pause doubles with each topology advertisement, and is reset after `routinePause`
  /// without any such advertisement.
  static let urgentPauseMin = TimeSpan.milliseconds(100)
  static let urgentPauseMax = TimeSpan.milliseconds(1_600)
  /// In a crowded broadcast domain (`LinkSelection.isCrowd`), a new route waits at most this long until it is
  /// advertised together with other new routes. This time is also the least interval between such advertisements.
  static let gatheringMax = TimeSpan.seconds(3)
  /// Pings that are due within this time are sent together with a ping that is due now.
  static let pingsTogether = TimeSpan.milliseconds(500)
  /// A peer without a route is reported lost only after this time, so a change of bearer is not a loss.
  static let peerGrace = TimeSpan.seconds(3)
  /// The grace of a lost peer while all links of this node are parked. This node's relay then has up to
  /// `Parking.newsPatience` to report that the peer has returned, and needs a connection for the report.
  static let parkedGrace = TimeSpan.seconds(20)
}
