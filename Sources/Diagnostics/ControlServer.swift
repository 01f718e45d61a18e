import CSystem
import Journal
import Primitives
import Reactor

/// The control socket's interface to the node. All calls come from the reactor's thread.
public protocol ControlDelegate: AnyObject {
  func controlStatus() -> StatusSnapshot
  /// The node's own id and display name.
  func controlIdentity() -> (id: NodeID, name: String)
  /// Every peer that is reachable now.
  func controlPeers() -> [PeerStatus]
  /// Sends a message for a client. After `.taken` the node calls `ControlServer.completed` once with `token`.
  func controlSend(_ message: ControlMessage, token: UInt64) -> ControlAnswer
  /// Carries out a trust operation. If it is answered as done, it is in force.
  func controlTrust(_ operation: TrustOperation, _ id: NodeID, name: String) -> (isDone: Bool, text: String)
  /// Whether the changes of `controlTrust` are on disk; if not, the answer waits for `ControlServer.stateSettled`.
  var controlIsSettled: Bool { get }
  /// A client has room again: offer the messages for which `deliver` returned `.busy`.
  func controlHasRoom()
}

/// The result of `controlSend`.
public enum ControlAnswer {
  case taken
  /// The node has no room: the server holds the message, reads nothing more from this client and tries again at
  /// `resume`.
  case later
  /// The send ended at once.
  case ended(SendOutcome)
}

/// The result of `deliver`.
public enum ControlDelivery {
  case taken
  /// No client that wants it reads: leave it in the channel and offer it again at `controlHasRoom`.
  case busy
  /// No client wants this kind.
  case nobody
}

/// Listens on the control socket and serves its clients, by `ControlProtocol`.
///
/// The server and its delegate retain each other until `close`.
public final class ControlServer: EventSource {
  let loop: EventLoop
  let journal: Journal
  private(set) var delegate: (any ControlDelegate)?
  private let path: String
  private var descriptor: CInt
  /// The socket's inode: another file may appear at the path.
  private var place: stat
  private var registration: Registration!
  private var acceptPause: Timer?
  private var roomCall: Timer?
  private var clients: [ControlConnection] = []
  private var serial: UInt32 = 0
  /// Buffer for one packet, with one byte more to detect longer ones.
  var buffer = [UInt8](repeating: 0, count: ControlProtocol.packetBytesMax + 1)

  /// Listens at `path`, whose directory must exist. Replaces the socket of a daemon that died. Errors: another daemon
  /// answers there, no permission, path longer than 107 bytes.
  public init(
    _ loop: EventLoop, path: String, journal: Journal, delegate: any ControlDelegate
  ) throws(DiagnosticsError) {
    self.loop = loop
    self.path = path
    self.journal = journal
    self.delegate = delegate
    (descriptor, place) = try listenAt(path)
    do throws(SystemError) {
      registration = try loop.add(descriptor, .read, .diagnostics, self)
    } catch {
      CSystem.close(descriptor)
      throw DiagnosticsError("\(path): \(error.text)")
    }
    acceptPause = Timer(loop) { [self] in loop.modify(registration, .read) }
    roomCall = Timer(loop) { [self] in self.delegate?.controlHasRoom() }
  }

  /// Checks whether the socket exists, and creates it again if it was removed. True when it was created; attached
  /// clients stay. Errors: those of `init`; the next call tries again.
  public func restore() throws(DiagnosticsError) -> Bool {
    var found = stat()
    if stat(path, &found) == 0 && found.st_ino == place.st_ino && found.st_dev == place.st_dev { return false }
    let (fresh, freshPlace) = try listenAt(path)
    do throws(SystemError) {
      let registered = try loop.add(fresh, .read, .diagnostics, self)
      loop.remove(registration)
      CSystem.close(descriptor)
      (descriptor, place, registration) = (fresh, freshPlace, registered)
    } catch {
      CSystem.close(fresh)
      throw DiagnosticsError("\(path): \(error.text)")
    }
    return true
  }

  /// Closes every client and removes the socket.
  public func close() {
    for client in clients { client.close(.shutdown) }
    acceptPause?.cancel()
    acceptPause = nil
    roomCall?.cancel()
    roomCall = nil
    loop.remove(registration)
    CSystem.close(descriptor)
    unlink(path)
    delegate = nil
  }

  /// Tells attached clients that a peer is present or has changed.
  public func peerPresent(_ peer: PeerStatus) { tellAttached(.peerPresent(peer)) }

  /// Tells attached clients that a peer is gone.
  public func peerLost(_ id: NodeID) { tellAttached(.peerLost(id)) }

  /// Whether `deliver` would not return `.busy` for this kind now: no client wants it, or one that does reads.
  public func canDeliver(kind: UInt8) -> Bool {
    !isWanted(kind: kind) || clients.contains { $0.wants(kind) && !$0.isBusy }
  }

  /// Closes the client with the longest queue when all queues together exceed the limit.
  func boundQueues() {
    if clients.reduce(0, { $0 + $1.queuedBytes }) <= ControlProtocol.queuedBytesOfAll { return }
    clients.max { $0.queuedBytes < $1.queuedBytes }?.close(.overflow)
  }

  /// Whether a client wants messages of this kind.
  public func isWanted(kind: UInt8) -> Bool { clients.contains { $0.wants(kind) } }

