import Capture
import Primitives
import Status

/// The protocol of the control socket, between the daemon and the commands of the same binary.
///
/// The socket is `control.sock` in the runtime directory: Unix, SOCK_SEQPACKET, mode 0660. One packet is one request or
/// event: a type byte, then the fields of that type. Integers are big-endian. A text is a length byte and its UTF-8. An
/// id has 16 bytes.
///
///     client → server
///     'S'  status                              answered by 'S' packets
///     'A'  watch                               subscribe to peers: answered by 'P' for each present peer and 'R', then
///                                              by 'P' and 'L' for each change
///     'T'  trust: u8 operation, id, text name  see `TrustOperation`; answered by 'T'
///     'Q'  probe: u32 request, id              check that a node is reachable; answered by 'C' when the probe ends
///     'W'  way: id                             answered by 'W'
///     'N'  applications and their sessions     answered by 'S' packets with other JSON
///     'X'  explain: id, id                     why the two nodes can or cannot communicate; answered by 'S' packets
///                                              with other JSON; for two zero ids, the ids that 'X' accepts
///     'J'  join                                the data with which a phone joins the Wi-Fi group, with its passphrase;
///                                              operator only; answered by 'S' packets with other JSON, or by 'T' if
///                                              refused
///     'H'  reload the configuration            operator only; answered by 'T'
///     'K'  capture: u8 flags, u8 link, id      flags: 1 include payloads (operator only), 2 only this link, 4 only
///                                              links to this neighbour; answered by 'K' packets until the client
///                                              leaves, or by 'T' if refused
///
///     server → client
///     'S'  a piece of the JSON of the status or another answer; an empty piece ends it
///     'P'  a peer is present or has changed: id, u8 hops, u8 bearer, id via, text name, text service type,
///          u8 count, that many texts key=value, u8 flags: 1 without end-to-end encryption, 2 parked
///     'R'  all peers known at 'A' were sent: own id, text own name
///     'L'  a peer is gone: id
///     'C'  a probe has ended: u32 request, u8 outcome (`ProbeOutcome`)
///     'W'  the links of the current route, nearest first: u8 count, then for each link the node behind the link: id,
///          u8 bearer, text name; without a route the count is 0
///     'T'  the answer to a trust request or a reload, or a refusal of 'J' or 'K': u8 done (1) or not done (0),
///          text for people, truncated to 255 bytes
///     'K'  frames: u32 frames dropped since the last packet, then pcap records (`CaptureFormat`);
///          the first packet has no record and confirms the start of the capture
///     'E'  the server closes the connection: text reason
///
/// The operator is root or the daemon's own user.
///
/// The server stops reading from a client with `outstandingMax` unfinished probes. The server closes a client that
/// sends no request within `firstSecondsMax`, reads nothing for `stallSecondsMax`, or has more than `queuedBytesMax`
/// queued. Captured frames do not count for these limits: if a client reads them too slowly, frames are dropped. The
/// limits on clients, captures, probes and queued bytes are divided among users, so that no user can exclude the
/// others.
public enum ControlProtocol {
  /// The maximum number of clients of all users without the operator. `ShareRule` divides the clients among users: a
  /// single user can have 11.
  public static let clientsMax = 16
  /// The number of additional clients reserved for the operator. Without the reserve, other users could keep the
  /// operator from revoking a key.
  public static let reservedMax = 4
  static let clients = ShareRule(capacity: clientsMax + reservedMax, reserve: reservedMax, factor: 2)
  /// The maximum size of a request in bytes: a trust request with the longest text.
  public static let requestBytesMax = 2 + 16 + 1 + 255
  /// The maximum size of a piece of JSON in bytes.
  public static let statusPieceBytesMax = 32_768
  /// The maximum size of an event in bytes: captured frames.
  public static let eventBytesMax = captureBytes
  /// The maximum number of capturing clients. One capture is reserved for the operator, and each other user can have
  /// one.
  public static let capturesMax = 3
  static let captures = ShareRule(capacity: capturesMax, reserve: 1)
  /// The size of the packet of captured frames that wait for one client, in bytes.
  public static let captureBytes = 65_536
  static let captureType = UInt8(ascii: "K")
  /// The maximum number of unfinished probes of one client, and of all clients. A single user can have 171.
  public static let outstandingMax = 64
  public static let outstandingOfAll = 320
  static let outstanding = ShareRule(capacity: outstandingOfAll, reserve: outstandingMax, factor: 2)
  /// The maximum number of bytes queued for one client. It has room for the updates of every peer of a full mesh,
  /// twice.
  public static let queuedBytesMax = 1_048_576
  /// The maximum number of bytes queued for all clients together.
  public static let queuedBytesOfAll = 1_310_720
  public static let stallSecondsMax: UInt64 = 30
  /// The time that a client has for its first request, in seconds.
  public static let firstSecondsMax: UInt64 = 5
}

