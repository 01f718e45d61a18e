import Primitives

/// All that `causeway status` shows: plain values, filled in by whoever owns the parts.
public struct StatusSnapshot {
  public var box: BoxStatus
  public var bearers: [BearerStatus] = []
  public var links: [LinkStatus] = []
  public var peers: [PeerStatus] = []
  public init(box: BoxStatus) { self.box = box }
}

/// The box itself: who it is and how it fares.
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
  /// Frames refused or dropped, by reason; reasons that never happened are left out.
  public var refusals: [(reason: StaticString, count: UInt64)] = []

  /// The trust policy and what it stands on, in a few words.
  public var trust = ""
  /// Whether a time service keeps the wall clock right; the dates of certificates are judged by it.
  public var isClockSynchronised = false
  /// What people must look at, in one line; empty when there is nothing.
  public var alarm = ""
  /// Keys that came under pinned names.
  public var alarms: [AlarmStatus] = []
  /// Who was refused lately, the latest first.
  public var strangers: [StrangerStatus] = []
  /// What this node wants of what it says to others: required, optional or none.
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

/// A key that came under a name that is another's, or looks like it.
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

/// Somebody who was refused.
public struct StrangerStatus {
  public var id: NodeID
  /// Empty where it was refused before it gave a name.
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
  /// What it is doing: addresses, port, PSM, group; may be empty.
  public var detail: String
  /// What is wrong, in one line; empty when nothing is.
  public var problem: String

  public init(name: String, state: String, detail: String, problem: String) {
    self.name = name
    self.state = state
    self.detail = detail
    self.problem = problem
  }
}

/// One link to a neighbour.
public struct LinkStatus {
  /// nil while the other side has yet to prove who it is.
  public var slot: Int?
  /// `.none` until the neighbour has proved who it is.
  public var peer: NodeID
  public var name: String
  public var bearer: BearerKind
  /// opening, up, closing …: one word.
  public var state: String
  /// The remote address as people write it.
  public var remote: String
  public var isInbound: Bool
  public var sinceSeconds: UInt64
  /// nil before the first measurement.
  public var roundTripMicroseconds: UInt64?
  public var bytesReceived: UInt64
  public var bytesSent: UInt64
  public var bytesQueued: UInt64

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

/// A node that can be reached, also what control clients are told of it.
public struct PeerStatus {
  public var id: NodeID
  public var name: String
  public var serviceType: String
  /// `key=value`, in the order advertised.
  public var info: [String]
  /// Links on the way to it: 1 is a neighbour.
  public var hops: UInt8
  /// The bearer of the first link on the way.
  public var bearer: BearerKind
  /// The neighbour at the end of that link.
  public var via: NodeID
  /// Both nodes chose not to seal: what it says may be anybody's.
  public var isInClear: Bool

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