  /// Passes a message to every client that wants its kind, or to none. Clients that do not read have queues of their
  /// own.
  public func deliver(_ message: ControlMessage) -> ControlDelivery {
    guard clients.contains(where: { $0.wants(message.kind) }) else { return .nobody }
    guard canDeliver(kind: message.kind) else { return .busy }
    let packet = ControlEvent.message(message).encoded()
    for client in clients where client.wants(message.kind) { client.send(packet) }
    return .taken
  }

  /// The result of a send that was taken. Ignored when its client is gone.
  public func completed(token: UInt64, _ outcome: SendOutcome) {
    let serial = UInt32(truncatingIfNeeded: token >> 32)
    guard let client = clients.first(where: { $0.serial == serial }) else { return }
    client.completed(request: UInt32(truncatingIfNeeded: token), outcome)
  }

  /// The changes of `controlTrust` are on disk, or could not be written for this reason.
  public func stateSettled(failure: String?) {
    for client in clients { client.answerTrust(failure: failure) }
  }

  /// The node has room again: offers it the held messages of clients.
  public func resume() {
    for client in clients { client.resume() }
  }

  public func ready(_ events: UInt32) {
    let accepted = accept4(descriptor, __SOCKADDR_ARG(), nil, CInt(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
    if accepted < 0 {
      let error = csystem_errno()
      if error == EAGAIN || error == EINTR || error == ECONNABORTED { return }
      // No descriptor is free, and the listener stays readable: try again in a second instead of spinning.
      journal.record(
        .warning, .acceptFailed, at: loop.now, UInt64(error), UInt64(clients.count), UInt64(ControlProtocol.clientsMax))
      loop.modify(registration, [])
      acceptPause?.set(after: .seconds(1))
      return
    }
    serve(accepted)
  }

  private func serve(_ accepted: CInt) {
    let user = ControlUser(accepted)
    let places = ControlProtocol.clientsMax + (user.isOperator ? ControlProtocol.reservedMax : 0)
    guard clients.count < places else {
      refuse(accepted, "\(places) clients are attached; close one of them")
      return
    }
    serial &+= 1
    do throws(SystemError) {
      clients.append(try ControlConnection(self, accepted, user, serial: serial))
    } catch {
      refuse(accepted, error.text)
    }
  }

  private func refuse(_ accepted: CInt, _ reason: String) {
    let packet = ControlEvent.closing(reason).encoded()
    _ = packet.withUnsafeBytes { CSystem.send(accepted, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
    CSystem.close(accepted)
    journal.record(.warning, .controlRefused, at: loop.now, UInt64(ControlClosing.full.rawValue))
  }

  private func tellAttached(_ event: ControlEvent) {
    let packet = event.encoded()
    for client in clients where client.isAttached { client.send(packet) }
  }

  func closed(_ client: ControlConnection) {
    clients.removeAll { $0 === client }
    roomAppeared()
  }

  /// Calls the delegate later, because it may be calling `deliver` right now.
  func roomAppeared() { roomCall?.set(.zero) }
}

/// The user at the other end of a connection, as the kernel reports it (unix(7), SO_PEERCRED).
struct ControlUser {
  let processID: UInt64
  let userID: uid_t
  /// Whether it may carry out trust operations.
  var isOperator: Bool { userID == 0 || userID == geteuid() }

  init(_ descriptor: CInt) {
    var credentials = ucred()
    var size = socklen_t(MemoryLayout<ucred>.size)
    let isKnown = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0
    processID = isKnown ? UInt64(truncatingIfNeeded: credentials.pid) : 0
    userID = isKnown ? credentials.uid : .max
  }
}

/// Creates a listening socket to which nobody can connect before its mode is set; returns also its inode.
private func listenAt(_ path: String) throws(DiagnosticsError) -> (CInt, stat) {
  let descriptor = socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
  if descriptor < 0 { throw .system(path) }
  var result = withControlAddress(path) { bind(descriptor, $0, $1) }
  if result != 0 && csystem_errno() == EADDRINUSE {
    let probe = socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let isAlive = withControlAddress(path) { connect(probe, $0, $1) } == 0
    close(probe)
    if isAlive {
      close(descriptor)
      throw DiagnosticsError(
        "\(path): another causeway answers there; stop it, or set another [node] runtime-directory")
    }
    unlink(path)
    result = withControlAddress(path) { bind(descriptor, $0, $1) }
  }
  var place = stat()
  if result != 0 || chmod(path, 0o660) != 0 || listen(descriptor, CInt(ControlProtocol.clientsMax)) != 0
    || stat(path, &place) != 0
  {
    let error = DiagnosticsError.system(path)
    close(descriptor)
    throw error
  }
  return (descriptor, place)
}

/// Calls `body` with the unix address of `path`; -1 with ENAMETOOLONG when it does not fit.
func withControlAddress(_ path: String, _ body: (__CONST_SOCKADDR_ARG, socklen_t) -> CInt) -> CInt {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  let utf8 = Array(path.utf8)
  let room = MemoryLayout.size(ofValue: address.sun_path) - 1
  if utf8.count > room {
    csystem_set_errno(ENAMETOOLONG)
    return -1
  }
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: utf8) }
  return withUnsafePointer(to: &address) { pointer in
    body(__CONST_SOCKADDR_ARG(__sockaddr_un__: pointer), socklen_t(MemoryLayout<sockaddr_un>.size))
  }
}
