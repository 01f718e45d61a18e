import CSystem
import Frame
import Journal
import Log
import Primitives
import Reactor
import Status
import Text

/// The control socket's interface to the node. All calls are on the reactor's thread.
public protocol ControlDelegate: AnyObject {
  func controlStatus() -> StatusSnapshot
  /// The node's own id and display name.
  func controlIdentity() -> (id: NodeID, name: String)
  /// All peers that are reachable now.
  func controlPeers() -> [PeerStatus]
  /// Probes a node, to check that it is reachable. Returns nil if the probe was sent; `ControlServer.completed` is
  /// called once with `token` when the probe ends. Returns the outcome at once if no probe can be sent.
  func controlProbe(_ node: NodeID, token: UInt64) -> ProbeOutcome?
  /// The links of the current route to a node, nearest first.
  func controlWay(to node: NodeID) -> [ControlHop]
  /// The connected applications.
  func controlApplications() -> [ApplicationStatus]
  /// Explains why two nodes can or cannot communicate, as JSON.
  func controlExplain(_ from: NodeID, _ to: NodeID) -> [UInt8]
  /// The data with which a phone joins the node's Wi-Fi group. Throws if there is no group.
  func controlInvitation() throws(AccessError) -> JoinInvitation
  /// Performs a trust operation. If `isDone` is true, the change has taken effect, but may not be on disk yet. `text`
  /// is the answer to the client.
  func controlTrust(_ operation: TrustOperation, _ id: NodeID, name: String) -> (isDone: Bool, text: String)
  /// Reloads the configuration. If `isDone` is false, nothing has changed. `text` is the answer to the client.
  func controlReload() -> (isDone: Bool, text: String)
  /// Passes each frame of every link to `tap` from now on. Nil stops the capture.
  func controlTap(_ tap: (any FrameTap)?)
  /// Whether the changes made by `controlTrust` are on disk. If not, the server holds the answer back until
  /// `ControlServer.stateSettled` is called.
  var controlIsSettled: Bool { get }
}

/// Listens on the control socket and serves its clients with `ControlProtocol`.
///
/// The server and its delegate retain each other until `close`.
public final class ControlServer: EventSource, FrameTap {
  let loop: EventLoop
  let journal: Journal
  private(set) var delegate: (any ControlDelegate)?
  private let path: String
  private var listener: UnixListener
  private var registration: Registration!
  private var acceptPause: Timer?
  private var clients: [ControlConnection] = []
  /// The clients that capture frames.
  private var capturing: [ControlConnection] = []
  private var serial: UInt32 = 0
  /// The users of whom a request was read in the pass of the event loop that began at `askedAt`; see `mayAsk`.
  private var asked: [uid_t] = []
  private var askedAt = Instant.zero
  /// A buffer for one request, with one more byte to detect requests that are too long.
  var buffer = [UInt8](repeating: 0, count: ControlProtocol.requestBytesMax + 1)

  /// Listens at `path`. Throws the errors of `UnixListener` and epoll_ctl.
  public init(
    _ loop: EventLoop, path: String, journal: Journal, delegate: any ControlDelegate
  ) throws(AccessError) {
    self.loop = loop
    self.path = path
    self.journal = journal
    self.delegate = delegate
    listener = try UnixListener(path, type: SOCK_SEQPACKET, backlog: ControlProtocol.clientsMax)
    do throws(SystemError) {
      registration = try loop.add(listener.descriptor, .read, .diagnostics, self)
    } catch {
      CSystem.close(listener.descriptor)
      throw AccessError("\(path): \(error.text)")
    }
    acceptPause = Timer(loop) { [self] in loop.modify(registration, .read) }
  }

