import CSystem
import Configuration
import Diagnostics
import Journal
import LocalAPI
import Primitives
import Reactor

/// The socket of the local API (docs/local-api.md) and the connections of its clients.
///
/// The server and its connections retain each other until `close`.
final class LocalServer {
  /// The shortest packet behind its length: type and number.
  static let headBytes = 5

  let loop: EventLoop
  let clients: LocalClients
  private let journal: Journal
  private let path: String
  private let groups: [UInt32]
  private let access: Access
  private var listener: UnixListener
  private var acceptor: Acceptor?
  private var timer: Timer?
  private var resumeCall: Timer?
  /// When `resume` is called.
  private var resumeAt = Instant.never
  private var connections: [LocalConnection] = []
  private var longPackets = LongPacketPlaces()
  /// The connection whose requests are carried out first when those of a user wait for the next wake-up.
  private var resumeTurn = 0
  /// The wake-up that the connections' work is counted in.
  private var workAt = Instant.zero

  /// Who may connect, besides root and the daemon's own user.
  enum Access {
    /// The group of the socket's file.
    case fileGroup
    /// The members of a group that the daemon itself need not be in; nobody while it has no number.
    case members(of: String, gid_t?)
  }

  /// Listens at `path`; errors are those of `UnixListener`, and epoll_ctl's.
  init(
    _ loop: EventLoop, path: String, journal: Journal, _ clients: LocalClients, access: Access, groups: [UInt32]
  ) throws(DiagnosticsError) {
    self.loop = loop
    self.clients = clients
    self.journal = journal
    self.path = path
    self.groups = groups
    self.access = access
    listener = try Self.listener(path, access)
    timer = Timer(loop) { [self] in timeUp() }
    resumeCall = Timer(loop) { [self] in resume() }
    try listen()
  }

  /// Checks whether the socket exists, and creates it again if it was removed. True when it was created; clients stay.
  func restore() throws(DiagnosticsError) -> Bool {
    if acceptor != nil && listener.isThere { return false }
    let fresh = try Self.listener(path, access)
    acceptor?.close()
    acceptor = nil
    listener = fresh
    try listen()
    return true
  }

  /// Closes every client and removes the socket.
  func close() {
    for connection in connections { end(connection, "the daemon stops") }
    listener.remove()
    acceptor?.close()
    acceptor = nil
    timer?.cancel()
    timer = nil
    resumeCall?.cancel()
    resumeCall = nil
  }

  /// Tells each client what is new for it. True when there was anything: the node has outputs then.
  func tellClients() -> Bool {
    var hasTold = false
    for connection in connections where clients.hasNews(connection.place) && !connection.isBlocked {
      if connection.tell() { hasTold = true }
    }
    timer?.set(min(clients.nextDeadline, longPackets.nextDeadline, packetDeadline))
    return hasTold
  }

  /// The process of each client that is connected, by its place in `clients`.
  var clientProcesses: [(place: Int, process: UInt64)] { connections.map { ($0.place, $0.process) } }

  // MARK: Clients

  private static func listener(_ path: String, _ access: Access) throws(DiagnosticsError) -> UnixListener {
    let mode: mode_t = if case .members = access { 0o666 } else { 0o660 }
    return try UnixListener(path, type: SOCK_STREAM, backlog: LocalLimits.clientsMax, mode: mode)
  }

  private func listen() throws(DiagnosticsError) {
    do throws(SystemError) {
      acceptor = try Acceptor(loop, listener.descriptor) { [self] in
        accept($0)
      } shortage: { [self] error in
        if let error { journal.report(.warning, at: loop.now, "api", "no client can connect: \(error.text)") }
      }
    } catch {
      throw DiagnosticsError("\(path): \(error.text)")
    }
  }

