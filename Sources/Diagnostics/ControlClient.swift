import CSystem
import Primitives
import Reactor

/// A command's end of the control socket. Blocks only in `next`.
public final class ControlClient {
  /// The result of `next`.
  public enum Wake {
    case event(ControlEvent)
    /// The other descriptor is readable, or closed.
    case otherReady
    case timedOut
    /// The daemon closed the connection, for this reason.
    case closed(String)
  }

  private let descriptor: CInt
  private var outbox: [[UInt8]] = []
  private var buffer = [UInt8](repeating: 0, count: ControlProtocol.packetBytesMax + 1)
  private var farewell = "the daemon closed the connection; did it stop?"

  /// Errors: no daemon answers at `path`, no permission.
  public init(path: String) throws(DiagnosticsError) {
    descriptor = socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if descriptor < 0 { throw .system(path) }
    guard withUnixAddress(path, { connect(descriptor, $0, $1) }) == 0 else {
      let code = csystem_errno()
      close(descriptor)
      switch code {
      case ENOENT, ECONNREFUSED:
        throw DiagnosticsError("no daemon answers at \(path); start “causeway run”, or name its socket by --socket")
      case EACCES:
        throw DiagnosticsError("\(path): permission denied; run this as root or in the group that owns the socket")
      default: throw DiagnosticsError("\(path): \(SystemError(code: code).text)")
      }
    }
  }

  deinit { close(descriptor) }

  /// Requests that the daemon has not read yet.
  public var pendingCount: Int { outbox.count }

  /// Sends a request, now or during `next`.
  public func send(_ request: ControlRequest) {
    outbox.append(request.encoded())
    flush()
  }

  /// Waits for the next event, for `other` to become readable (-1: none), or for `milliseconds` (-1: no limit).
  public func next(milliseconds: CInt, other: CInt = -1) -> Wake {
    let deadline = monotonicNow() + .milliseconds(UInt64(max(milliseconds, 0)))
    while true {
      flush()
      let left = milliseconds < 0 ? -1 : CInt(clamping: (deadline - monotonicNow()).milliseconds)
      switch wait(left, other) {
      case .own:
        let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, CInt(MSG_DONTWAIT)) }
        if count < 0 && (csystem_errno() == EAGAIN || csystem_errno() == EINTR) { continue }
        if count <= 0 { return .closed(farewell) }
        guard let event = try? ControlEvent(Array(buffer[..<count])) else {
          return .closed("the daemon is of another version: its answer is not understood")
        }
        if case .closing(let reason) = event { farewell = "the daemon closed the connection: \(reason)" }
        return .event(event)
      case .other: return .otherReady
      case .writable: continue
      case .time: return .timedOut
      }
    }
  }

  private enum Source { case own, other, writable, time }

  private func wait(_ milliseconds: CInt, _ other: CInt) -> Source {
    let interest = CInt(POLLIN) | (outbox.isEmpty ? 0 : CInt(POLLOUT))
    var own = pollfd(fd: descriptor, events: Int16(interest), revents: 0)
    var second = pollfd(fd: other, events: Int16(POLLIN), revents: 0)
    let ready = withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2) { polled in
      polled[0] = own
      polled[1] = second
      let ready = poll(polled.baseAddress, 2, milliseconds)
      own = polled[0]
      second = polled[1]
      return ready
    }
    if ready < 0 && csystem_errno() == EINTR { return .writable }
    if ready <= 0 { return .time }
    let readable = CInt(POLLIN) | CInt(POLLHUP) | CInt(POLLERR)
    if CInt(own.revents) & readable != 0 { return .own }
    return second.revents != 0 ? .other : .writable
  }

  private func flush() {
    while let packet = outbox.first {
      let count = packet.withUnsafeBytes {
        CSystem.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      // If the daemon is gone, recv reports it with the closing reason.
      if count < 0 { return }
      outbox.removeFirst()
    }
  }

  /// Fetches the status JSON.
  public func status() throws(DiagnosticsError) -> [UInt8] {
    send(.status)
    var text: [UInt8] = []
    while true {
      switch next(milliseconds: 5000) {
      case .event(.statusPiece(let piece)):
        if piece.isEmpty { return text }
        text += piece
      case .event: continue
      case .otherReady, .timedOut: throw DiagnosticsError("the daemon did not answer for 5 s; see “causeway log”")
      case .closed(let reason): throw DiagnosticsError(reason)
      }
    }
  }
}
