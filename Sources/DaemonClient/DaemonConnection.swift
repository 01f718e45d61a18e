import CSystem
import LocalAPI
import Primitives
import Reactor
import Session

/// The reason why the connection to the daemon failed or ended.
public struct ConnectionError: Error {
  public let text: String
  /// Whether the reason is that no daemon answers at the socket.
  public let isNoDaemon: Bool

  public init(_ text: String, isNoDaemon: Bool = false) {
    self.text = text
    self.isNoDaemon = isNoDaemon
  }
}

/// A command's connection to the daemon's local API (docs/local-api.md). Only `init`, `next` and `carryOut` block.
///
/// All buffers are bounded. The input buffer holds one packet from the daemon and the result of one `recv`. The output
/// buffer holds the requests of the command. The command must not read more of its own input while `isBehind` is true.
public final class DaemonConnection {
  /// Further descriptors for which `next` waits; -1 stands for none.
  public struct Watch {
    /// The input of the command, reported when readable or at its end.
    public var input: CInt
    public var signals: CInt
    /// The output of the command, reported when the reader of the output has closed it.
    public var output: CInt

    public init(input: CInt = -1, signals: CInt = -1, output: CInt = -1) {
      self.input = input
      self.signals = signals
      self.output = output
    }
  }

  /// The result of `next`.
  public enum Wake {
    case event(LocalEvent)
    case input
    case signal
    case outputClosed
    case timedOut
  }

  /// The time within which the daemon must answer a request.
  private static let answerTime = TimeSpan.seconds(5)
  /// The maximum number of events that are kept while an answer is awaited. A correct daemon sends fewer events,
  /// because it sends each state once, and messages only within windows.
  private static let waitingMax = 4_096
  private static let behindBytes = 65_536
  private static let receiveBytes = 65_536

  private let descriptor: CInt
  private let path: String
  private let instance: [UInt8]
  public private(set) var node = NodeID.none
  /// The display name of the daemon's node.
  public private(set) var name: [UInt8] = []
  public private(set) var terms = LocalTerms.own
  private var lastNumber: UInt32 = 0
  private var outbox: [UInt8] = []
  private var sent = 0
  private var inbox: [UInt8] = []
  /// The number of bytes of `inbox` that were parsed.
  private var head = 0
  private var waiting: [LocalEvent] = []
  /// Whether `next` returned an event last. After an event, the watched descriptors are checked before more events are
  /// received.
  private var isTurnOfOthers = false

  /// Connects to the daemon's socket, and sends the hello with an application name: at most 63 bytes of plain text.
  public init(path: String, name: [UInt8]) throws(ConnectionError) {
    (self.path, instance) = (path, name)
    descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if descriptor < 0 { throw ConnectionError("\(path): \(SystemError.last.text)") }
    guard withUnixAddress(path, { connect(descriptor, $0, $1) }) == 0 else {
      let code = csystem_errno()
      close(descriptor)
      switch code {
      case ENOENT, ECONNREFUSED:
        throw ConnectionError(
          "no daemon answers at \(path); start “causeway run”, or name its socket by --socket", isNoDaemon: true)
      case EACCES:
        throw ConnectionError("\(path): permission denied; run this as root or as a member of the socket's group")
      default: throw ConnectionError("\(path): \(SystemError(code: code).text)")
      }
    }
    let versions = LocalLimits.versions
    let request = ask(.hello(least: versions.lowerBound, most: versions.upperBound, instance: name))
    let deadline = monotonicNow() + Self.answerTime
    while true {
      guard case .event(let event) = try next(until: deadline) else { throw Self.noAnswer }
      if case .welcome(request, _, let node, let name, let terms) = event {
        self.node = node
        self.name = name
        self.terms = terms
        return
      }
      if case .done(request, _, let text) = event {
        throw ConnectionError("the daemon refused the connection: \(String(decoding: text, as: UTF8.self))")
      }
    }
  }

  deinit { close(descriptor) }

