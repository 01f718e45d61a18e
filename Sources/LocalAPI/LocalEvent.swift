import Primitives
import Session

/// The result code of a request.
public enum LocalOutcome: UInt8, Sendable {
  case done = 0
  /// The daemon does not know the request type or does not support the protocol version.
  case unsupported = 1
  /// There is no such service, browse, session or invitation, or the object has ended.
  case unknown = 2
  /// A field is invalid.
  case invalid = 3
  /// The rules of the session or the configuration of the node do not allow the request.
  case notAllowed = 4
  /// The address is not a connected member, or is out of reach.
  case unavailable = 5
  /// A limit for the client or its user is reached.
  case full = 6
  /// The session is about to join another session, or already waits for the address of the request.
  case busy = 7
  case incompatible = 8
  case alreadyMember = 9
  /// The number is in use, or another client already uses the endpoint for a service or a session.
  case inUse = 10
}

/// The result of a message to one member.
public enum LocalDelivery: UInt8, Sendable {
  /// The member's node has the message.
  case delivered = 0
  /// Delivery of the message failed. The message may have arrived, but not twice.
  case failed = 1
  /// The message was not sent because the member has no room for it. The event `room` follows when there may be room.
  case noRoom = 2
  /// The message was not sent because the address is not a connected member.
  case notConnected = 3
}

/// The description of a node for an application.
public struct LocalPeer: Equatable, Sendable {
  /// Plain text, 1–63 bytes; untrusted unless `isVerified`.
  public var name: [UInt8]
  /// The number of links on the path to the node; 0 for this node.
  public var hops: UInt8
  /// Whether this node has pinned the key of the node: stored the key as the known key of the node's name. The property
  /// is true for this node itself.
  public var isVerified: Bool

  public init(name: [UInt8], hops: UInt8, isVerified: Bool) {
    self.name = name
    self.hops = hops
    self.isVerified = isVerified
  }

  /// The value for a node that is out of reach.
  static let absent = LocalPeer(name: [], hops: 0, isVerified: false)
}

/// The limits that a daemon reports to a client in its welcome.
public struct LocalTerms: Equatable, Sendable {
  public var packetBytesMax: UInt32
  public var messageBytesMax: UInt32
  public var loanBytes: UInt32
  public var servicesMax: UInt16
  public var sessionsMax: UInt16
  public var browsesMax: UInt16
  public var flightsMax: UInt16
  public var streamsMax: UInt16

  /// The limits of this daemon.
  public static let own = LocalTerms(
    packetBytesMax: UInt32(LocalLimits.packetBytesMax), messageBytesMax: UInt32(SessionLimits.messageBytesMax),
    loanBytes: UInt32(SessionLimits.loanPoolBytes), servicesMax: UInt16(LocalLimits.servicesMax),
    sessionsMax: UInt16(LocalLimits.sessionsMax), browsesMax: UInt16(LocalLimits.browsesMax),
    flightsMax: UInt16(LocalLimits.flightsMax), streamsMax: UInt16(LocalLimits.streamsMax))
}