/// The result of a probe. The raw value is sent on the control socket.
public enum ProbeOutcome: UInt8, Sendable {
  /// The other node has acknowledged the probe.
  case delivered = 0
  /// The other node restarted during the probe.
  case peerRestarted = 1
  /// No acknowledgement arrived in time.
  case timedOut = 2
  /// The channel to the other node was closed.
  case closed = 3
  /// The peer is unknown or unreachable.
  case unreachable = 4
  /// This node already has the maximum number of channels to peers.
  case refused = 5
  /// The encryption preferences are incompatible, or one node refused the other's key.
  case notAgreed = 6
  /// The channel to the other node had no room for the probe, or the user has too many unfinished probes.
  case noRoom = 8
}

/// One link of a route.
public struct ControlHop: Equatable, Sendable {
  /// The node that the link leads to.
  public var node: NodeID
  public var bearer: BearerKind
  /// The display name; empty if the node's profile is unknown. Untrusted.
  public var name: String

  public init(node: NodeID, bearer: BearerKind, name: String) {
    self.node = node
    self.bearer = bearer
    self.name = name
  }
}

/// An operation on the node's trust. The raw value is sent on the control socket. Only root and the daemon's own user
/// may request it.
public enum TrustOperation: UInt8, Sendable {
  /// Pins the id, under the name if the request contains a name.
  case pin = 1
  /// Removes the pins of the id, or the pins of the name if the id is zero.
  case unpin = 2
  case revoke = 3
  /// Accepts the new key of an alarm: pins the offered id under the name of the alarm.
  case accept = 4
  /// Confirms the pinned key: removes the alarms about the id, or all alarms if the id is zero. The offered keys raise
  /// no further alarm until a restart.
  case keep = 5
  /// Removes the alarms about the id, or all alarms if the id is zero. The next attempt of an offered key raises an
  /// alarm again.
  case dismiss = 6
}

/// A request from a client.
public enum ControlRequest {
  case trust(TrustOperation, NodeID, name: String)
  case status
  case watch
  case probe(request: UInt32, NodeID)
  case way(NodeID)
  case reload
  case applications
  case join
  /// Explains why the two nodes can or cannot communicate. If both ids are `.none`, the answer lists the ids that the
  /// request accepts.
  case explain(NodeID, NodeID)
  case capture(CaptureWish)
}

/// An event for a client.
public enum ControlEvent {
  case answer(isDone: Bool, text: String)
  case statusPiece([UInt8])
  case peerPresent(PeerStatus)
  case ready(id: NodeID, name: String)
  case peerLost(NodeID)
  case completed(request: UInt32, ProbeOutcome)
  case way([ControlHop])
  case frames(dropped: UInt32, records: [UInt8])
  case closing(String)
}

/// Bytes that are not a valid packet of this protocol.
public struct ControlSyntaxError: Error {
  public init() {}
}

extension ControlRequest {
  public func encoded() -> [UInt8] {
    var packet: [UInt8] = []
    switch self {
    case .status: packet.append(UInt8(ascii: "S"))
    case .reload: packet.append(UInt8(ascii: "H"))
    case .applications: packet.append(UInt8(ascii: "N"))
    case .join: packet.append(UInt8(ascii: "J"))
    case .explain(let from, let to):
      packet.append(UInt8(ascii: "X"))
      packet.append(from)
      packet.append(to)
    case .trust(let operation, let id, let name):
      packet.append(UInt8(ascii: "T"))
      packet.append(operation.rawValue)
      packet.append(id)
      packet.append(text: name)
    case .watch: packet.append(UInt8(ascii: "A"))
    case .probe(let request, let node):
      packet.append(UInt8(ascii: "Q"))
      packet.append(bigEndian: request)
      packet.append(node)
    case .way(let node):
      packet.append(UInt8(ascii: "W"))
      packet.append(node)
    case .capture(let wish): packet.append(wish)
    }
    return packet
  }

