import Primitives
import Session

/// One client of the local API: an application with a connection to the daemon.
final class ClientRecord {
  struct Service {
    let number: UInt32
    let endpoint: UInt32
    let type: [UInt8]
    /// The bytes of the service in the node's advertisement.
    var byteCount: Int
  }

  struct SentInvitation {
    let number: UInt32
    let handle: InvitationHandle
    var outcome: InvitationOutcome?
  }

  struct ReceivedInvitation {
    let service: UInt32
    var invitation: Invitation
    var isTold = false
    /// Whether a session with auto-join (`ClientSession.gathers`) has accepted the invitation, so that the client is
    /// not asked.
    var isGathered = false
    var outcome: InvitationOutcome?
  }

  /// A message that the connection is writing.
  struct InHand {
    let session: SessionHandle
    let from: MemberAddress
    let isReliable: Bool
    let byteCount: Int
  }

  /// A message in flight to one member. The entry also keeps the result until the result was reported to the client.
  struct Flight {
    let request: UInt32
    let id: SessionMessageID
    let to: MemberAddress
    var isDelivered: Bool?
  }

  let user: UInt32
  /// Whether the user is root or the daemon's own user. The part of each limit that is reserved for the operator is for
  /// these users.
  let isOperator: Bool
  let groups: [UInt32]
  /// The application name; nil until the hello.
  var instance: [UInt8]?
  /// The time by which the client must have sent the hello; `.never` after the hello.
  var helloDeadline: Instant
  var services: [Service] = []
  var browses: [LocalBrowse] = []
  var sessions: [ClientSession] = []
  var sent: [SentInvitation] = []
  var received: [ReceivedInvitation] = []
  var flights: [Flight] = []
  var streams: [ClientStream] = []
  /// The sessions that the client has left and whose departures still need signatures.
  var departing: [SessionHandle] = []
  /// Whether the connection of the client has ended. The record then only keeps the slot of the client, until its
  /// departures are signed.
  var isGone = false
  /// Whether there may be events to send.
  var hasNews = false
  /// The message that the connection is writing. Until the message is written, its bytes are counted as waiting for the
  /// client.
  var inHand: InHand?
  private var replies: [[UInt8]] = []
  private(set) var repliesBytes = 0
  private var turn = 0
  var streamTurn = 0
  /// Whether an event of a stream is sent before the next message.
  var isTurnOfStreams = false

  init(user: UInt32, isOperator: Bool, groups: [UInt32], helloDeadline: Instant) {
    self.user = user
    self.isOperator = isOperator
    self.helloDeadline = helloDeadline
    self.groups = groups
  }

  /// Whether a number is in use.
  func isInUse(_ number: UInt32) -> Bool {
    services.contains { $0.number == number } || browses.contains { $0.number == number }
      || sessions.contains { $0.number == number } || sent.contains { $0.number == number }
      || flights.contains { $0.request == number } || streams.contains { $0.number == number }
  }

  /// Whether a service or a session of this client has the endpoint.
  func owns(_ endpoint: UInt32) -> Bool {
    services.contains { $0.endpoint == endpoint } || sessions.contains { $0.endpoint == endpoint }
  }

  /// Whether the configuration permits the client's user to use a service type.
  func mayUse(_ type: [UInt8], _ restrictions: [LocalRestriction]) -> Bool {
    restrictions.allSatisfy { $0.type != type || groups.contains($0.group) }
  }

  func session(_ number: UInt32) -> ClientSession? { sessions.first { $0.number == number && !$0.hasEnded } }

  /// Bytes of unreliable messages that wait for the client.
  var unreliableBytes: Int {
    let inHand = inHand.map { $0.isReliable ? 0 : $0.byteCount + SessionLimits.messageOverheadBytes } ?? 0
    return sessions.reduce(inHand) { $0 + $1.unreliableBytes }
  }

  func reply(_ event: LocalEvent) {
    replies.append(event.packet)
    repliesBytes += replies[replies.count - 1].count
    hasNews = true
  }

  func nextReply() -> [UInt8]? {
    if replies.isEmpty { return nil }
    let reply = replies.removeFirst()
    repliesBytes -= reply.count
    return reply
  }

  /// The next message result to report.
  func nextResult() -> LocalEvent? {
    guard let index = flights.firstIndex(where: { $0.isDelivered != nil }) else { return nil }
    let flight = flights.remove(at: index)
    return .sent(request: flight.request, to: flight.to, flight.isDelivered == true ? .delivered : .failed)
  }

  /// The next event of a session. The sessions of the client take turns.
  func nextSessionEvent(_ node: any LocalNode) -> (
    event: LocalEvent, session: ClientSession, message: ClientSession.Message?
  )? {
    for _ in sessions.indices {
      turn = turn + 1 < sessions.count ? turn + 1 : 0
      let session = sessions[turn]
      let next = session.nextEvent(node) { handle in sessions.first { $0.handle == handle }?.number ?? 0 }
      guard let next else { continue }
      if session.isOver { sessions.remove(at: turn) }
      return (next.event, session, next.message)
    }
    return nil
  }

  func nextInvitationEvent(_ node: any LocalNode, _ now: Instant) -> LocalEvent? {
    if let index = sent.firstIndex(where: { $0.outcome != nil }), let outcome = sent[index].outcome {
      return .invitationEnded(object: sent.remove(at: index).number, received: 0, outcome)
    }
    // The ends of invitations are reported before new invitations, so that the client never knows more invitations than
    // are open.
    if let index = received.firstIndex(where: { $0.outcome != nil }), let outcome = received[index].outcome {
      let asked = received.remove(at: index)
      return .invitationEnded(object: asked.service, received: asked.invitation.handle.number, outcome)
    }
    if let index = received.firstIndex(where: { !$0.isTold && !$0.isGathered }) {
      received[index].isTold = true
      let asked = received[index].invitation
      received[index].invitation.context = []
      return .invited(
        service: received[index].service, asked,
        milliseconds: UInt32(clamping: asked.deadline > now ? (asked.deadline - now).milliseconds : 0),
        node.peer(asked.from.node) ?? .absent)
    }
    return nil
  }

  func nextBrowseEvent(
    _ node: any LocalNode, _ references: NodeReferences, _ restrictions: [LocalRestriction]
  ) -> LocalEvent? {
    for index in browses.indices {
      while let reference = browses[index].dirty.first {
        browses[index].dirty[reference] = false
        let id = references.nodes[reference]
        let type = browses[index].type
        let offered =
          id == .none
          ? []
          : node.sessions.services(of: id).filter { service in
            (type.isEmpty ? mayUse(service.type, restrictions) : service.type == type)
              && !(id == node.sessions.local && services.contains { $0.endpoint == service.endpoint })
          }
        if offered.isEmpty && !browses[index].told[reference] { continue }
        browses[index].told[reference] = !offered.isEmpty
        return .services(
          browse: browses[index].number, reference: UInt16(reference), offered.isEmpty ? .none : id,
          offered.isEmpty ? .absent : node.peer(id) ?? .absent, offered)
      }
      if !browses[index].isAllTold {
        browses[index].isAllTold = true
        return .allTold(browse: browses[index].number)
      }
    }
    return nil
  }
}
