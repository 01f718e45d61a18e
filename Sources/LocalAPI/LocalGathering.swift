import Primitives
import Session

/// Auto-join: sessions that gather every application that offers the session's service type. The node invites
/// applications that offer the type as soon as the client offers the type too, so that they can also find the client.
/// Invitations to the client's service are accepted without asking the client.
extension ClientRecords {
  /// Gathers the applications that are known to offer a type. This method is called when a client begins to gather or
  /// to offer the type.
  func gatherAll(_ type: [UInt8], _ now: Instant) {
    for node in references.nodes where node != .none {
      for service in self.node.sessions.services(of: node) where service.type == type {
        gather(MemberAddress(node: node, endpoint: service.endpoint), type, now)
      }
    }
  }

  /// Adds the address of an application that offers a type to all sessions that gather the type.
  func gather(_ address: MemberAddress, _ type: [UInt8], _ now: Instant) {
    for client in clients.compactMap({ $0 }) where client.services.contains(where: { $0.type == type }) {
      for session in client.sessions where session.gathers && !session.hasEnded && session.type == type {
        // The session refuses its own address, and addresses beyond the limit. Applications with the latter addresses
        // find the session, because they gather too.
        try? node.sessions.gather(address, into: session.handle, now: now)
      }
    }
  }

  /// Accepts an invitation into a session of the client that gathers. Returns false if the client has no session that
  /// gathers, so that the client has to decide.
  func isGathered(_ invitation: Invitation, _ client: ClientRecord) -> Bool {
    let into = client.sessions.first { $0.gathers && !$0.hasEnded && $0.endpoint == invitation.to }
    guard let into else { return false }
    return (try? node.sessions.acceptGathered(invitation.handle, into: into.handle)) != nil
  }
}
