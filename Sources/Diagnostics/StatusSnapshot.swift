import Primitives

/// The contents of `causeway status`: plain values, filled in by the owners of the parts.
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
  /// Greater at every start.
  public var epoch: UInt64
  public var version: String
  public var serviceType: String
  public var isRelay: Bool
  public var uptimeSeconds: UInt64
  /// Resident memory; `residentMemoryBytes()` reads it.
  public var residentBytes: UInt64
  public var framesForwarded: UInt64 = 0
  public var bytesForwarded: UInt64 = 0
  /// The nodes whose frames were forwarded most.
  public var talkers: [TalkerStatus] = []
  /// Frames refused or dropped, by reason; reasons without any are omitted.
  public var refusals: [(reason: StaticString, count: UInt64)] = []

  /// The trust policy and its state, in a few words.
  public var trust = ""
  /// Whether a time service synchronises the wall clock, with which the dates of certificates are checked.
  public var isClockSynchronised = false
  /// The most important alarm, in one line; empty when there is none.
  public var alarm = ""
  /// Keys that were offered under pinned names.
  public var alarms: [AlarmStatus] = []
  /// Nodes refused lately, the latest first.
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
  /// Empty when it is no peer any more.
  public var name: String
  /// Bytes that were forwarded since it is among those that are counted; they begin again when it comes back there.
  public var bytes: UInt64

  public init(id: NodeID, name: String, bytes: UInt64) {
    self.id = id
    self.name = name
    self.bytes = bytes
  }
}

/// A key that was offered under a name of another key, or a similar one.
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

/// A node that was refused.
public struct StrangerStatus {
  public var id: NodeID
  /// Empty if it was refused before a name was known.
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
  /// ethernet, wifi-direct, bluetooth-le, dns-sd …
  public var name: String
  /// up, waiting, off …: one word.
  public var state: String
  /// Its state: addresses, port, PSM, group; may be empty.
  public var detail: String
  /// The end of the detail for the operator alone: a passphrase. Empty when there is none.
  public var secret: String
  /// What is wrong, in one line; empty when nothing is.
  public var problem: String
  /// Of a radio with a limited number of neighbours; nil for others.
  public var use: RadioUse?

  public init(name: String, state: String, detail: String, secret: String = "", problem: String) {
    self.name = name
    self.state = state
    self.detail = detail
    self.secret = secret
    self.problem = problem
  }
}

/// How a radio is used.
public struct RadioUse {
  /// Neighbours that it is connected with, and how many it can have at once; nil when this is not known.
  public var places: UInt64
  public var placesMax: UInt64?
  /// How long it has scanned and dialled since the start, in milliseconds; nil for a radio that this does not know of.
  public var scanning: UInt64?
  public var dialling: UInt64?

  public init(places: Int, placesMax: Int? = nil, scanning: TimeSpan? = nil, dialling: TimeSpan? = nil) {
    self.places = UInt64(places)
    self.placesMax = placesMax.map { UInt64($0) }
    self.scanning = scanning?.milliseconds
    self.dialling = dialling?.milliseconds
  }
}

/// What TCP has sent on one connection.
public struct SegmentCounts {
  /// Segments with data, those that were sent again included.
  public var sent: UInt64
  public var resent: UInt64

  public init(sent: UInt64, resent: UInt64) {
    self.sent = sent
    self.resent = resent
  }
}

/// One link to a neighbour.
public struct LinkStatus {
  /// Nil until the neighbour has proved its key.
  public var slot: Int?
  /// `.none` until the neighbour has proved its key.
  public var peer: NodeID
  public var name: String
  public var bearer: BearerKind
  /// opening, up, closing …: one word.
  public var state: String
  /// The remote address as text.
  public var remote: String
  public var isInbound: Bool
  public var sinceSeconds: UInt64
  /// nil before the first measurement.
  public var roundTripMicroseconds: UInt64?
  public var bytesReceived: UInt64
  public var bytesSent: UInt64
  public var bytesQueued: UInt64
  /// Nil for a link that is not over TCP.
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

/// A reachable node; also sent to control clients.
public struct PeerStatus {
  public var id: NodeID
  public var name: String
  public var serviceType: String
  /// `key=value`, in the advertised order.
  public var info: [String]
  /// Links on the path to it: 1 is a neighbour.
  public var hops: UInt8
  /// The bearer of the first link of the path.
  public var bearer: BearerKind
  /// The neighbour at the end of that link.
  public var via: NodeID
  /// Both nodes chose not to seal: its messages may be forged.
  public var isInClear: Bool
  /// A neighbour whose link rests until there is something to say.
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
