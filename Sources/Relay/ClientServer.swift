import CSystem
import Configuration
import ControlSocket
import Journal
import LocalAPI
import Log
import Primitives
import Reactor
import Text

final class ClientServer {
  /// The size of the shortest packet in bytes, without its length field: one byte of type and four of request number.
  static let headBytes = 5

  let loop: EventLoop
  let clients: ClientRecords
  private let journal: Journal
  private let path: String
  private let groups: [UInt32]
  private let access: Access
  private var listener: UnixListener
  private var acceptor: Acceptor?
  private var timer: Timer?
  private var resumeCall: Timer?
  /// The time of the next call of `resume`.
  private var resumeAt = Instant.never
  private var connections: [LocalConnection] = []
  private var longPackets = LongPacketSlots()
  /// A counter that changes which connection is first to resume its postponed requests.
  private var resumeTurn = 0
  /// The time of the pass of the event loop to which the connections' `work` belongs.
  private var workAt = Instant.zero

  /// The users that are allowed to connect, in addition to root and the daemon's own user.
  enum Access {
    /// Members of the group that owns the socket's file.
    case fileGroup
    /// Members of the named group, to which the daemon itself need not belong. If the group does not exist (nil), only
    /// root and the daemon's own user can connect.
    case members(of: String, gid_t?)
  }

