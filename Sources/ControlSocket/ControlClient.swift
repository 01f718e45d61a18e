import CSystem
import Primitives
import Reactor
import Text

/// A command's end of the control socket. Only `next`, and the functions that call `next`, block.
public final class ControlClient {
  /// The result of `next`.
  public enum Wake {
    case event(ControlEvent)
    case timedOut
    /// The daemon closed the connection. The text is the reason.
    case closed(String)
  }

  /// The connected socket. It becomes readable when an event may have arrived.
  public let descriptor: CInt
  private var outbox: [[UInt8]] = []
  private var buffer = [UInt8](repeating: 0, count: ControlProtocol.eventBytesMax + 1)
  private var farewell = "the daemon closed the connection; did it stop?"

  /// Connects to the daemon at `path`. Throws if no daemon answers or permission is denied.
  public init(path: String) throws(AccessError) {
    descriptor = socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if descriptor < 0 { throw .system(path) }
    guard withUnixAddress(path, { connect(descriptor, $0, $1) }) == 0 else {
      let code = csystem_errno()
      close(descriptor)
      switch code {
      case ENOENT, ECONNREFUSED:
        throw AccessError("no daemon answers at \(path); start “causeway run”, or name its socket by --socket")
      case EACCES:
        throw AccessError(
          "\(path): permission denied; run this as root or in the group that owns the socket", isDenied: true)
      default: throw AccessError("\(path): \(SystemError(code: code).text)")
      }
    }
  }

  deinit { close(descriptor) }

  /// Sends a request at once, or during the next call of `next` if the socket is full.
  public func send(_ request: ControlRequest) {
    outbox.append(request.encoded())
    flush()
  }

  /// Waits for the next event, for at most `milliseconds` (-1: no limit).
  public func next(milliseconds: CInt) -> Wake {
    let deadline = monotonicNow() + .milliseconds(UInt64(max(milliseconds, 0)))
    while true {
      flush()
      let left = milliseconds < 0 ? -1 : CInt(clamping: (deadline - monotonicNow()).milliseconds)
      let interest = CInt(POLLIN) | (outbox.isEmpty ? 0 : CInt(POLLOUT))
      var polled = pollfd(fd: descriptor, events: Int16(interest), revents: 0)
      let ready = poll(&polled, 1, left)
      if ready < 0 && csystem_errno() == EINTR { continue }
      if ready <= 0 { return .timedOut }
      guard CInt(polled.revents) & (CInt(POLLIN) | CInt(POLLHUP) | CInt(POLLERR)) != 0 else { continue }
      let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, CInt(MSG_DONTWAIT)) }
      // ECONNRESET: the daemon closed the connection before it read a request. The packet with the daemon's reason can
      // still be received after the error (unix(7)).
      if count < 0, [EAGAIN, EINTR, ECONNRESET].contains(csystem_errno()) { continue }
      if count <= 0 { return .closed(farewell) }
      guard let event = try? ControlEvent(Array(buffer[..<count])) else {
        return .closed("the daemon has another version: its answer is not understood")
      }
      if case .closing(let reason) = event { farewell = "the daemon closed the connection: \(reason)" }
      return .event(event)
    }
  }

  private func flush() {
    while let packet = outbox.first {
      let count = packet.withUnsafeBytes {
        CSystem.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      // If the send fails because the daemon is gone, `next` receives the daemon's reason.
      if count < 0 { return }
      outbox.removeFirst()
    }
  }

  /// Fetches the daemon's status as JSON; see `fetch`.
  public func status() throws(AccessError) -> [UInt8] { try fetch(.status) }

  /// Fetches the JSON answer to a request. Throws if the daemon refuses the request, closes the connection, or sends
  /// nothing for 5 s.
  public func fetch(_ request: ControlRequest) throws(AccessError) -> [UInt8] {
    send(request)
    var text: [UInt8] = []
    while true {
      switch next(milliseconds: 5000) {
      case .event(.statusPiece(let piece)):
        if piece.isEmpty { return text }
        text += piece
      case .event(.answer(isDone: false, let refusal)): throw AccessError(refusal)
      case .event: continue
      case .timedOut: throw AccessError("the daemon did not answer for 5 s; see “causeway log”")
      case .closed(let reason): throw AccessError(reason)
      }
    }
  }
}
