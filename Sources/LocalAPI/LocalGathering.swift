import Primitives
import Session

/// Sessions that gather every application that offers their type. The node invites such an application as soon as the
/// client offers the type too, so that the others can find it. Invitations from such applications are accepted without
/// a prompt.
extension LocalClients {
  /// Gathers the known services of a type, because a client now gathers or offers it.
  func gatherAll(_ type: [UInt8], _ now: Instant) {
    for node in places.nodes where node != .none {
      for service in self.node.sessions.services(of: node) where service.type == type {
        gather(MemberAddress(node: node, endpoint: service.endpoint), type, now)
      }
    }
  }

  /// Brings an application that offers a type into the sessions that gather the type.
  func gather(_ address: MemberAddress, _ type: [UInt8], _ now: Instant) {
    for client in clients.compactMap({ $0 }) where client.services.contains(where: { $0.type == type }) {
      for session in client.sessions where session.gathers && !session.hasEnded && session.type == type {
        // The session refuses its own address. Addresses beyond the limit find the session themselves.
        try? node.sessions.gather(address, into: session.handle, now: now)
      }
    }
  }

  /// Accepts an invitation into a session that gathers. Returns false if the client has to be asked.
  func isGathered(_ invitation: Invitation, _ client: LocalClient) -> Bool {
    let into = client.sessions.first { $0.gathers && !$0.hasEnded && $0.endpoint == invitation.to }
    guard let into else { return false }
    return (try? node.sessions.acceptGathered(invitation.handle, into: into.handle)) != nil
  }
}
