import Primitives

/// The contents of `causeway status` as plain values. The daemon fills in each part.
public struct StatusSnapshot {
  public var box: BoxStatus
  public var bearers: [BearerStatus] = []
  public var links: [LinkStatus] = []
  public var peers: [PeerStatus] = []
  public init(box: BoxStatus) { self.box = box }
}

/// The node itself and its state.
public struct BoxStatus {
  public var name: String
  public var id: NodeID
  /// The node's epoch; it increases with every start.
  public var epoch: UInt64
  public var version: String
  public var serviceType: String
  public var isRelay: Bool
  public var uptimeSeconds: UInt64
  /// The resident memory in bytes; see `residentMemoryBytes()`.
  public var residentBytes: UInt64
  public var framesForwarded: UInt64 = 0
  public var bytesForwarded: UInt64 = 0
  /// The source nodes with the most forwarded bytes.
  public var talkers: [TalkerStatus] = []
  /// The number of refused or dropped frames per reason; reasons without frames are omitted.
  public var refusals: [(reason: StaticString, count: UInt64)] = []

  /// The trust policy and the state of trust, in a few words.
  public var trust = ""
  /// Whether a time service synchronises the wall clock, which certificate dates are checked against.
  public var isClockSynchronised = false
  /// The most important alarm of trust in one line, or empty if there is no alarm.
  public var alarm = ""
  /// Keys that were offered under pinned names.
  public var alarms: [AlarmStatus] = []
  /// The nodes refused recently, latest first.
  public var strangers: [StrangerStatus] = []
  /// This node's encryption preference: required, optional or none.
  public var encryption = ""

  public init(
    name: String, id: NodeID, epoch: UInt64, version: String, serviceType: String, isRelay: Bool,
    uptimeSeconds: UInt64, residentBytes: UInt64
  ) {
    self.name = name
    self.id = id
    self.epoch = epoch
    self.version = version
    self.serviceType = serviceType
    self.isRelay = isRelay
    self.uptimeSeconds = uptimeSeconds
    self.residentBytes = residentBytes
  }
}

/// A node whose frames this node forwards.
public struct TalkerStatus {
  public var id: NodeID
  /// The display name; empty if the node is not a peer now.
  public var name: String
  /// The bytes forwarded since the node entered the table of the busiest sources. If the node leaves the table and
  /// enters it again, the count restarts at zero.
  public var bytes: UInt64

  public init(id: NodeID, name: String, bytes: UInt64) {
    self.id = id
    self.name = name
    self.bytes = bytes
  }
}

/// A key that was offered under the pinned name of another key, or under a similar name.
public struct AlarmStatus {
  public var name: String
  public var pinned: NodeID
  public var offered: NodeID
  public var offeredName: String
  public var count: UInt64

  public init(name: String, pinned: NodeID, offered: NodeID, offeredName: String, count: UInt64) {
    self.name = name
    self.pinned = pinned
    self.offered = offered
    self.offeredName = offeredName
    self.count = count
  }
}

/// A refused node.
public struct StrangerStatus {
  public var id: NodeID
  /// The display name; empty if the node was refused before its name was known.
  public var name: String
  public var reason: String
  public var count: UInt64

  public init(id: NodeID, name: String, reason: String, count: UInt64) {
    self.id = id
    self.name = name
    self.reason = reason
    self.count = count
  }
}

/// A bearer or a discovery source.
public struct BearerStatus {
  /// The name of the bearer or source: ethernet, wifi-direct, bluetooth-le, dns-sd …
  public var name: String
  /// The state in one word: up, waiting, off …
  public var state: String
  /// Details such as addresses, port, PSM and group; may be empty.
  public var detail: String
  /// The last part of the detail, such as a passphrase, which only the operator is allowed to see. Empty if there is
  /// none.
  public var secret: String
  /// The fault in one line; empty if there is none.
  public var problem: String
  /// The use of a radio with a limited number of neighbours; nil for others.
  public var use: RadioUse?

