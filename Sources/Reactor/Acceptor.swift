import CSystem
import Primitives

/// Accepts connections on a listening socket of any address family. One pass of the event loop accepts at most
/// `acceptsMax` connections; further connections are accepted in the next pass. After a failed accept, the acceptor
/// pauses for `restTime`. Descriptors are level-triggered, so without the pause a socket that cannot accept would wake
/// the loop again and again.
public final class Acceptor: EventSource {
  /// The result of one attempt to accept.
  public enum Outcome {
    /// A connection was accepted, or the connection failed too early to be accepted.
    case taken
    /// No connection is pending.
    case none
    /// No connection can be accepted now. The reason is a lack of descriptors or memory (EMFILE, ENFILE, ENOBUFS,
    /// ENOMEM), or a failure of the listening socket.
    case failed(SystemError)

    /// The outcome of an accept4 call that returned this error (accept(2), “Error handling”).
    public init(_ error: SystemError) {
      switch error.code {
      case EAGAIN: self = .none
      case ECONNABORTED, EINTR, EPROTO, EPERM, ENETDOWN, ENETUNREACH, ENOPROTOOPT, EHOSTDOWN, EHOSTUNREACH, ENONET,
        EOPNOTSUPP:
        self = .taken
      default: self = .failed(error)
      }
    }
  }

  /// The maximum number of connections accepted in one pass of the event loop.
  public static let acceptsMax = 16
  /// The pause after a failed accept.
  public static let restTime = TimeSpan.seconds(1)
  /// A shortage has ended when no accept has failed for this time. The next failure after that is reported again.
  public static let calmTime = TimeSpan.seconds(60)

  private let loop: EventLoop
  private let descriptor: CInt
  private var registration: Registration?
  private var timer: Timer?
  private var accept: ((CInt) -> Outcome)?
  private var shortage: ((SystemError?) -> Void)?
  private var isResting = false
  private var isShort = false

  /// Becomes the owner of `descriptor`, and closes this descriptor before throwing an error. `accept` calls accept4
  /// once, and then owns the new connection. `shortage` is called with the error when accepts begin to fail, and with
  /// nil when the shortage has ended. Errors: those of epoll_ctl.
  public init(
    _ loop: EventLoop, _ descriptor: CInt, accept: @escaping (CInt) -> Outcome,
    shortage: @escaping (SystemError?) -> Void
  ) throws(SystemError) {
    self.loop = loop
    self.descriptor = descriptor
    self.accept = accept
    self.shortage = shortage
    timer = Timer(loop) { [self] in timeUp() }
    do throws(SystemError) {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      timer = nil
      CSystem.close(descriptor)
      throw error
    }
  }

  public func ready(_ events: UInt32) {
    for _ in 0..<Self.acceptsMax {
      // The last call of `accept` may have closed this acceptor.
      guard let accept, !isResting else { return }
      switch accept(descriptor) {
      case .taken: continue
      case .none: return
      case .failed(let error): return rest(error)
      }
    }
  }

  /// Closes the listening socket. No closure is called after `close`.
  public func close() {
    guard let registration else { return }
    self.registration = nil
    loop.remove(registration)
    CSystem.close(descriptor)
    timer?.cancel()
    timer = nil
    accept = nil
    shortage = nil
  }

  private func rest(_ error: SystemError) {
    guard let registration else { return }
    isResting = true
    loop.modify(registration, [])
    timer?.set(after: Self.restTime)
    if isShort { return }
    isShort = true
    shortage?(error)
  }

  private func timeUp() {
    if isResting {
      isResting = false
      if let registration { loop.modify(registration, .read) }
      timer?.set(after: Self.calmTime)
    } else if isShort {
      isShort = false
      shortage?(nil)
    }
  }
}
