import CBluetooth
import CSystem
import Primitives
import Reactor

/// The result of a command.
enum ManagementOutcome: Equatable {
  case done([UInt8])
  case refused(ManagementStatus)
  /// No answer to the command arrived in time. A later answer is dropped.
  case timedOut
  /// The channel was closed, or its queue was full, before the command was answered.
  case notSent

  /// The reason of a failure, for a log line; nil if the command succeeded.
  var problem: String? {
    switch self {
    case .done: nil
    case .refused(let status): status.text
    case .timedOut: "no answer from the controller"
    case .notSent: "not sent"
    }
  }
}

/// The kernel's Bluetooth management socket. At most one command for each controller is outstanding, with a deadline
/// for its answer. The socket also delivers events.
///
/// `done` of each command is called exactly once, from `send`, `ready`, a timer, or `close`.
final class ManagementChannel: EventSource {
  /// The maximum number of commands that wait for outstanding commands. About twelve bring a controller up, three carry
  /// out its `RadioPlan`, and the rest refuse a burst of pairing requests.
  static let queuedMax = 32
  /// The maximum number of packets read in one call of `ready`.
  private static let packetsPerCallMax = 32
  /// The time limit for an answer to a command. At power-on of a USB controller, the firmware download takes a few
  /// seconds.
  static let answerTimeout = TimeSpan.seconds(10)

  private struct Pending {
    let command: ManagementCommand
    let done: (ManagementOutcome) -> Void
    var deadline = Instant.never
  }

  var eventReceived: ((UInt16, ManagementEvent) -> Void)?
  /// Called when the socket has failed and the channel has closed itself.
  var failed: ((SystemError) -> Void)?

  private let loop: EventLoop
  private let descriptor: CInt
  private var registration: Registration?
  private var queued: [Pending] = []
  private var outstanding: [Pending] = []
  private var timer: Timer?
  private var buffer = [UInt8](repeating: 0, count: ManagementEvent.packetBytesMax)

  /// Takes ownership of `descriptor`, a non-blocking socket that preserves packet boundaries.
  init(_ loop: EventLoop, _ descriptor: CInt) throws(SystemError) {
    self.loop = loop
    self.descriptor = descriptor
    registration = try loop.add(descriptor, .read, .admission, self)
    timer = Timer(loop) { [self] in expire() }
  }

  /// Opens the kernel's control channel. Errors: EAFNOSUPPORT (a kernel without Bluetooth, or a network namespace other
  /// than the first), EPERM.
  static func openSocket() throws(SystemError) -> CInt {
    let descriptor = socket(
      AF_BLUETOOTH, CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), BTPROTO_HCI)
    if descriptor < 0 { throw SystemError.last }
    var address = sockaddr_hci()
    address.hci_family = UInt16(AF_BLUETOOTH)
    address.hci_dev = ManagementCommand.noIndex
    address.hci_channel = UInt16(HCI_CHANNEL_CONTROL)
    if cbluetooth_bind_control(descriptor, &address) != 0 {
      let error = SystemError.last
      _ = CSystem.close(descriptor)
      throw error
    }
    return descriptor
  }

  /// Sends a command to the kernel, or queues the command. `done` receives the result of the command.
  func send(_ command: ManagementCommand, _ done: @escaping (ManagementOutcome) -> Void) {
    guard registration != nil, queued.count < Self.queuedMax else { return done(.notSent) }
    queued.append(Pending(command: command, done: done))
    sendQueued()
  }

  /// Sends a command without queueing it and ignores the answer; for use just before `close`.
  func post(_ command: ManagementCommand) {
    guard registration != nil else { return }
    _ = transmit(command)
  }

  /// Closes the socket. Every unanswered command ends with `.notSent`; no event follows.
  func close() {
    guard let registration else { return }
    self.registration = nil
    loop.remove(registration)
    _ = CSystem.close(descriptor)
    timer?.cancel()
    timer = nil
    eventReceived = nil
    failed = nil
    let ended = outstanding + queued
    outstanding = []
    queued = []
    for pending in ended { pending.done(.notSent) }
  }

  func ready(_ events: UInt32) {
    for _ in 0..<Self.packetsPerCallMax {
      guard registration != nil else { return }
      // With MSG_TRUNC the kernel returns the length of the complete packet, so that a truncated packet is detected and
      // dropped.
      let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT) | CInt(MSG_TRUNC))
      if count < 0 {
        let error = SystemError.last
        if error.code == EAGAIN || error.code == EINTR { return }
        return fail(error)
      }
      if count == 0 { return fail(SystemError(code: ECONNRESET)) }
      guard count <= buffer.count, let (index, event) = ManagementEvent.decode(Array(buffer[..<count])) else {
        continue
      }
      if case .reply(let opcode, let status, let parameters) = event {
        answered(index, opcode, status == .success ? .done(parameters) : .refused(status))
      } else {
        eventReceived?(index, event)
      }
    }
  }

  private func fail(_ error: SystemError) {
    let failed = failed
    close()
    failed?(error)
  }

  private func answered(_ index: UInt16, _ opcode: UInt16, _ outcome: ManagementOutcome) {
    guard let position = outstanding.firstIndex(where: { $0.command.index == index && $0.command.opcode == opcode })
    else { return }
    let pending = outstanding.remove(at: position)
    arm()
    pending.done(outcome)
    sendQueued()
  }

  private func expire() {
    let now = loop.now
    let late = outstanding.filter { $0.deadline <= now }
    outstanding.removeAll { $0.deadline <= now }
    arm()
    for pending in late { pending.done(.timedOut) }
    sendQueued()
  }

  private func sendQueued() {
    var position = 0
    while registration != nil, position < queued.count {
      let index = queued[position].command.index
      if outstanding.contains(where: { $0.command.index == index }) {
        position += 1
        continue
      }
      var pending = queued.remove(at: position)
      if transmit(pending.command) {
        pending.deadline = loop.now + Self.answerTimeout
        outstanding.append(pending)
        arm()
      } else {
        pending.done(.notSent)
        position = 0
      }
    }
  }

  private func transmit(_ command: ManagementCommand) -> Bool {
    let bytes = command.bytes
    return CSystem.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count
  }

  private func arm() {
    var earliest = Instant.never
    for pending in outstanding where pending.deadline < earliest { earliest = pending.deadline }
    timer?.set(earliest)
  }
}