  public init(name: String, state: String, detail: String, secret: String = "", problem: String) {
    self.name = name
    self.state = state
    self.detail = detail
    self.secret = secret
    self.problem = problem
  }
}

/// How many neighbours a radio has, and how much time the radio spent on finding them.
public struct RadioUse {
  /// The number of connected neighbours, and the maximum number; the maximum is nil if it is unknown.
  public var slotsUsed: UInt64
  public var slotsMax: UInt64?
  /// The time that the radio spent scanning and dialling since the daemon started, in milliseconds; nil if the time is
  /// not measured.
  public var scanning: UInt64?
  public var dialling: UInt64?

  public init(slotsUsed: Int, slotsMax: Int? = nil, scanning: TimeSpan? = nil, dialling: TimeSpan? = nil) {
    self.slotsUsed = UInt64(slotsUsed)
    self.slotsMax = slotsMax.map { UInt64($0) }
    self.scanning = scanning?.milliseconds
    self.dialling = dialling?.milliseconds
  }
}

/// The segments that TCP has sent on one connection.
public struct SegmentCounts {
  /// The number of segments with data, including retransmissions.
  public var sent: UInt64
  public var resent: UInt64

  public init(sent: UInt64, resent: UInt64) {
    self.sent = sent
    self.resent = resent
  }
}

/// One link to a neighbour.
public struct LinkStatus {
  /// The slot of the link; nil until the neighbour has proved its key.
  public var slot: Int?
  /// The neighbour's id; `.none` until the neighbour has proved its key.
  public var peer: NodeID
  public var name: String
  public var bearer: BearerKind
  /// The state in one word: opening, up, closing …
  public var state: String
  /// The remote address as text.
  public var remote: String
  public var isInbound: Bool
  public var sinceSeconds: UInt64
  /// The last measured round-trip time; nil before the first measurement.
  public var roundTripMicroseconds: UInt64?
  public var bytesReceived: UInt64
  public var bytesSent: UInt64
  public var bytesQueued: UInt64
  /// The TCP segments; nil for a link that does not use TCP.
  public var segments: SegmentCounts?

  public init(
    slot: Int?, peer: NodeID, name: String, bearer: BearerKind, state: String, remote: String, isInbound: Bool,
    sinceSeconds: UInt64, roundTripMicroseconds: UInt64?, bytesReceived: UInt64, bytesSent: UInt64, bytesQueued: UInt64
  ) {
    self.slot = slot
    self.peer = peer
    self.name = name
    self.bearer = bearer
    self.state = state
    self.remote = remote
    self.isInbound = isInbound
    self.sinceSeconds = sinceSeconds
    self.roundTripMicroseconds = roundTripMicroseconds
    self.bytesReceived = bytesReceived
    self.bytesSent = bytesSent
    self.bytesQueued = bytesQueued
  }
}

/// A reachable node. Clients of the control socket receive this value too.
public struct PeerStatus {
  public var id: NodeID
  public var name: String
  public var serviceType: String
  /// The discovery info as `key=value`, in the advertised order.
  public var info: [String]
  /// The number of links on the path; 1 for a neighbour.
  public var hops: UInt8
  /// The bearer of the first link of the path.
  public var bearer: BearerKind
  /// The neighbour at the end of that link.
  public var via: NodeID
  /// Whether this node and the peer are both configured without end-to-end encryption. Any node in the mesh can then
  /// read and forge their messages.
  public var isInClear: Bool
  /// Whether the peer is a neighbour with a parked link. Such a link is kept without a connection, and dialled when
  /// there is data to send.
  public var isParked = false

  public init(
    id: NodeID, name: String, serviceType: String, info: [String], hops: UInt8, bearer: BearerKind, via: NodeID,
    isInClear: Bool = false
  ) {
    self.id = id
    self.name = name
    self.serviceType = serviceType
    self.info = info
    self.hops = hops
    self.bearer = bearer
    self.via = via
    self.isInClear = isInClear
  }
}
