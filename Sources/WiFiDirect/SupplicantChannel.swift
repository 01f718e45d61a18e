import CSystem
import CWPA
import Primitives
import Reactor

/// The connection to one control socket of wpa_supplicant. The channel queues commands, sends one at a time, and
/// receives events.
///
/// libwpa_client opens and closes the socket. The request function of libwpa_client would block, so this class sends
/// and receives the datagrams. A failed channel stays closed.
final class SupplicantChannel: EventSource {
  /// The default time limit for a reply.
  static let replyTimeDefault = TimeSpan.seconds(10)
  /// The maximum number of queued commands: twice as many as the creation of a group needs. A further command fails the
  /// channel.
  static let queueMax = 48
  /// The maximum number of datagrams read in one pass of the event loop. If more are waiting, the loop calls `ready`
  /// again.
  private static let readsMax = 32

  private struct Command {
    var text: [UInt8]
    var completion: (SupplicantReply) -> Void
  }

  private let loop: EventLoop
  private let replyTime: TimeSpan
  private let descriptor: CInt
  private var control: OpaquePointer?
  private var registration: Registration?
  private var queue: [Command] = []
  private var isAwaitingReply = false
  private var timer: Timer?
  private var received: ((SupplicantMessage) -> Void)?
  private var failed: ((String) -> Void)?

  /// Connects to the socket at `path`. Replies arrive at a socket created in `clientDirectory`, which wpa_supplicant
  /// must see under the same path. `failed` is called by the event loop, at most once.
  ///
  /// Throws the errors of socket, bind and connect. ECONNREFUSED means that no process listens on the socket.
  init(
    _ loop: EventLoop, path: String, clientDirectory: String, replyTime: TimeSpan = replyTimeDefault,
    received: @escaping (SupplicantMessage) -> Void, failed: @escaping (String) -> Void
  ) throws(SystemError) {
    self.loop = loop
    self.replyTime = replyTime
    guard let control = wpa_ctrl_open2(path, clientDirectory) else { throw SystemError.last }
    descriptor = wpa_ctrl_get_fd(control)
    self.received = received
    self.failed = failed
    do {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      wpa_ctrl_close(control)
      throw error
    }
    self.control = control
    timer = Timer(loop) { [self] in fail("has not answered for \(replyTime.milliseconds) ms") }
    send("ATTACH") { [self] reply in
      if !reply.isOK { fail("does not send its events: \(reply.text)") }
    }
  }

  var isIdle: Bool { queue.isEmpty }

  /// Queues a command. `completion` receives the reply; it is never called after the channel has failed or is closed.
  func send(_ command: String, _ completion: @escaping (SupplicantReply) -> Void = { _ in }) {
    guard control != nil else { return }
    if queue.count >= Self.queueMax { return failSoon("is too slow: \(Self.queueMax) commands are queued") }
    queue.append(Command(text: Array(command.utf8), completion: completion))
    transmit()
  }

  /// Sends a command ahead of the queue without waiting for the reply; use this method only just before `close`.
  func sendLast(_ command: String) {
    guard control != nil else { return }
    let text = Array(command.utf8)
    _ = CSystem.send(descriptor, text, text.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
  }

  func ready(_ events: UInt32) {
    if events & EPOLLOUT.rawValue != 0, let registration {
      loop.modify(registration, .read)
      transmit()
    }
    var buffer: [UInt8] = [UInt8](repeating: 0, count: SupplicantParser.messageBytesMax)
    for _ in 0..<Self.readsMax {
      guard control != nil else { return }  // the last message caused `close`
      let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      if count < 0 {
        let error = SystemError.last
        if error.code != EAGAIN, error.code != EINTR { fail("is gone: \(error.text)") }
        return
      }
      take(buffer[..<count])
    }
  }

  func close() {
    guard let control else { return }
    self.control = nil
    if let registration { loop.remove(registration) }
    registration = nil
    timer?.cancel()
    timer = nil
    queue = []
    received = nil
    failed = nil
    wpa_ctrl_close(control)
  }

  private func take(_ message: ArraySlice<UInt8>) {
    if let event = SupplicantParser.parse(message) {
      received?(event)
    } else if isAwaitingReply {
      isAwaitingReply = false
      timer?.cancel()
      let command = queue.removeFirst()
      command.completion(SupplicantReply(message))
      transmit()
    }
  }

  private func transmit() {
    guard let command = queue.first, !isAwaitingReply, let registration else { return }
    let flags = CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)
    if CSystem.send(descriptor, command.text, command.text.count, flags) < 0 {
      let error = SystemError.last
      // wpa_supplicant's receive queue is full. The socket becomes writable when wpa_supplicant has read from that
      // queue.
      guard error.code == EAGAIN else { return failSoon("is gone: \(error.text)") }
      loop.modify(registration, [.read, .write])
    } else {
      isAwaitingReply = true
    }
    timer?.set(monotonicNow() + replyTime)
  }

  /// Reports the failure from the event loop, because `send` must not call back during the call.
  private func failSoon(_ reason: String) {
    timer?.cancel()
    timer = Timer(loop) { [self] in fail(reason) }
    timer?.set(.zero)
  }

  private func fail(_ reason: String) {
    let failed = failed
    close()
    failed?(reason)
  }
}