  /// Creates the socket again if its file was removed. Returns whether the socket was created. Connected clients stay
  /// connected. Throws the errors of `init`; the next call tries again.
  public func restore() throws(AccessError) -> Bool {
    if listener.isThere { return false }
    let fresh = try UnixListener(path, type: SOCK_SEQPACKET, backlog: ControlProtocol.clientsMax)
    do throws(SystemError) {
      let registered = try loop.add(fresh.descriptor, .read, .diagnostics, self)
      loop.remove(registration)
      CSystem.close(listener.descriptor)
      (listener, registration) = (fresh, registered)
    } catch {
      CSystem.close(fresh.descriptor)
      throw AccessError("\(path): \(error.text)")
    }
    return true
  }

  /// Closes all clients and removes the socket.
  public func close() {
    for client in clients { client.close(.shutdown) }
    acceptPause?.cancel()
    acceptPause = nil
    loop.remove(registration)
    listener.remove()
    CSystem.close(listener.descriptor)
    delegate = nil
  }

  /// Notifies the watching clients that a peer is present or has changed.
  public func peerPresent(_ peer: PeerStatus) { emit(.peerPresent(peer)) }

  /// Notifies the watching clients that a peer is gone.
  public func peerLost(_ id: NodeID) { emit(.peerLost(id)) }

  /// Closes one client if the queues of all clients together exceed `queuedBytesOfAll`. The client is the one with the
  /// longest queue among those of the user with the most queued bytes. An operator's client is closed only if no other
  /// user has queued bytes.
  func boundQueues() {
    if clients.reduce(0, { $0 + $1.queuedBytes }) <= ControlProtocol.queuedBytesOfAll { return }
    func isBefore(_ one: ControlConnection, _ other: ControlConnection) -> Bool {
      if one.user.isOperator != other.user.isOperator { return one.user.isOperator }
      let (first, second) = (queuedBytes(of: one.user), queuedBytes(of: other.user))
      return first != second ? first < second : one.queuedBytes < other.queuedBytes
    }
    clients.filter { $0.queuedBytes > 0 }.max(by: isBefore)?.close(.overflow)
  }

  private func queuedBytes(of user: UnixUser) -> Int {
    clients.reduce(0) { $0 + ($1.user.userID == user.userID ? $1.queuedBytes : 0) }
  }

  // MARK: Limits per user

  /// Whether a user may have one more unfinished probe.
  func mayProbe(_ user: UnixUser) -> Bool {
    let (all, ofUser) = sum(of: user) { $0.outstanding }
    return ControlProtocol.outstanding.mayTake(1, held: ofUser, taken: all, isFavoured: user.isOperator)
  }

  /// Whether a request of a user is read in this pass of the event loop. An answer in JSON or a list of all peers can
  /// take milliseconds, so a pass reads one request of each user, over all connections of the user. Users who request
  /// continuously thus leave time to others. The operator is exempt.
  func mayAsk(_ user: UnixUser) -> Bool {
    user.isOperator || askedAt != loop.now || !asked.contains(user.userID)
  }

  /// Records that a request of a user was read in this pass of the event loop.
  func noteRequest(_ user: UnixUser) {
    if askedAt != loop.now { asked = [] }
    askedAt = loop.now
    asked.append(user.userID)
  }

  /// The reason why a user may not start a capture, or nil.
  func captureRefusal(_ user: UnixUser) -> String? {
    let rule = ControlProtocol.captures
    return refusal(rule, user, "captures", "end one of these captures first") { $0.isCapturing ? 1 : 0 }
  }

  private func sum(of user: UnixUser, _ count: (ControlConnection) -> Int) -> (all: Int, ofUser: Int) {
    clients.reduce((0, 0)) { sum, client in
      let units = count(client)
      return (sum.0 + units, sum.1 + (client.user.userID == user.userID ? units : 0))
    }
  }