  public init(_ packet: [UInt8]) throws(ControlSyntaxError) {
    var reader = ByteReader(packet.span.bytes, orThrow: ControlSyntaxError())
    switch try reader.u8() {
    case UInt8(ascii: "S"): self = .status
    case UInt8(ascii: "H"): self = .reload
    case UInt8(ascii: "N"): self = .applications
    case UInt8(ascii: "J"): self = .join
    case UInt8(ascii: "X"): self = .explain(try reader.nodeID(), try reader.nodeID())
    case UInt8(ascii: "T"):
      guard let operation = TrustOperation(rawValue: try reader.u8()) else { throw ControlSyntaxError() }
      self = .trust(operation, try reader.nodeID(), name: try reader.text())
    case UInt8(ascii: "A"): self = .watch
    case UInt8(ascii: "Q"): self = .probe(request: try reader.u32(), try reader.nodeID())
    case UInt8(ascii: "W"): self = .way(try reader.nodeID())
    case ControlProtocol.captureType: self = .capture(try reader.captureWish())
    default: throw ControlSyntaxError()
    }
    if reader.remaining != 0 { throw ControlSyntaxError() }
  }
}

extension ControlEvent {
  public func encoded() -> [UInt8] {
    var packet: [UInt8] = []
    switch self {
    case .statusPiece(let bytes):
      packet.append(UInt8(ascii: "S"))
      packet += bytes
    case .peerPresent(let peer):
      packet.append(UInt8(ascii: "P"))
      packet.append(peer)
    case .ready(let id, let name):
      packet.append(UInt8(ascii: "R"))
      packet.append(id)
      packet.append(text: name)
    case .peerLost(let id):
      packet.append(UInt8(ascii: "L"))
      packet.append(id)
    case .completed(let request, let outcome):
      packet.append(UInt8(ascii: "C"))
      packet.append(bigEndian: request)
      packet.append(outcome.rawValue)
    case .way(let hops):
      packet += [UInt8(ascii: "W"), UInt8(hops.count)]
      for hop in hops {
        packet.append(hop.node)
        packet.append(hop.bearer.rawValue)
        packet.append(text: hop.name)
      }
    case .answer(let isDone, let text):
      packet.append(UInt8(ascii: "T"))
      packet.append(isDone ? 1 : 0)
      packet.append(text: text)
    case .frames(let dropped, let records):
      packet.append(ControlProtocol.captureType)
      packet.append(bigEndian: dropped)
      packet += records
    case .closing(let text):
      packet.append(UInt8(ascii: "E"))
      packet.append(text: text)
    }
    return packet
  }

  public init(_ packet: [UInt8]) throws(ControlSyntaxError) {
    var reader = ByteReader(packet.span.bytes, orThrow: ControlSyntaxError())
    switch try reader.u8() {
    case UInt8(ascii: "S"): self = .statusPiece(try reader.array(reader.remaining))
    case UInt8(ascii: "P"): self = .peerPresent(try reader.peer())
    case UInt8(ascii: "R"): self = .ready(id: try reader.nodeID(), name: try reader.text())
    case UInt8(ascii: "L"): self = .peerLost(try reader.nodeID())
    case UInt8(ascii: "C"):
      let request = try reader.u32()
      guard let outcome = ProbeOutcome(rawValue: try reader.u8()) else { throw ControlSyntaxError() }
      self = .completed(request: request, outcome)
    case UInt8(ascii: "W"):
      var hops: [ControlHop] = []
      for _ in 0..<(try reader.u8()) { hops.append(try reader.hop()) }
      self = .way(hops)
    case UInt8(ascii: "T"): self = .answer(isDone: try reader.u8() == 1, text: try reader.text())
    case ControlProtocol.captureType:
      self = .frames(dropped: try reader.u32(), records: try reader.array(reader.remaining))
    case UInt8(ascii: "E"): self = .closing(try reader.text())
    default: throw ControlSyntaxError()
    }
    if reader.remaining != 0 { throw ControlSyntaxError() }
  }
}
