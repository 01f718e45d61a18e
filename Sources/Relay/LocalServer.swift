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
  private var connections: [LocalConnection] = []

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
    resumeCall = Timer(loop) { [self] in for connection in connections { connection.resume() } }
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
    timer?.set(min(clients.nextDeadline, longDeadline))
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
        "process \(user.processID) of user \(user.userID) refused: not in the group \(name)")
      turnAway(descriptor, .notAllowed, "only root and members of the group “\(name)” may connect")
      return .taken
    }
    let mine = user.groups { groups.contains($0) }
    guard let place = clients.attach(user: user.userID, groups: mine) else {
      turnAway(descriptor, .full, "\(LocalLimits.clientsMax) clients are connected")
      journal.report(.warning, at: loop.now, "api", "process \(user.processID) refused: all places are taken")
      return .taken
    }
    do throws(SystemError) {
      connections.append(try LocalConnection(self, descriptor, place: place, process: user.processID))
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
    givePlaces()
  }

  /// The client does not keep to the protocol.
  func refuse(_ connection: LocalConnection, _ text: String) {
    journal.report(.warning, at: loop.now, "api", "client \(connection.place) closed: \(text)")
    end(connection, text)
  }

  private func end(_ connection: LocalConnection, _ text: String) {
    connection.sendLast(.done(request: 0, .invalid, text: Array(text.utf8)))
    ended(connection)
  }

  /// Calls `resume` of each connection in the next wake-up.
  func resumeLater() { resumeCall?.set(.zero) }

  /// A client may have as much in hand as few may have at once.
  var mayHoldMore: Bool { connections.count(where: { $0.holdsMore }) < LocalLimits.largeMax }

  // MARK: Long packets

  /// Gives those a place that wait for one to send a long packet.
  func givePlaces() {
    var taken = connections.count(where: { $0.longSince != nil })
    for connection in connections where connection.isWaiting && taken < LocalLimits.longPacketsMax {
      connection.mayBeLong()
      taken += 1
    }
  }

  /// When the one that stopped longest ago in the middle of a long packet loses its place to one that waits.
  private var longDeadline: Instant {
    guard connections.contains(where: { $0.isWaiting }) else { return .never }
    return connections.reduce(.never) { earliest, connection in
      connection.longSince.map { min(earliest, $0 + LocalLimits.longPacketTime) } ?? earliest
    }
  }

  private func timeUp() {
    clients.handleTimeouts(now: loop.now)
    guard longDeadline <= loop.now else { return }
    for connection in connections {
      guard let since = connection.longSince, since + LocalLimits.longPacketTime <= loop.now else { continue }
      return refuse(connection, "it stopped in the middle of a packet, and another client waits for its memory")
    }
  }
}