  /// Listens at `path`. Errors: those of `UnixListener` and epoll_ctl.
  init(
    _ loop: EventLoop, path: String, journal: Journal, _ clients: ClientRecords, access: Access, groups: [UInt32]
  ) throws(AccessError) {
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

  /// Creates the socket again if its file was removed. Returns whether the socket was created. Connected clients stay
  /// connected.
  func restore() throws(AccessError) -> Bool {
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

  /// Sends new events to each client. Returns whether anything was sent. After sending, the node may have new outputs.
  func sendEventsToClients() -> Bool {
    var hasTold = false
    for connection in connections where clients.hasNews(connection.clientIndex) && !connection.isBlocked {
      if connection.sendEvents() { hasTold = true }
    }
    timer?.set(min(clients.nextDeadline, longPackets.nextDeadline, packetDeadline))
    return hasTold
  }

  /// The id of each connected client's process, with the client's index in `clients`.
  var clientProcesses: [(client: Int, process: UInt64)] { connections.map { ($0.clientIndex, $0.process) } }

  // MARK: Clients

  private static func listener(_ path: String, _ access: Access) throws(AccessError) -> UnixListener {
    let mode: mode_t = if case .members = access { 0o666 } else { 0o660 }
    return try UnixListener(path, type: SOCK_STREAM, backlog: LocalLimits.clientsMax, mode: mode)
  }

  private func listen() throws(AccessError) {
    do throws(SystemError) {
      acceptor = try Acceptor(loop, listener.descriptor) { [self] in
        accept($0)
      } shortage: { [self] error in
        if let error { journal.report(.warning, at: loop.now, "api", "cannot accept clients: \(error.text)") }
      }
    } catch {
      throw AccessError("\(path): \(error.text)")
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
        "user \(user.userID) refused: not in the group \(name)", cause: user.cause)
      turnAway(descriptor, .notAllowed, "only root and members of the group “\(name)” may connect")
      return .taken
    }
    let mine = user.groups { groups.contains($0) }
    guard
      let index = clients.attach(
        user: user.userID, isOperator: user.isOperator, groups: mine, now: loop.now)
    else {
      let text = String(decoding: clients.connectionRefusal(user.userID), as: UTF8.self)
      turnAway(descriptor, .full, text)
      // The line contains no process id, so that repeated attempts of one user are equal, and the journal counts them.
      journal.report(.warning, at: loop.now, "api", "user \(user.userID) refused: \(text)", cause: user.cause)
      return .taken
    }
    do throws(SystemError) {
      connections.append(try LocalConnection(self, descriptor, clientIndex: index, user))
    } catch {
      clients.detach(index, now: loop.now)
      CSystem.close(descriptor)
      return .failed(error)
    }
    journal.report(
      .debug, at: loop.now, "api", "client \(index): process \(user.processID), user \(user.userID)")
    return .taken
  }

  private func turnAway(_ descriptor: CInt, _ outcome: LocalOutcome, _ text: String) {
    let packet = LocalEvent.done(request: 0, outcome, text: Array(text.utf8)).packet
    _ = packet.withUnsafeBytes { CSystem.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
    CSystem.close(descriptor)
  }

  /// Removes a client whose connection has ended.
  func ended(_ connection: LocalConnection) {
    guard let index = connections.firstIndex(where: { $0 === connection }) else { return }
    connections.remove(at: index)
    connection.close()
    clients.detach(connection.clientIndex, now: loop.now)
    journal.report(.debug, at: loop.now, "api", "client \(connection.clientIndex) disconnected")
    longPackets.leave(connection.clientIndex)
    giveSlots()
  }

  /// Closes a client that violates the protocol.
  func refuse(_ connection: LocalConnection, _ text: String) {
    journal.report(
      .warning, at: loop.now, "api", "a client of user \(connection.user) closed: \(text)",
      cause: connection.isOperator ? .box : .user(connection.user))
    end(connection, text)
  }

  private func end(_ connection: LocalConnection, _ text: String) {
    connection.sendLast(.done(request: 0, .invalid, text: Array(text.utf8)))
    ended(connection)
  }

  /// Whether the daemon may buffer up to `LocalLimits.largeBytesMax` for a client. Only `LocalLimits.largeMax` clients
  /// may use so much at once.
  func mayHoldMore(_ connection: LocalConnection) -> Bool {
    var all = 0, ofUser = 0
    for other in connections where other !== connection && other.holdsMore {
      all += 1
      if other.user == connection.user { ofUser += 1 }
    }
    return LocalLimits.large.mayTake(1, held: ofUser, taken: all, isFavoured: connection.isOperator)
  }

  // MARK: Work per pass of the event loop

  /// Schedules `resume` of all connections for `time`, by default for the next pass of the event loop.
  func resumeLater(at time: Instant = .zero) {
    resumeAt = min(resumeAt, time)
    resumeCall?.set(resumeAt)
  }

  /// The part of `LocalLimits.workPerCall` that remains for a connection in this pass of the event loop. All
  /// connections of a user share one allowance; each connection of the operator has its own.
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
    // A copy, because connections may end during the loop.
    let waiting = connections
    let turns = waiting.indices.map { step in
      let connection = waiting[(resumeTurn + step) % waiting.count]
      return (connection: connection, step: step, order: clients.turnOrder(connection.clientIndex))
    }
    // Timers fire before sockets are read, so postponed requests are carried out before new requests.
    for turn in turns.sorted(by: { ($0.order, $0.step) < ($1.order, $1.step) }) { turn.connection.resume() }
  }

  // MARK: Stalled clients

  /// Queues a client that has begun a long packet, until a long-packet buffer is free for it.
  func askForSlot(_ connection: LocalConnection) {
    longPackets.ask(
      connection.clientIndex, user: connection.user, isOperator: connection.isOperator, now: loop.now)
    giveSlots()
  }

  /// Frees the long-packet buffer of a client whose long packet is complete.
  func giveBackSlot(_ connection: LocalConnection) {
    longPackets.leave(connection.clientIndex)
    giveSlots()
  }

  private func giveSlots() {
    while let index = longPackets.next(now: loop.now) {
      connections.first { $0.clientIndex == index }?.mayBeLong()
    }
  }

  /// The earliest packet deadline of all clients.
  private var packetDeadline: Instant { connections.reduce(.never) { min($0, $1.packetDeadline) } }

  private func timeUp() {
    clients.handleTimeouts(now: loop.now)
    while let index = clients.nextOverdue(now: loop.now) {
      guard let connection = connections.first(where: { $0.clientIndex == index }) else { return }
      // A request that arrived in time may still be unread, for example if this process was suspended.
      connection.catchUp()
      if clients.isOverdue(index, now: loop.now) { refuse(connection, "no hello within 5 s; send it first") }
    }
    if let index = longPackets.overdue(now: loop.now),
      let connection = connections.first(where: { $0.clientIndex == index })
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