/// An event that is sent to an application. See docs/local-api.md, “Events”.
public enum LocalEvent: Equatable, Sendable {
  case done(request: UInt32, LocalOutcome, text: [UInt8])
  /// The success of a request for a service or a session, with the endpoint at which others invite the client.
  case doneAt(request: UInt32, endpoint: UInt32)
  case welcome(request: UInt32, version: UInt16, node: NodeID, name: [UInt8], LocalTerms = .own)
  /// The services that a node offers now. If there are none, the node is lost. `reference` is the number of the node in
  /// the browse, until a later event assigns this number to another node.
  case services(browse: UInt32, reference: UInt16, NodeID, LocalPeer, [Service])
  case allTold(browse: UInt32)
  case invited(service: UInt32, Invitation, milliseconds: UInt32, LocalPeer)
  /// The end of an invitation. For an invitation that the client sent, `object` is the invitation's number, and
  /// `received` is 0. For a received invitation, `object` is the service, and `received` is the daemon's number of the
  /// invitation.
  case invitationEnded(object: UInt32, received: UInt32, InvitationOutcome)
  case identified(session: UInt32, SessionID)
  case ended(session: UInt32, SessionEnd, same: UInt32)
  case member(session: UInt32, MemberAddress, MemberState, LocalPeer)
  case message(session: UInt32, from: MemberAddress, isReliable: Bool, [UInt8])
  case sent(request: UInt32, to: MemberAddress, LocalDelivery)
  case room(session: UInt32, MemberAddress)
  /// A member opened a stream; `stream` is the daemon's number of the stream.
  case stream(session: UInt32, stream: UInt32, from: MemberAddress, [UInt8])
  case streamBytes(stream: UInt32, [UInt8])
  /// The total number of bytes that the client is allowed to write, since the stream was opened.
  case streamRoom(stream: UInt32, limit: UInt64)
  /// The end of a stream. For a stream that the client has opened or taken, `object` is the stream's number, and
  /// `received` is 0. For a stream that the client has not answered, `object` is the session, and `received` is the
  /// daemon's number of the stream.
  case streamEnded(object: UInt32, received: UInt32, StreamEnd)
  /// A request to the client to decide on a member. The member's node has proved its key with these certificates.
  case decisionWanted(session: UInt32, MemberAddress, LocalPeer, certificates: [[UInt8]])

  /// The size of a `sent` packet with its length field, in bytes.
  public static let sentBytes = 4 + 5 + MemberAddress.byteCount + 1

  /// The packet with its length field.
  public var packet: [UInt8] {
    var bytes: [UInt8] = [0, 0, 0, 0]
    append(to: &bytes)
    bytes.setPacketLength()
    return bytes
  }

  private func append(to bytes: inout [UInt8]) {
    func begin(_ type: UInt8, _ object: UInt32) {
      bytes.append(type)
      bytes.append(bigEndian: object)
    }
    switch self {
    case .done(let request, let outcome, let text):
      begin(128, request)
      bytes.append(outcome.rawValue)
      bytes.append(text: text)
    case .doneAt(let request, let endpoint):
      begin(128, request)
      bytes += [LocalOutcome.done.rawValue, 0]
      bytes.append(bigEndian: endpoint)
    case .welcome(let request, let version, let node, let name, let terms):
      begin(129, request)
      bytes.append(bigEndian: version)
      bytes.append(bigEndian: UInt64(0))
      bytes.append(node)
      bytes.append(text: name)
      bytes.append(terms: terms)
    case .services(let browse, let reference, let node, let peer, let services):
      begin(130, browse)
      bytes.append(bigEndian: reference)
      bytes.append(node)
      bytes.append(peer: peer)
      bytes.append(UInt8(services.count))
      for service in services { bytes.append(service: service) }
    case .allTold(let browse): begin(131, browse)
    case .invited(let service, let invitation, let milliseconds, let peer):
      begin(132, service)
      bytes.append(bigEndian: invitation.handle.number)
      bytes.append(address: invitation.from)
      bytes.append(peer: peer)
      bytes.append(rules: invitation.rules)
      bytes.append(UInt8(clamping: invitation.memberCount))
      bytes.append(bigEndian: milliseconds)
      bytes.append(bigEndian: UInt16(invitation.context.count))
      bytes.append(copying: invitation.context)
    case .invitationEnded(let object, let received, let outcome):
      begin(133, object)
      bytes.append(bigEndian: received)
      let (code, text) = Self.code(outcome)
      bytes.append(code)
      bytes.append(text: text)
    case .identified(let session, let id):
      begin(134, session)
      bytes.append(bigEndian: id.high)
      bytes.append(bigEndian: id.low)
    case .ended(let session, let end, let same):
      begin(135, session)
      let (code, text) = Self.code(end)
      bytes.append(code)
      bytes.append(bigEndian: same)
      bytes.append(text: text)
    case .member(let session, let address, let state, let peer):
      begin(136, session)
      bytes.append(address: address)
      bytes.append(peer: peer)
      let (code, reason, text) = Self.code(state)
      bytes += [code, reason]
      bytes.append(text: text)
    case .message(let session, let from, let isReliable, let data):
      begin(137, session)
      bytes.append(address: from)
      bytes.append(isReliable ? 0 : LocalRequest.Mode.unreliable.rawValue)
      bytes.append(bigEndian: UInt32(data.count))
      bytes.append(copying: data)
    case .sent(let request, let to, let delivery):
      begin(138, request)
      bytes.append(address: to)
      bytes.append(delivery.rawValue)
    case .room(let session, let address):
      begin(139, session)
      bytes.append(address: address)
    case .stream(let session, let stream, let from, let name):
      begin(140, session)
      bytes.append(bigEndian: stream)
      bytes.append(address: from)
      bytes.append(text: name)
    case .streamBytes(let stream, let data):
      begin(141, stream)
      bytes.append(bigEndian: UInt32(data.count))
      bytes.append(copying: data)
    case .streamRoom(let stream, let limit):
      begin(142, stream)
      bytes.append(bigEndian: limit)
    case .streamEnded(let object, let received, let end):
      begin(143, object)
      bytes.append(bigEndian: received)
      bytes.append(Self.code(end))
    case .decisionWanted(let session, let address, let peer, let certificates):
      begin(144, session)
      bytes.append(address: address)
      bytes.append(peer: peer)
      bytes.append(UInt8(certificates.count))
      for certificate in certificates {
        bytes.append(bigEndian: UInt16(certificate.count))
        bytes.append(copying: certificate)
      }
    }
  }

