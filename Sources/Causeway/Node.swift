/// A connection to the daemon of this box: the beginning of everything. It ends when nothing that was made with it is
/// held any more, or with `close`; what it held open is then withdrawn and left. docs/local-api.md.
///
/// When the daemon stops or is restarted, each sequence of this connection throws an error with
/// `CausewayError.Reason.daemonEnded`, and `ended()` returns. Lost are services, browses, invitations and sessions,
/// with the messages whose result was not told. Members see this application as crashed. `connect` again, with
/// `patience`: the addresses are the same as before, and what was lost is made anew.
public final class Node: Sendable {
  /// The socket of a daemon with its default configuration.
  public static let socketPath = Platform.socketPath

  /// This box.
  public let id: NodeID
  /// Its display name, at most 63 bytes.
  public let name: String
  let lease: Lease
  /// Results of messages that may be awaited at once. docs/local-api.md, “Limits”.
  let results: Gate

  private init(_ lease: Lease, _ welcome: Welcome) {
    self.lease = lease
    id = welcome.node
    name = welcome.name
    results = Gate(min(max(welcome.resultsMax, 1), Limits.resultsMax))
  }

  /// Connects to the daemon.
  ///
  /// - Parameters:
  ///   - application: tells the applications of one user apart, and is part of their addresses. 1 to 63 bytes of UTF-8.
  ///   - path: the daemon's `api.sock`.
  ///   - patience: so long it is tried again while there is no daemon.
  /// - Throws: `noDaemon`; `full` when all 64 places are taken; `unsupported` when the daemon speaks no version of
  ///   this library's.
  public static func connect(
    as application: String, at path: String = Node.socketPath, patience: Duration = .zero
  ) async throws(CausewayError) -> Node {
    try Syntax.name(application, "the name of an application", Limits.nameBytesMax, mayBeEmpty: false)
    let end = ContinuousClock.now + patience
    while true {
      do {
        return try await connect(over: try Platform.connect(path), as: application)
      } catch {
        // A daemon that starts or ends may close a connection that it has just taken.
        guard error.reason == .noDaemon || error.reason == .daemonEnded, ContinuousClock.now < end else { throw error }
      }
      do { try await Task.sleep(for: .milliseconds(200)) } catch { throw .cancelled }
    }
  }

  /// Takes over a connected socket.
  static func connect(over stream: Int32, as application: String) async throws(CausewayError) -> Node {
    let lease = Lease(try Connection(stream))
    return Node(lease, try await lease.connection.hello(application))
  }

  /// Finds services of a type.
  ///
  /// - Parameter type: 1 to 15 of a-z, 0-9 and single inner hyphens, with a letter (RFC 6335).
  /// - Throws: `invalid`; `notAllowed` when the box grants the type to a group that the user is not in; `full` beyond
  ///   8.
  public func browse(_ type: String) async throws(CausewayError) -> Browser {
    try Syntax.serviceType(type)
    let inside = BrowserInside(), number = lease.connection.number()
    try await lease.connection.make(.browse(type: type), number, for: inside, undo: .close(number))
    return Browser(lease, number, inside)
  }

  /// Offers a service of a type, so that others find and invite this application.
  ///
  /// - Parameters:
  ///   - type: as for `browse`.
  ///   - info: discovery info, public: each `key=value` at most 255 bytes of UTF-8, the key printable ASCII without
  ///     `=`; about 400 bytes in all are advised.
  /// - Throws: `invalid`; `notAllowed`; `inUse` when another application of this user and name offers the type; `full`
  ///   beyond 8.
  public func advertise(_ type: String, info: [String: String] = [:]) async throws(CausewayError) -> Advertiser {
    try Syntax.serviceType(type)
    let pairs = try Syntax.pairs(info), number = lease.connection.number(), inside = AdvertiserInside(number)
    let answer = try await lease.connection.make(
      .advertise(type: type, pairs: pairs), number, for: inside, undo: .close(number))
    return Advertiser(lease, number, type, inside, try address(answer))
  }

  /// Opens a session, with this application as its only member. Others come by invitations, in either direction.
  ///
  /// - Parameters:
  ///   - type: the service type, as for `browse`. It need not be advertised.
  ///   - rules: fixed from now on; a session that nobody else ever joined takes those of the first invitation that is
  ///     accepted into it.
  ///   - decides: this application decides on each member: `SessionEvent.decisionWanted`.
  /// - Throws: `invalid`; `notAllowed`; `inUse`; `full` beyond 16 sessions.
  public func openSession(
    _ type: String, rules: Rules = Rules(), decides: Bool = false
  ) async throws(CausewayError) -> Session {
    try Syntax.serviceType(type)
    guard (2...64).contains(rules.membersMax) else {
      throw CausewayError(.invalid, "a session has at most 2 to 64 members")
    }
    let number = lease.connection.number(), inside = SessionInside(number)
    let answer = try await lease.connection.make(
      .open(type: type, rules, decides: decides), number, for: inside, undo: .leave(session: number, farewell: ""))
    return Session(self, number, type, inside, try address(answer))
  }

  /// This application's own, as the daemon tells it with what it made. docs/local-api.md, event 128.
  private func address(_ answer: Answer) throws(CausewayError) -> Address {
    guard let endpoint = answer.endpoint else {
      let error = CausewayError.broken("it does not say which endpoint this application has")
      lease.connection.end(error)
      throw error
    }
    return Address(node: id, endpoint: endpoint)
  }

  /// Waits until the connection has ended, and says why. Nil when the task was cancelled before.
  public func ended() async -> CausewayError? { await lease.connection.ended.value() }

  /// Ends the connection at once. Members of its sessions are told that this application crashed: `Session.leave` says
  /// goodbye.
  public func close() { lease.connection.end(.closed) }
}
