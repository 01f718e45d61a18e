/// A connection to the daemon of this machine, from which all other objects are created. See docs/local-api.md.
///
/// The connection ends with `close`, or when the application has released the `Node` and all objects that were created
/// from it. The daemon then withdraws the application's services and leaves its sessions.
///
/// If the daemon stops or restarts, each sequence of this connection throws `CausewayError.Reason.daemonEnded`, and
/// `ended()` returns. All services, browses, invitations and sessions of the connection are lost. The results of
/// messages in flight are lost too. Other members see this application as crashed. Call `connect` again, with
/// `patience`, and create the services, browses and sessions again. The applications' addresses stay the same.
public final class Node: Sendable {
  /// The socket path of a daemon with the default configuration.
  public static let socketPath = Platform.socketPath

  /// The id of the local node.
  public let id: NodeID
  /// The display name of the local node, at most 63 bytes.
  public let name: String
  let lease: Lease
  /// Limits the number of message results that are awaited at once. See docs/local-api.md, “Limits”.
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
  ///   - application: a name that distinguishes the applications of one user; 1 to 63 bytes of UTF-8 without control
  ///     characters. The application's addresses are derived from the application's name.
  ///   - path: the path of the daemon's socket `api.sock`.
  ///   - patience: the time for which to retry while no daemon answers.
  /// - Throws: `noDaemon`; `full` if the user's share of the 64 connections is used up; `unsupported` if the daemon
  ///   does not support the protocol version of this library.
  public static func connect(
    as application: String, at path: String = Node.socketPath, patience: Duration = .zero
  ) async throws(CausewayError) -> Node {
    try Syntax.name(application, "the name of an application", Limits.nameBytesMax, mayBeEmpty: false)
    let end = ContinuousClock.now + patience
    while true {
      do {
        return try await connect(over: try Platform.connect(path), as: application)
      } catch {
        // A daemon that is starting or stopping may close a connection that it has just accepted.
        guard error.reason == .noDaemon || error.reason == .daemonEnded, ContinuousClock.now < end else { throw error }
      }
      do { try await Task.sleep(for: .milliseconds(200)) } catch { throw .cancelled }
    }
  }

  /// Makes a node over a connected socket, and takes ownership of the socket.
  static func connect(over stream: Int32, as application: String) async throws(CausewayError) -> Node {
    let lease = Lease(try Connection(stream))
    return Node(lease, try await lease.connection.hello(application))
  }

  /// Browses for services of a type.
  ///
  /// - Parameter type: a service type (RFC 6335): 1 to 15 characters of a-z, 0-9 and single inner hyphens, with at
  ///   least one letter.
  /// - Throws: `invalid`; `notAllowed` if the configuration reserves the type for a group that the user is not in;
  ///   `full` beyond 8 browses of a connection.
  public func browse(_ type: String) async throws(CausewayError) -> Browser {
    try Syntax.serviceType(type)
    let core = BrowserCore(), number = lease.connection.number()
    try await lease.connection.make(.browse(type: type), number, for: core, undo: .close(number))
    return Browser(lease, number, core)
  }

  /// Advertises a service, so that other applications can find and invite this application.
  ///
  /// - Parameters:
  ///   - type: as for `browse`.
  ///   - info: public discovery info. Each `key=value` has at most 255 bytes of UTF-8; a key is printable ASCII without
  ///     `=`. At most about 400 bytes in total are recommended.
  /// - Throws: `invalid`; `notAllowed`; `inUse` if another application of the same user and name already uses the type;
  ///   `full` beyond 8 services of a connection, or beyond the user's share of all services.
  public func advertise(_ type: String, info: [String: String] = [:]) async throws(CausewayError) -> Advertiser {
    try Syntax.serviceType(type)
    let pairs = try Syntax.pairs(info), number = lease.connection.number(), core = AdvertiserCore(number)
    let answer = try await lease.connection.make(
      .advertise(type: type, pairs: pairs), number, for: core, undo: .close(number))
    return Advertiser(lease, number, type, core, try address(answer))
  }

  /// Opens a session whose only member is this application. Other applications join by an invitation that this
  /// application sends or accepts.
  ///
  /// - Parameters:
  ///   - type: the service type, as for `browse`. The session does not advertise the type.
  ///   - rules: the rules of the session. The rules become final when another application joins. If the first member
  ///     joins by an invitation that this application accepts, the session adopts the inviter's rules instead.
  ///   - decides: whether this application decides on each member; see `SessionEvent.decisionWanted`.
  /// - Throws: `invalid`; `notAllowed`; `inUse`; `full` beyond 16 sessions of a connection, or beyond the user's share
  ///   of all sessions.
  public func openSession(
    _ type: String, rules: Rules = Rules(), decides: Bool = false
  ) async throws(CausewayError) -> Session {
    try Syntax.serviceType(type)
    guard (2...64).contains(rules.membersMax) else {
      throw CausewayError(.invalid, "the limit of members of a session is 2 to 64")
    }
    let number = lease.connection.number(), core = SessionCore(number)
    let answer = try await lease.connection.make(
      .open(type: type, rules, decides: decides), number, for: core, undo: .leave(session: number, farewell: ""))
    return Session(self, number, type, core, try address(answer))
  }

  /// The address that the daemon assigned to a service or session. See docs/local-api.md, event 128.
  private func address(_ answer: Answer) throws(CausewayError) -> Address {
    guard let endpoint = answer.endpoint else {
      let error = CausewayError.broken("the endpoint of this application is missing")
      lease.connection.end(error)
      throw error
    }
    return Address(node: id, endpoint: endpoint)
  }

  /// Waits until the connection has ended. Returns the reason, or nil if the task was cancelled first.
  public func ended() async -> CausewayError? { await lease.connection.ended.value() }

  /// Ends the connection at once. The other members of this application's sessions see this application as crashed. To
  /// leave with a farewell, call `Session.leave` first.
  public func close() { lease.connection.end(.closed) }
}