  private static func code(_ end: StreamEnd) -> UInt8 {
    switch end {
    case .finished: 0
    case .reset(let reason): reason.rawValue
    case .lost: 5
    }
  }

  private static func code(_ outcome: InvitationOutcome) -> (UInt8, [UInt8]) {
    switch outcome {
    case .connected: (0, [])
    case .declined(let explanation): (1, explanation)
    case .timedOut: (2, [])
    case .cancelled: (3, [])
    case .busy: (4, [])
    case .full: (5, [])
    case .noService: (6, [])
    case .incompatible: (7, [])
    case .sessionEnded: (8, [])
    }
  }

  private static func code(_ end: SessionEnd) -> (UInt8, [UInt8]) {
    switch end {
    case .left: (0, [])
    case .ejected(let text): (1, text)
    case .full: (2, [])
    case .isSame: (3, [])
    }
  }

  private static func code(_ state: MemberState) -> (UInt8, UInt8, [UInt8]) {
    switch state {
    case .connecting: (0, 0, [])
    case .connected: (1, 0, [])
    case .away: (2, 0, [])
    case .rejected: (3, 0, [])
    case .left(let reason, let text): (4, reason.rawValue, text)
    case .ejected(let text): (5, 0, text)
    case .paused: (6, 0, [])
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(peer: LocalPeer) {
    append(peer.hops)
    append(peer.isVerified ? 1 : 0)
    append(text: peer.name)
  }

  fileprivate mutating func append(terms: LocalTerms) {
    append(bigEndian: terms.packetBytesMax)
    append(bigEndian: terms.messageBytesMax)
    append(bigEndian: terms.loanBytes)
    append(bigEndian: terms.servicesMax)
    append(bigEndian: terms.sessionsMax)
    append(bigEndian: terms.browsesMax)
    append(bigEndian: terms.flightsMax)
    append(bigEndian: terms.streamsMax)
  }

  /// Appends a service. A length precedes the fields of the service, so that later versions can append fields.
  fileprivate mutating func append(service: Service) {
    let length = 4 + 1 + service.type.count + 1 + service.info.reduce(0) { $0 + 1 + $1.count }
    append(bigEndian: UInt16(length))
    append(bigEndian: service.endpoint)
    append(text: service.type)
    append(UInt8(service.info.count))
    for pair in service.info { append(text: pair) }
  }
}
