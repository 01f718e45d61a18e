/// Who comes into a session and who stays. docs/local-api.md, “Requests”.
extension Session {
  /// Waits for nobody to be asked: offers the session's type, and from now on the daemon invites who offers it, and
  /// accepts who invites, until the session ends. Of two that gather each other one invites. Who does not gather is
  /// asked as by `invite`. Who declined is not invited again before it was lost and found. It returns when the session
  /// has ended. When its task is cancelled the service is withdrawn, and nobody comes any more.
  ///
  /// An application that wants a say opens its session with `decides`.
  ///
  /// - Parameter info: discovery info, as for `Node.advertise`.
  /// - Throws: what `Node.advertise` throws: `inUse` also when this application offers the type already; `ended`;
  ///   `daemonEnded`.
  public func gather(info: [String: String] = [:]) async throws(CausewayError) {
    try await connection.ask(.gather(session: number))
    let service = try await node.advertise(type, info: info)
    defer { service.close() }
    if let end = await inside.ended.value(), let error = end { throw error }
  }

  /// Ends a member's membership for all, and tells it why. For who founded the session that the member was admitted to.
  ///
  /// - Parameters:
  ///   - member: told by all as `Member.State.ejected`.
  ///   - explanation: at most 63 bytes of UTF-8 without control characters.
  /// - Throws: `notAllowed` when another one founded the session; `outOfReach` when it is no member; `invalid`;
  ///   `ended`.
  public func eject(_ member: Address, _ explanation: String = "") async throws(CausewayError) {
    try Syntax.name(explanation, "an explanation", Limits.nameBytesMax)
    try await connection.ask(.eject(session: number, member, text: explanation))
  }

  /// Answers a `SessionEvent.decisionWanted` of a session that was opened with `decides`. Before that this application
  /// and the member do not meet; one that was not accepted is `Member.State.rejected` here alone.
  ///
  /// - Throws: `ended` when the session has ended, or the member is gone.
  public func decide(_ member: Address, isAccepted: Bool) async throws(CausewayError) {
    try await connection.ask(.decide(session: number, member, isAccepted: isAccepted))
  }
}
