import Primitives
import Session

/// Passes each event of the node's sessions to the client that the event concerns.
extension ClientRecords {
  public func receive(_ event: SessionEvent, now: Instant) {
    switch event {
    case .serviceFound(let address, let service), .serviceChanged(let address, let service):
      offersChanged(address.node)
      gather(address, service.type, now)
    case .serviceLost(let address): offersChanged(address.node)
    case .invited(let invitation): receive(invitation)
    case .invitationEnded(let handle, let outcome): ended(handle, outcome)
    case .identified(let handle, _): with(handle) { _, session in session.identify() }
    case .member(let handle, let address, let state):
      with(handle) { _, session in session.note(address, state) }
    case .decisionWanted(let handle, let address): with(handle) { _, session in session.asks(address) }
    case .message(let handle, let from, let data):
      with(handle) { _, session in
        // There is always buffer space for the message, because sessions grant senders no more credit than there is
        // buffer space.
        session.add(ClientSession.Message(from: from, isReliable: true, data: data))
      }
    case .datagram(let handle, let from, let data):
      with(handle) { client, session in
        let message = ClientSession.Message(from: from, isReliable: false, data: data)
        if mayWait(message, in: session, for: client) { session.add(message) }
      }
    case .stream(let handle, let event): receive(handle, event, now)
    case .sent(let id, to: _, let isDelivered): sent(id, isDelivered)
    case .room(let handle, let address): with(handle) { _, session in _ = session.roomAppeared(address) }
    case .ended(let handle, let end):
      with(handle) { client, session in
        session.finish(end)
        client.streams.removeAll { $0.session == handle && $0.number == 0 }
        guard end == .left else { return }
        // The client has left, so unread messages are discarded. Only the message that is being written still reaches
        // the client.
        let inHand = client.inHand.flatMap { $0.session == handle && $0.isReliable ? $0 : nil }
        node.sessions.discard(handle, exceptMessageOf: inHand?.byteCount)
      }
    }
  }

  /// Handles a change of a node: the node was found, or its name, its number of hops or `LocalPeer.isVerified` has
  /// changed.
  public func peerChanged(_ id: NodeID) {
    if references.reference(of: id) != nil { offersChanged(id) }
  }

  private func receive(_ invitation: Invitation) {
    for client in clients.compactMap({ $0 }) {
      guard let service = client.services.first(where: { $0.endpoint == invitation.to }) else { continue }
      var received = ClientRecord.ReceivedInvitation(service: service.number, invitation: invitation)
      received.isGathered = isGathered(invitation, client)
      client.received.append(received)
      client.hasNews = true
      return
    }
  }

  private func ended(_ handle: InvitationHandle, _ outcome: InvitationOutcome) {
    for client in clients.compactMap({ $0 }) {
      if let index = client.sent.firstIndex(where: { $0.handle == handle }) {
        client.sent[index].outcome = outcome
        client.hasNews = true
      }
      if let index = client.received.firstIndex(where: { $0.invitation.handle == handle }) {
        // An invitation that ends before its report is removed, so that no ended invitations are kept for a client that
        // does not read.
        guard client.received[index].isTold else {
          client.received.remove(at: index)
          continue
        }
        client.received[index].outcome = outcome
        client.received[index].invitation.context = []
        client.hasNews = true
      }
    }
  }

  private func sent(_ id: SessionMessageID, _ isDelivered: Bool) {
    for case let client? in clients {
      guard let index = client.flights.firstIndex(where: { $0.id == id }) else { continue }
      client.flights[index].isDelivered = isDelivered
      client.hasNews = true
      return
    }
  }

  /// Calls `body` with an open session and the client that owns the session, and marks the client as having events.
  private func with(_ handle: SessionHandle, _ body: (ClientRecord, ClientSession) -> Void) {
    for case let client? in clients {
      guard let session = client.sessions.first(where: { $0.handle == handle && !$0.hasEnded }) else { continue }
      body(client, session)
      client.hasNews = true
      return
    }
  }
}
