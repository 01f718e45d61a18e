import CSystem
import Capture
import Frame
import Journal
import Primitives
import Reactor
import Status
import Text

/// Why a client's connection was closed. The raw value appears in the journal.
enum ControlClosing: UInt8 {
  case left = 1
  case shutdown = 2
  case syntax = 3
  case stalled = 4
  case overflow = 5
  case full = 6
  case failed = 7
  case silent = 8

  /// The reason that is sent to the client, or nil if the client is gone.
  var text: StaticString? {
    switch self {
    case .left, .failed: nil
    case .shutdown: "the daemon stops"
    case .syntax: "request not understood; do command and daemon have the same version?"
    case .stalled: "the client read nothing for 30 s"
    case .overflow: "the client does not read its events"
    case .full: "too many clients"
    case .silent: "no request within 5 s"
    }
  }
}

/// One client of the control socket.
final class ControlConnection: EventSource {
  /// The maximum number of requests received in one pass of the event loop. `ControlServer.mayAsk` allows only the
  /// operator more than one.
  private static let packetsPerCall = 4

  let serial: UInt32
  /// Whether the client has subscribed to changes of peers.
  private(set) var isWatching = false
  private let descriptor: CInt
  private var server: ControlServer?
  private var registration: Registration!
  private var stall: Timer?
  private var queue: [[UInt8]] = []
  private(set) var queuedBytes = 0
  /// Answers to trust requests. They are held back until the change of trust is on disk.
  private var unsettled: [(isDone: Bool, text: String)] = []
  private(set) var outstanding = 0
  private var interest: Interest = .read
  let user: UnixUser
  /// Whether the client has sent a request.
  private var hasAsked = false
  /// The captured frames to send, while the client captures.
  private var capture: CaptureQueue?
  /// Whether captured frames wait because the client does not read.
  private var isCaptureBlocked = false

  init(_ server: ControlServer, _ descriptor: CInt, _ user: UnixUser, serial: UInt32) throws(SystemError) {
    self.server = server
    self.descriptor = descriptor
    self.serial = serial
    self.user = user
    registration = try server.loop.add(descriptor, .read, .diagnostics, self)
    stall = Timer(server.loop) { [self] in timeUp() }
    stall?.set(after: .seconds(ControlProtocol.firstSecondsMax))
    server.journal.record(
      .debug, .controlAttached, at: server.loop.now, UInt64(serial), user.processID, UInt64(user.userID))
  }

  /// Sends a packet now, or as soon as the client reads.
  func send(_ packet: [UInt8]) {
    guard let server else { return }
    queue.append(packet)
    queuedBytes += packet.count
    if queue.count == 1 { flush() }
    if queuedBytes > ControlProtocol.queuedBytesMax { close(.overflow) }
    server.boundQueues()
  }

  /// Sends the answers that were held back until the change was on disk. If `failure` is set, the answers report that
  /// the change is not done, because a restart would undo the change.
  func answerTrust(failure: String?) {
    for answer in unsettled {
      let text = failure.map { "\(answer.text), but not saved, so only until the next start: \($0)" } ?? answer.text
      send(ControlEvent.answer(isDone: answer.isDone && failure == nil, text: text).encoded())
    }
    unsettled = []
  }

  func completed(request: UInt32, _ outcome: ProbeOutcome) {
    outstanding -= 1
    send(ControlEvent.completed(request: request, outcome).encoded())
    updateInterest()
  }

  var isCapturing: Bool { capture != nil }

  /// Queues a frame if the client captures such frames and its queue has room. `sendFrames` sends the queue.
  func add(
    _ passage: FramePassage, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, at time: Instant
  ) { capture?.add(passage, header, payload, at: time) }

  /// Sends the queued frames if the client reads.
  func sendFrames() {
    guard server != nil, let capture, !capture.isEmpty, !isCaptureBlocked, queue.isEmpty else { return }
    send(capture)
  }

  func ready(_ events: UInt32) {
    if events & EPOLLOUT.rawValue != 0 {
      isCaptureBlocked = false
      flush()
      sendFrames()
    }
    if events & EPOLLIN.rawValue != 0 && isReading { receive() }
    // A client can disconnect while the server does not read from it. Unless the connection is closed here, the event
    // loop reports the hang-up forever.
    if events & (EPOLLHUP.rawValue | EPOLLERR.rawValue | EPOLLRDHUP.rawValue) != 0 {
      if isReading && events & EPOLLIN.rawValue != 0 { return }
      close(.left)
    }
    updateInterest()
  }