  private func accept(_ listener: CInt) -> Acceptor.Outcome {
    let descriptor = accept4(
      listener, __SOCKADDR_ARG(), nil, CInt(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
    if descriptor < 0 { return Acceptor.Outcome(.last) }
    let user = UnixUser(descriptor)
    if case .members(let name, let wanted) = access, !user.isOperator, user.groups(where: { $0 == wanted }).isEmpty {
      journal.report(
        .warning, at: loop.now, "api",
        "user \(user.userID) refused: not in the group \(name)")
      turnAway(descriptor, .notAllowed, "only root and members of the group “\(name)” may connect")
      return .taken
    }
    let mine = user.groups { groups.contains($0) }
    guard
      let place = clients.attach(
        user: user.userID, isOperator: user.isOperator, groups: mine, now: loop.now)
    else {
      let text = String(decoding: clients.connectionRefusal(user.userID), as: UTF8.self)
      turnAway(descriptor, .full, text)
      // Without the process: a user who tries again and again is one line.
      journal.report(.warning, at: loop.now, "api", "user \(user.userID) refused: \(text)")
      return .taken
    }
    do throws(SystemError) {
      connections.append(try LocalConnection(self, descriptor, place: place, user))
    } catch {
      clients.detach(place, now: loop.now)
      CSystem.close(descriptor)
      return .failed(error)
    }
    journal.report(
      .debug, at: loop.now, "api", "client \(place): process \(user.processID), user \(user.userID)")
    return .taken
  }

  private func turnAway(_ descriptor: CInt, _ outcome: LocalOutcome, _ text: String) {
    let packet = LocalEvent.done(request: 0, outcome, text: Array(text.utf8)).packet
    _ = packet.withUnsafeBytes { CSystem.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
    CSystem.close(descriptor)
  }

  /// The client has closed its end.
  func ended(_ connection: LocalConnection) {
    guard let index = connections.firstIndex(where: { $0 === connection }) else { return }
    connections.remove(at: index)
    connection.close()
    clients.detach(connection.place, now: loop.now)
    journal.report(.debug, at: loop.now, "api", "client \(connection.place) is gone")
    longPackets.leave(connection.place)
    givePlaces()
  }

  /// The client does not keep to the protocol.
  func refuse(_ connection: LocalConnection, _ text: String) {
    journal.report(.warning, at: loop.now, "api", "a client of user \(connection.user) closed: \(text)")
    end(connection, text)
  }

  private func end(_ connection: LocalConnection, _ text: String) {
    connection.sendLast(.done(request: 0, .invalid, text: Array(text.utf8)))
    ended(connection)
  }

  /// A client may have as much in hand as few may have at once.
  func mayHoldMore(_ connection: LocalConnection) -> Bool {
    var all = 0, ofUser = 0
    for other in connections where other !== connection && other.holdsMore {
      all += 1
      if other.user == connection.user { ofUser += 1 }
    }
    return LocalLimits.large.mayTake(1, held: ofUser, taken: all, isFavoured: connection.isOperator)
  }

  // MARK: Work of a wake-up

  /// Calls `resume` of each connection in the next wake-up, or at a time.
  func resumeLater(at time: Instant = .zero) {
    resumeAt = min(resumeAt, time)
    resumeCall?.set(resumeAt)
  }

  /// The part of `LocalLimits.workPerCall` that is left in this wake-up for the connections of a user together, or for one of the
  /// operator.
  func workLeft(for connection: LocalConnection) -> Int {
    if workAt != loop.now {
      workAt = loop.now
      for connection in connections { connection.work = 0 }
    }
    if connection.isOperator { return LocalLimits.workPerCall - connection.work }
    return connections.reduce(LocalLimits.workPerCall) { $1.user == connection.user ? $0 - $1.work : $0 }
  }

  private func resume() {
    resumeAt = .never
    resumeTurn += 1
    // A connection may end meanwhile.
    let waiting = connections
    let turns = waiting.indices.map { step in
      let connection = waiting[(resumeTurn + step) % waiting.count]
      return (connection: connection, step: step, order: clients.turnOrder(connection.place))
    }
    // Timers fire before sockets are read: who waits comes before who asks now.
    for turn in turns.sorted(by: { ($0.order, $0.step) < ($1.order, $1.step) }) { turn.connection.resume() }
  }

  // MARK: Clients that do not go on

  /// A client has begun a long packet, and waits for a place.
  func askForPlace(_ connection: LocalConnection) {
    longPackets.ask(
      connection.place, user: connection.user, isOperator: connection.isOperator, now: loop.now)
    givePlaces()
  }

  /// The long packet of a client is complete.
  func giveBackPlace(_ connection: LocalConnection) {
    longPackets.leave(connection.place)
    givePlaces()
  }

  private func givePlaces() {
    while let place = longPackets.next(now: loop.now) {
      connections.first { $0.place == place }?.mayBeLong()
    }
  }

  /// When the first client has taken too long for a packet.
  private var packetDeadline: Instant { connections.reduce(.never) { min($0, $1.packetDeadline) } }

  private func timeUp() {
    clients.handleTimeouts(now: loop.now)
    while let place = clients.nextOverdue(now: loop.now) {
      guard let connection = connections.first(where: { $0.place == place }) else { return }
      // A request that came while this process was not running is in time.
      connection.catchUp()
      if clients.isOverdue(place, now: loop.now) { refuse(connection, "no hello came within 5 s; send it first") }
    }
    if let place = longPackets.overdue(now: loop.now), let connection = connections.first(where: { $0.place == place })
    {
      refuse(connection, "its packet took 10 s, and another client waits for the memory; write packets at once")
    }
    for connection in connections where connection.packetDeadline <= loop.now {
      connection.catchUp()
      if connection.packetDeadline <= loop.now {
        refuse(connection, "it stopped for 60 s in the middle of a packet; write packets at once")
      }
    }
  }
}
