import Session

/// The part of a client's state that is shown to the operator (`causeway sessions`). This view contains no data of the
/// application.
public struct ClientRecordView {
  /// One session of the client.
  public struct Session {
    public let handle: SessionHandle
    public let type: [UInt8]
    public let streams: Int
    /// Bytes of messages and streams that the client has not taken.
    public let bytesWaiting: Int
  }

  public let user: UInt32
  /// The name of the application; nil before the hello.
  public let instance: [UInt8]?
  public let serviceTypes: [[UInt8]]
  public let sessions: [Session]
}

extension ClientRecords {
  /// The view of the client with an index, or nil if there is no such client.
  public func view(_ index: Int) -> ClientRecordView? {
    guard let client = clients[index] else { return nil }
    return ClientRecordView(
      user: client.user, instance: client.instance, serviceTypes: client.services.map { $0.type },
      sessions: client.sessions.filter { !$0.hasEnded }.map { session in
        let streams = client.streams.filter { $0.session == session.handle }
        return ClientRecordView.Session(
          handle: session.handle, type: session.type, streams: streams.count,
          bytesWaiting: session.bytesWaiting + streams.reduce(0) { $0 + $1.queue.count })
      })
  }
}
