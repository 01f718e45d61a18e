import Primitives
import Session

/// Sessions that gather all who offer their type. Who does is invited as soon as the client offers the type too, so that
/// the others can find it; who invites is accepted without a question.
extension LocalClients {
  /// A client gathers a type now, or offers one: it may know others that do.
  func gatherAll(_ type: [UInt8], _ now: Instant) {
    for node in places.nodes where node != .none {
      for service in self.node.sessions.services(of: node) where service.type == type {
        gather(MemberAddress(node: node, endpoint: service.endpoint), type, now)
      }
    }
  }

  /// Somebody offers a type: those who gather it bring it into their sessions.
  func gather(_ address: MemberAddress, _ type: [UInt8], _ now: Instant) {
    for client in clients.compactMap({ $0 }) where client.services.contains(where: { $0.type == type }) {
      for session in client.sessions where session.gathers && !session.hasEnded && session.type == type {
        // Its own address is refused. More than the node can gather are found by others.
        try? node.sessions.gather(address, into: session.handle, now: now)
      }
    }
  }

  /// Accepts an invitation to a session that gathers. False when the client is to be asked.
  func isGathered(_ invitation: Invitation, _ client: LocalClient) -> Bool {
    let into = client.sessions.first { $0.gathers && !$0.hasEnded && $0.endpoint == invitation.to }
    guard let into else { return false }
    return (try? node.sessions.acceptGathered(invitation.handle, into: into.handle)) != nil
  }
}