  /// Tries to connect every 0.5 s, until the lost daemon answers again. Returns nil after the deadline, or when the
  /// descriptor `signals` is readable.
  public func connectAgain(until deadline: Instant, signals: CInt) -> DaemonConnection? {
    while monotonicNow() < deadline {
      var polled = pollfd(fd: signals, events: Int16(POLLIN), revents: 0)
      if poll(&polled, 1, Self.againMilliseconds) > 0 { return nil }
      if let connection = try? DaemonConnection(path: path, name: instance) { return connection }
    }
    return nil
  }

  private static let againMilliseconds: CInt = 500

  private static var noAnswer: ConnectionError {
    ConnectionError("the daemon did not answer for 5 s; see “causeway log”")
  }

  // MARK: Requests

  /// Whether more than `behindBytes` of requests wait to be read by the daemon. The command must not read more input
  /// while `isBehind` is true.
  public var isBehind: Bool { outbox.count - sent > Self.behindBytes }

  /// The number of the request that the next `ask` sends.
  public var nextNumber: UInt32 { lastNumber == .max ? 1 : lastNumber + 1 }

  /// Sends a request, at once or during `next`. Returns the number of the request, which also identifies the answer and
  /// the created object.
  @discardableResult public func ask(_ body: LocalRequest.Body) -> UInt32 {
    lastNumber = nextNumber
    send(LocalRequest(lastNumber, body))
    return lastNumber
  }

  /// Sends a request that has no answer.
  public func post(_ body: LocalRequest.Body) {
    send(LocalRequest(0, body))
  }

  /// Sends bytes of a stream. The caller has checked that the bytes are within the stream's write limit.
  public func write(_ stream: UInt32, _ bytes: RawSpan) {
    let packets = bytes.byteCount / LocalLimits.streamBytesMax + 1
    if outbox.isEmpty { outbox.reserveCapacity(packets * LocalLimits.streamRequestBytesMax) }
    for start in stride(from: 0, to: bytes.byteCount, by: LocalLimits.streamBytesMax) {
      let part = bytes.extracting(start..<min(start + LocalLimits.streamBytesMax, bytes.byteCount))
      outbox.append(writing: part, to: stream)
    }
    flush()
  }

  private func send(_ request: LocalRequest) {
    outbox.append(copying: request.packet)
    flush()
  }

  /// The answer to a request.
  public struct Answer {
    public let number: UInt32
    public let outcome: LocalOutcome
    public let text: [UInt8]
    /// The endpoint after a successful advertise or open; otherwise 0.
    public let endpoint: UInt32

    public init(number: UInt32, outcome: LocalOutcome, text: [UInt8] = [], endpoint: UInt32 = 0) {
      self.number = number
      self.outcome = outcome
      self.text = text
      self.endpoint = endpoint
    }
  }

  /// Sends a request and waits for the answer. Events that arrive before the answer are kept for `next`.
  public func carryOut(_ body: LocalRequest.Body) throws(ConnectionError) -> Answer {
    let number = ask(body)
    let deadline = monotonicNow() + Self.answerTime
    let kept = waiting
    waiting = []
    var others: [LocalEvent] = []
    defer { waiting = kept + others }
    while true {
      guard case .event(let event) = try next(until: deadline) else { throw Self.noAnswer }
      if case .done(number, let outcome, let text) = event {
        return Answer(number: number, outcome: outcome, text: text, endpoint: 0)
      }
      if case .doneAt(number, let endpoint) = event {
        return Answer(number: number, outcome: .done, text: [], endpoint: endpoint)
      }
      guard others.count < Self.waitingMax else { throw Self.noAnswer }
      others.append(event)
    }
  }

  // MARK: Events

  /// Waits for the next event, for a watched descriptor, or until the deadline.
  public func next(until deadline: Instant, watching watch: Watch = Watch()) throws(ConnectionError) -> Wake {
    while true {
      if !waiting.isEmpty { return .event(waiting.removeFirst()) }
      flush()
      if hasPacket {
        isTurnOfOthers = true
        guard let event = try takePacket() else { continue }
        return .event(event)
      }
      let ready = wait(deadline, watch)
      if ready.signals { return .signal }
      if ready.output { return .outputClosed }
      if ready.input && (isTurnOfOthers || !ready.own) {
        isTurnOfOthers = false
        return .input
      }
      if isTurnOfOthers && monotonicNow() >= deadline {
        isTurnOfOthers = false
        return .timedOut
      }
      if ready.own {
        try receive()
      } else if monotonicNow() >= deadline {
        return .timedOut
      }
    }
  }