  func close(_ reason: ControlClosing) {
    guard let server else { return }
    self.server = nil
    if let text = reason.text {
      let packet = ControlEvent.closing("\(text)").encoded()
      _ = packet.withUnsafeBytes { CSystem.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
    }
    stall?.cancel()
    stall = nil
    server.loop.remove(registration)
    CSystem.close(descriptor)
    server.journal.record(
      reason == .left || reason == .shutdown ? .debug : .warning, .controlDetached, at: server.loop.now,
      UInt64(serial), UInt64(reason.rawValue), cause: user.cause)
    server.closed(self)
  }

  private var isReading: Bool {
    server != nil && unsettled.isEmpty && outstanding < ControlProtocol.outstandingMax
  }

  private func updateInterest() {
    guard let server else { return }
    var wanted: Interest = .hangUp
    if isReading { wanted.insert(.read) }
    if !queue.isEmpty || isCaptureBlocked { wanted.insert(.write) }
    if wanted == interest { return }
    interest = wanted
    server.loop.modify(registration, wanted)
  }

  /// Handles the timeout: the client has sent no request, or has read nothing, for too long.
  private func timeUp() {
    // A request can have arrived in time while this process was suspended, so read the socket before closing it.
    if !hasAsked { receive() }
    if server == nil { return }
    if !hasAsked { close(.silent) } else if !queue.isEmpty { close(.stalled) } else { updateInterest() }
  }

  private func receive() {
    for _ in 0..<Self.packetsPerCall where isReading {
      guard let server, server.mayAsk(user) else { return }
      let count = server.buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count < 0 {
        if csystem_errno() != EAGAIN && csystem_errno() != EINTR { close(.failed) }
        return
      }
      if count == 0 { return close(.left) }
      guard count <= ControlProtocol.requestBytesMax, let request = try? ControlRequest(Array(server.buffer[..<count]))
      else {
        server.journal.record(
          .warning, .controlRefused, at: server.loop.now, UInt64(ControlClosing.syntax.rawValue), UInt64(count),
          cause: user.cause)
        return close(.syntax)
      }
      server.journal.record(
        .debug, .controlRequest, at: server.loop.now, UInt64(server.buffer[0]), user.processID)
      server.noteRequest(user)
      handle(request)
    }
  }

  private func handle(_ request: ControlRequest) {
    guard let server, let delegate = server.delegate else { return }
    if !hasAsked {
      hasAsked = true
      stall?.cancel()
    }
    switch request {
    case .status: answer { delegate.controlStatus().toJSON(withSecrets: user.isOperator) }
    case .applications: answer { delegate.controlApplications().toJSON() }
    case .explain(let from, let to): answer { delegate.controlExplain(from, to) }
    case .watch:
      isWatching = true
      for peer in delegate.controlPeers() { send(ControlEvent.peerPresent(peer).encoded()) }
      let (id, name) = delegate.controlIdentity()
      send(ControlEvent.ready(id: id, name: name).encoded())
    case .probe(let request, let node):
      if !server.mayProbe(user) {
        send(ControlEvent.completed(request: request, .noRoom).encoded())
      } else if let outcome = delegate.controlProbe(node, token: UInt64(serial) << 32 | UInt64(request)) {
        send(ControlEvent.completed(request: request, outcome).encoded())
      } else {
        outstanding += 1
      }
    case .way(let node):
      send(ControlEvent.way(delegate.controlWay(to: node)).encoded())
    case .capture(let wish): begin(wish)
    case .join:
      guard user.isOperator else {
        let refusal = "only root and the daemon's user may see the passphrase of the group"
        return send(ControlEvent.answer(isDone: false, text: refusal).encoded())
      }
      do throws(AccessError) {
        let invitation = try delegate.controlInvitation()
        answer { invitation.toJSON() }
      } catch {
        send(ControlEvent.answer(isDone: false, text: error.text).encoded())
      }
    case .reload:
      guard user.isOperator else {
        return send(ControlEvent.answer(isDone: false, text: "only root may reload the configuration").encoded())
      }
      let (isDone, text) = delegate.controlReload()
      send(ControlEvent.answer(isDone: isDone, text: text).encoded())
    case .trust(let operation, let id, let name):
      guard user.isOperator else {
        return send(ControlEvent.answer(isDone: false, text: "only root may change whom the box trusts").encoded())
      }
      let answer = delegate.controlTrust(operation, id, name: name)
      unsettled.append(answer)
      if !answer.isDone || delegate.controlIsSettled { answerTrust(failure: nil) }
    }
  }

  /// Sends a JSON text in pieces. Closes the client if its queue is not empty. Otherwise a client that requests without
  /// reading would fill its queue.
  private func answer(_ json: () -> [UInt8]) {
    if !queue.isEmpty { return close(.overflow) }
    let text = json()
    var offset = 0
    while offset < text.count {
      let end = min(offset + ControlProtocol.statusPieceBytesMax, text.count)
      send(ControlEvent.statusPiece(Array(text[offset..<end])).encoded())
      offset = end
    }
    send(ControlEvent.statusPiece([]).encoded())
  }

  private func begin(_ wish: CaptureWish) {
    guard let server else { return }
    var refusal: String?
    if wish.withPayload && !user.isOperator {
      refusal = "only root and the daemon's user may see payloads; omit --payload to capture only headers"
    } else if isCapturing {
      refusal = "this client is already capturing"
    } else {
      refusal = server.captureRefusal(user)
    }
    if let refusal { return send(ControlEvent.answer(isDone: false, text: refusal).encoded()) }
    let capture = CaptureQueue(wish, type: ControlProtocol.captureType, packetBytes: ControlProtocol.captureBytes)
    self.capture = capture
    server.capturesChanged()
    // An empty packet confirms the start of the capture.
    send(capture)
  }

  private func send(_ capture: CaptureQueue) {
    switch capture.send(to: descriptor) {
    case 0: break
    case EAGAIN, ENOBUFS:
      isCaptureBlocked = true
      updateInterest()
    default: close(.failed)
    }
  }

  private func flush() {
    guard server != nil else { return }
    var sent = 0
    while sent < queue.count {
      let count = queue[sent].withUnsafeBytes {
        CSystem.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      if count < 0 {
        if csystem_errno() == EAGAIN || csystem_errno() == ENOBUFS { break }
        return close(.failed)
      }
      queuedBytes -= queue[sent].count
      sent += 1
    }
    queue.removeFirst(sent)
    if queue.isEmpty {
      stall?.cancel()
    } else if sent > 0 || stall?.deadline == .never {
      stall?.set(after: .seconds(ControlProtocol.stallSecondsMax))
    }
    updateInterest()
  }
}
