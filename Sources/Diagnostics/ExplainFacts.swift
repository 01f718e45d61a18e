import Frame
import Primitives

/// A group of bearers that are switched on and off together.
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

  /// Its section of the configuration.
  var key: StaticString {
    switch self {
    case .ip: "[ip]"
    case .wifiDirect: "[wifi-direct]"
    case .bluetoothLE: "[bluetooth]"
    }
  }
}

/// A bearer here.
public struct BearerFacts {
  public var section: BearerSection
  public var isEnabled: Bool
  public var isUp: Bool
  /// Its state in a few words.
  public var detail: String
  /// What is wrong; empty when nothing is.
  public var problem: String

  public init(_ section: BearerSection, isEnabled: Bool, isUp: Bool, detail: String, problem: String) {
    self.section = section
    self.isEnabled = isEnabled
    self.isUp = isUp
    self.detail = detail
    self.problem = problem
  }
}

/// An address that discovery or the configuration knows.
public struct HeardFacts {
  /// What is done about it.
  public enum Plan: Equatable, Sendable {
    case notWanted
    case waiting(milliseconds: UInt64)
    case lacksPlace
    case dialling
    case served
  }

  public var bearer: BearerKind
  public var address: String
  /// It claims to be the node in question; else it has not said who it is.
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

/// A link of this node to the other one.
public struct ExplainedLink {
  public var bearer: BearerKind
  /// up, parked, opening …
  public var state: String
  public var sinceSeconds: UInt64
  public var roundTripMicroseconds: UInt64
  public var cost: UInt16
  public var bytesQueued: UInt64
  public var isQuarantined: Bool

  var isParked: Bool { state.utf8.elementsEqual("parked".utf8) }
  /// The other one is a neighbour by it.
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

/// What a node says of itself in the link-state database.
public struct NodeFacts {
  public var id: NodeID
  /// Empty as long as it is not known.
  public var name: String
  public var relays: Bool
  /// Nil as long as it is not known.
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

/// A session here in which the other node is a member, or a service type that both offer.
public struct SharedSession {
  public var type: String
  /// Nil for none.
  public var id: String?
  /// connected, away …; empty without a session.
  public var state: String

  public init(type: String, id: String?, state: String) {
    self.type = type
    self.id = id
    self.state = state
  }
}

/// All that an explanation is made of. Names are untrusted text.
public struct ExplainFacts {
  public var local: NodeID
  public var from: NodeID
  public var to: NodeID
  /// The link-state database, this node included.
  public var nodes: [NodeFacts] = []
  /// Names that are known otherwise: by pins, refusals and addresses.
  public var names: [(id: NodeID, name: String)] = []
  /// Where `to` is, when nothing but an address is known of it; else empty.
  public var toAddress = ""
  /// The last failures, with anybody.
  public var failures: [ContactFailure] = []

  // Only when `from` is this node:
  public var bearers: [BearerFacts] = []
  public var heard: [HeardFacts] = []
  public var links: [ExplainedLink] = []
  /// The links of the present route.
  public var way: [Neighbour] = []
  /// The longest frame payload on it.
  public var payloadBytesMax = 0
  /// Why this box refuses `to`.
  public var trustFault: TrustFault?
  /// An operator revoked this node's own key.
  public var isSelfRevoked = false
  public var linksOpen = 0
  public var linksMax = 0
  /// Why there is no end-to-end session; nil with one, and before one was tried.
  public var sessionFault: SessionFault?
  /// An end-to-end session with `to` is in use.
  public var hasSession = false
  /// For how long `to` has answered no attempt to begin one, and how long ago the last one was made; nil when it has
  /// answered, and without an attempt.
  public var unanswered: (forSeconds: UInt64, secondsAgo: UInt64)?
  public var sessions: [SharedSession] = []

  public init(local: NodeID, from: NodeID, to: NodeID) {
    self.local = local
    self.from = from
    self.to = to
  }
}

extension NodeID {
  /// Whether both are one node, as far as is known: discovery tells the upper half alone.
  public func mayBe(_ other: NodeID) -> Bool {
    self != .none && high == other.high && (low == other.low || high != 0 && (low == 0 || other.low == 0))
  }
}
