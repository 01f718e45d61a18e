/// Admission of members to a session and removal of members. See docs/local-api.md, “Requests”.
extension Session {
  /// Joins all applications in reach that call `gather` for the same service type (auto-join). No application and no
  /// user is asked.
  ///
  /// The call advertises the session's type. The daemon then invites every application that offers the type, and
  /// accepts every invitation to this application's service, until the session ends. If two applications gather each
  /// other, only one of the two invites. An application that offers the type but does not gather receives an
  /// invitation, as from `invite`. An application that declined is not invited again until its service was lost and
  /// found again.
  ///
  /// The call returns when the session has ended. Cancelling the task of the call withdraws the service. Applications
  /// that were found before can still join, and applications that are found later are not invited. To decide on each
  /// member, open the session with `decides: true`.
  ///
  /// - Parameter info: discovery info, as for `Node.advertise`.
  /// - Throws: the errors of `Node.advertise`; `inUse` also if this application already offers the type; `ended`;
  ///   `daemonEnded`.
  public func gather(info: [String: String] = [:]) async throws(CausewayError) {
    try await connection.ask(.gather(session: number))
    let service = try await node.advertise(type, info: info)
    defer { service.close() }
    if let end = await core.ended.value(), let error = end { throw error }
  }

  /// Removes a member from the session, for all members. Only the application that founded the session is allowed to do
  /// this. In merged sessions, each founder can remove the members that were admitted to its own session.
  ///
  /// - Parameters:
  ///   - member: the member to remove. All members then see the state `Member.State.ejected`.
  ///   - explanation: sent to all members; at most 63 bytes of UTF-8 without control characters.
  /// - Throws: `notAllowed` if another application founded the session; `outOfReach` if the address is not a member;
  ///   `invalid`; `ended`.
  public func eject(_ member: Address, _ explanation: String = "") async throws(CausewayError) {
    try Syntax.name(explanation, "an explanation", Limits.nameBytesMax)
    try await connection.ask(.eject(session: number, member, text: explanation))
  }

  /// Answers a `SessionEvent.decisionWanted` of a session that was opened with `decides: true`.
  ///
  /// This application and the member do not connect before the decision. A rejected member has the state
  /// `Member.State.rejected` for this application only; other members are not affected.
  ///
  /// - Throws: `ended` if the session has ended or the member has left.
  public func decide(_ member: Address, isAccepted: Bool) async throws(CausewayError) {
    try await connection.ask(.decide(session: number, member, isAccepted: isAccepted))
  }
}
