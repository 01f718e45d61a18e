import Session

/// What people may see of a client: nothing that it says.
public struct LocalClientView {
  /// One of its sessions.
  public struct Session {
    public let handle: SessionHandle
    public let type: [UInt8]
    public let streams: Int
    /// Bytes of messages and streams that the client has not taken.
    public let bytesWaiting: Int
  }

  public let user: UInt32
  /// The name that it gave itself; nil before it said hello.
  public let instance: [UInt8]?
  public let serviceTypes: [[UInt8]]
  public let sessions: [Session]
}

extension LocalClients {
  /// The client in a place; nil when there is none.
  public func view(_ place: Int) -> LocalClientView? {
    guard let client = clients[place] else { return nil }
    return LocalClientView(
      user: client.user, instance: client.instance, serviceTypes: client.services.map { $0.type },
      sessions: client.sessions.filter { !$0.hasEnded }.map { session in
        let streams = client.streams.filter { $0.session == session.handle }
        return LocalClientView.Session(
          handle: session.handle, type: session.type, streams: streams.count,
          bytesWaiting: session.bytesWaiting + streams.reduce(0) { $0 + $1.queue.count })
      })
  }
}
