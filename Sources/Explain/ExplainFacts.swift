import Frame
import Primitives

/// A group of bearers that one section of the configuration enables.
public enum BearerSection: UInt8, CaseIterable, Sendable {
  case ip = 0
  case wifiDirect = 1
  case bluetoothLE = 2

  public init(_ bearer: BearerKind) {
    switch bearer {
    case .ethernet, .wifi, .loopback: self = .ip
    case .wifiDirect: self = .wifiDirect
    case .bluetoothLE, .bluetoothClassic: self = .bluetoothLE
    }
  }

  var name: StaticString {
    switch self {
    case .ip: "ip"
    case .wifiDirect: "wifi-direct"
    case .bluetoothLE: "bluetooth-le"
    }
  }

  /// The title of the section in the configuration file.
  var key: StaticString {
    switch self {
    case .ip: "[ip]"
    case .wifiDirect: "[wifi-direct]"
    case .bluetoothLE: "[bluetooth]"
    }
  }
}

/// The state of a group of bearers on this node.
public struct BearerFacts {
  public var section: BearerSection
  public var isEnabled: Bool
  public var isUp: Bool
  /// The state of the bearers in a few words.
  public var detail: String
  /// The fault of the bearers; empty if there is none.
  public var problem: String

  public init(_ section: BearerSection, isEnabled: Bool, isUp: Bool, detail: String, problem: String) {
    self.section = section
    self.isEnabled = isEnabled
    self.isUp = isUp
    self.detail = detail
    self.problem = problem
  }
}

/// An address of a node, from discovery or from the configuration.
public struct HeardFacts {
  /// The state of the dial to the address. `served` means that a link or another dial already reaches the node there.
  /// `lacksSlot` means that the dial waits for a free connection of the radio.
  public enum Plan: Equatable, Sendable {
    case notWanted
    case waiting(milliseconds: UInt64)
    case lacksSlot
    case dialling
    case served
  }

  public var bearer: BearerKind
  public var address: String
  /// Whether the address claims to belong to the other node. If false, no node has identified itself at the address.
  public var isNamed: Bool
  public var secondsAgo: UInt64
  public var plan: Plan

  public init(bearer: BearerKind, address: String, isNamed: Bool, secondsAgo: UInt64, plan: Plan) {
    self.bearer = bearer
    self.address = address
    self.isNamed = isNamed
    self.secondsAgo = secondsAgo
    self.plan = plan
  }
}

/// A link between this node and the other node.
public struct ExplainedLink {
  public var bearer: BearerKind
  /// The state of the link: up, parked (kept without a connection, and dialled when there is data), opening …
  public var state: String
  public var sinceSeconds: UInt64
  public var roundTripMicroseconds: UInt64
  public var cost: UInt16
  public var bytesQueued: UInt64
  public var isQuarantined: Bool

  var isParked: Bool { state.utf8.elementsEqual("parked".utf8) }
  /// Whether the other node is a neighbour because of this link: the link is up or parked.
  var isStanding: Bool { isParked || state.utf8.elementsEqual("up".utf8) }

  public init(
    bearer: BearerKind, state: String, sinceSeconds: UInt64, roundTripMicroseconds: UInt64, cost: UInt16,
    bytesQueued: UInt64, isQuarantined: Bool
  ) {
    self.bearer = bearer
    self.state = state
    self.sinceSeconds = sinceSeconds
    self.roundTripMicroseconds = roundTripMicroseconds
    self.cost = cost
    self.bytesQueued = bytesQueued
    self.isQuarantined = isQuarantined
  }
}

/// The advertisement of a node in the link-state database.
public struct NodeFacts {
  public var id: NodeID
  /// The display name of the node; empty while the name is unknown.
  public var name: String
  public var relays: Bool
  /// The encryption preference of the node; nil while the preference is unknown.
  public var encryption: EncryptionPreference?
  public var ageSeconds: UInt64
  public var neighbours: [Neighbour]

  public init(
    id: NodeID, name: String = "", relays: Bool = true, encryption: EncryptionPreference? = .required,
    ageSeconds: UInt64 = 0, neighbours: [Neighbour] = []
  ) {
    self.id = id
    self.name = name
    self.relays = relays
    self.encryption = encryption
    self.ageSeconds = ageSeconds
    self.neighbours = neighbours
  }
}

/// An application session of this node that has the other node as a member, or a service type that both nodes offer.
public struct SharedSession {
  public var type: String
  /// The session id, or nil if both nodes offer the type but share no session.
  public var id: String?
  /// The other node's state in the session: connected, away …; empty without a session.
  public var state: String

  public init(type: String, id: String?, state: String) {
    self.type = type
    self.id = id
    self.state = state
  }
}

/// All facts for an explanation. Names are untrusted text.
public struct ExplainFacts {
  public var local: NodeID
  public var from: NodeID
  public var to: NodeID
  /// The link-state database, including this node.
  public var nodes: [NodeFacts] = []
  /// Names of nodes from sources other than the link-state database: pins, refusals and addresses.
  public var names: [(id: NodeID, name: String)] = []
  /// The address of `to`, if the node at this address has not identified itself; otherwise empty.
  public var toAddress = ""
  /// The last failures with every node and address, not only `to`.
  public var failures: [ContactFailure] = []

  // The following facts are set only if `from` is this node.
  public var bearers: [BearerFacts] = []
  public var heard: [HeardFacts] = []
  public var links: [ExplainedLink] = []
  /// The links of the current route to `to`, nearest first.
  public var way: [Neighbour] = []
  /// The maximum payload of a frame on the route to `to`, in bytes.
  public var payloadBytesMax = 0
  /// Why this node refuses the key of `to`; nil if the key is not refused.
  public var trustFault: TrustFault?
  /// Whether an operator has revoked this node's own key.
  public var isSelfRevoked = false
  public var linksOpen = 0
  public var linksMax = 0
  /// Why there is no end-to-end session with `to`. Nil if there is a session, or if none was attempted.
  public var sessionFault: SessionFault?
  /// Whether an end-to-end session with `to` is in use.
  public var hasSession = false
  /// How long `to` has not answered the attempts to begin an end-to-end session, and the age of the last attempt. Nil
  /// if `to` has answered, or if none was attempted.
  public var unanswered: (forSeconds: UInt64, secondsAgo: UInt64)?
  public var sessions: [SharedSession] = []

  public init(local: NodeID, from: NodeID, to: NodeID) {
    self.local = local
    self.from = from
    self.to = to
  }
}

extension NodeID {
  /// Whether both ids can denote the same node. An id from discovery has only the upper half, and its lower half is
  /// zero.
  public func mayBe(_ other: NodeID) -> Bool {
    self != .none && high == other.high && (low == other.low || high != 0 && (low == 0 || other.low == 0))
  }
}