  /// The reason why a user is refused one more unit of a shared resource, or nil if the unit is allowed. The reason
  /// also names the user with the most units.
  private func refusal(
    _ rule: ShareRule, _ user: UnixUser, _ what: StaticString, _ remedy: StaticString,
    _ count: (ControlConnection) -> Int
  ) -> String? {
    let (all, ofUser) = sum(of: user, count)
    if rule.mayTake(1, held: ofUser, taken: all, isFavoured: user.isOperator) { return nil }
    var most = (user: user.userID, units: ofUser)
    for client in clients {
      let units = sum(of: client.user, count).ofUser
      if units > most.units { most = (client.user.userID, units) }
    }
    let other = most.user == user.userID ? "" : ", user \(most.user) has \(most.units)"
    return "\(rule.capacity) \(what) are shared: user \(user.userID) has \(ofUser)\(other); \(remedy)"
  }

  /// Sends the result of a probe to the client that requested the probe. Does nothing if the client is gone.
  public func completed(token: UInt64, _ outcome: ProbeOutcome) {
    let serial = UInt32(truncatingIfNeeded: token >> 32)
    guard let client = clients.first(where: { $0.serial == serial }) else { return }
    client.completed(request: UInt32(truncatingIfNeeded: token), outcome)
  }

  /// Sends the answers that were held back until the changes of `controlTrust` were on disk. `failure`: why the changes
  /// could not be written.
  public func stateSettled(failure: String?) {
    for client in clients { client.answerTrust(failure: failure) }
  }

  public func passed(
    _ passage: FramePassage, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer
  ) {
    let time = wallClockNow()
    for client in capturing { client.add(passage, header, payload, at: time) }
  }

  /// Sends captured frames to the clients. Call it at the end of each pass of the event loop.
  public func sendFrames() {
    for client in capturing { client.sendFrames() }
  }

  /// Handles the start or end of a client's capture. The node passes frames to this server only while a client
  /// captures.
  func capturesChanged() {
    let isFirst = capturing.isEmpty
    capturing = clients.filter { $0.isCapturing }
    if isFirst != capturing.isEmpty { delegate?.controlTap(capturing.isEmpty ? nil : self) }
  }

  public func ready(_ events: UInt32) {
    let accepted = accept4(
      listener.descriptor, __SOCKADDR_ARG(), nil, CInt(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
    if accepted < 0 {
      let error = csystem_errno()
      if error == EAGAIN || error == EINTR || error == ECONNABORTED { return }
      // No descriptor is free, and the listener stays readable. Pause for a second, because the event loop would spin
      // otherwise.
      journal.record(
        .warning, .acceptFailed, at: loop.now, UInt64(error), UInt64(clients.count), UInt64(ControlProtocol.clientsMax))
      loop.modify(registration, [])
      acceptPause?.set(after: .seconds(1))
      return
    }
    serve(accepted)
  }

  private func serve(_ accepted: CInt) {
    let user = UnixUser(accepted)
    if let refusal = refusal(ControlProtocol.clients, user, "clients", "close one of these clients first", { _ in 1 }) {
      refuse(accepted, refusal)
      // The text omits the process id, so that a user's repeated attempts yield the same text, which the journal
      // counts.
      journal.report(.warning, at: loop.now, "control", "user \(user.userID) refused: \(refusal)", cause: user.cause)
      return
    }
    serial &+= 1
    do throws(SystemError) {
      clients.append(try ControlConnection(self, accepted, user, serial: serial))
    } catch {
      refuse(accepted, error.text)
      journal.record(
        .warning, .controlRefused, at: loop.now, UInt64(ControlClosing.full.rawValue), cause: user.cause)
    }
  }

  private func refuse(_ accepted: CInt, _ reason: String) {
    let packet = ControlEvent.closing(reason).encoded()
    _ = packet.withUnsafeBytes { CSystem.send(accepted, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
    CSystem.close(accepted)
  }

  private func emit(_ event: ControlEvent) {
    let packet = event.encoded()
    for client in clients where client.isWatching { client.send(packet) }
  }

  func closed(_ client: ControlConnection) {
    clients.removeAll { $0 === client }
    if client.isCapturing { capturesChanged() }
  }
}