  private static let lengthBytes = 4

  private func length() -> Int {
    let bytes = inbox
    return Int(bytes.span.bytes.word32(head))
  }

  private var hasPacket: Bool { unread >= Self.lengthBytes && unread >= Self.lengthBytes + length() }

  private var unread: Int { inbox.count - head }

  /// Parses the first packet of `inbox`, which is complete. Returns nil if the event belongs to a later version.
  private func takePacket() throws(ConnectionError) -> LocalEvent? {
    let start = head + Self.lengthBytes, end = start + length()
    let bytes = inbox
    defer { head = end }
    let event: LocalEvent
    do throws(LocalSyntaxError) {
      event = try LocalEvent(bytes.span.bytes.extracting(start..<end))
    } catch {
      switch error {
      case .unsupported, .outOfRange: return nil
      case .truncated: throw Self.notUnderstood
      }
    }
    if case .done(0, _, let text) = event {
      throw ConnectionError("the daemon closed the connection: \(String(decoding: text, as: UTF8.self))")
    }
    return event
  }

  private static var notUnderstood: ConnectionError {
    ConnectionError("the daemon runs another version and its answer cannot be read; restart it")
  }

  private func receive() throws(ConnectionError) {
    var next: [UInt8] = []
    next.reserveCapacity(unread + Self.receiveBytes)
    next.append(copying: inbox.span.bytes.extracting(head...))
    var count = 0
    next.append(addingCapacity: Self.receiveBytes) { room in
      room.withUnsafeMutableBufferPointer { buffer, filled in
        count = recv(descriptor, buffer.baseAddress! + filled, Self.receiveBytes, CInt(MSG_DONTWAIT))
        filled += max(count, 0)
      }
    }
    (inbox, head) = (next, 0)
    if count == 0 || (count < 0 && csystem_errno() != EAGAIN && csystem_errno() != EINTR) {
      throw ConnectionError("the daemon closed the connection; did it stop?")
    }
    if unread >= Self.lengthBytes && !(5...LocalLimits.packetBytesMax).contains(length()) {
      throw Self.notUnderstood
    }
  }

  private func wait(
    _ deadline: Instant, _ watch: Watch
  ) -> (own: Bool, input: Bool, signals: Bool, output: Bool) {
    var milliseconds: CInt = -1
    if deadline != .never {
      // The time is rounded up. A time that is rounded down could end the wait before the deadline, and the wait would
      // be repeated without sleeping.
      milliseconds = CInt(clamping: ((deadline - monotonicNow()).nanoseconds + 999_999) / 1_000_000)
    }
    let own = CInt(POLLIN) | (outbox.isEmpty ? 0 : CInt(POLLOUT))
    return withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 4) { polled in
      polled[0] = pollfd(fd: descriptor, events: Int16(own), revents: 0)
      polled[1] = pollfd(fd: watch.input, events: Int16(POLLIN), revents: 0)
      polled[2] = pollfd(fd: watch.signals, events: Int16(POLLIN), revents: 0)
      polled[3] = pollfd(fd: watch.output, events: 0, revents: 0)
      if poll(polled.baseAddress, 4, milliseconds) <= 0 { return (false, false, false, false) }
      let readable = CInt(POLLIN) | CInt(POLLHUP) | CInt(POLLERR)
      return (
        CInt(polled[0].revents) & readable != 0, polled[1].revents != 0, polled[2].revents != 0,
        CInt(polled[3].revents) & (CInt(POLLERR) | CInt(POLLHUP)) != 0
      )
    }
  }

  private func flush() {
    while sent < outbox.count {
      let count = outbox.withUnsafeBytes {
        CSystem.send(descriptor, $0.baseAddress! + sent, $0.count - sent, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      if count < 0 && csystem_errno() == EINTR { continue }
      // A closed connection is not reported here: `recv` reports the end of the connection later, after the daemon's
      // last error packet.
      if count < 0 { return }
      sent += count
    }
    outbox = []
    sent = 0
  }
}
