import CSystem
import Primitives

/// A listening socket of any family. A wake-up accepts at most `acceptsMax` connections; the loop reports further ones
/// again. After a failed accept it pauses for `restTime`: descriptors are level-triggered, so a listener that cannot
/// accept would wake the loop forever.
public final class Acceptor: EventSource {
  /// The result of one attempt to accept.
  public enum Outcome {
    /// A connection was accepted, or had already failed before that.
    case taken
    /// No connection is pending.
    case none
    /// Nothing can be accepted now: descriptors or memory ran out (EMFILE, ENFILE, ENOBUFS, ENOMEM), or the socket
    /// failed.
    case failed(SystemError)

    /// The outcome of a failed accept4 (accept(2), “Error handling”).
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

  /// The most connections one wake-up accepts.
  public static let acceptsMax = 16
  /// How long accepting pauses after a failure.
  public static let restTime = TimeSpan.seconds(1)
  /// A shortage is over when no attempt has failed for this time; the next failure is then reported again.
  public static let calmTime = TimeSpan.seconds(60)

  private let loop: EventLoop
  private let descriptor: CInt
  private var registration: Registration?
  private var timer: Timer?
  private var accept: ((CInt) -> Outcome)?
  private var shortage: ((SystemError?) -> Void)?
  private var isResting = false
  private var isShort = false

  /// Takes over `descriptor`, even when it throws. `accept` makes one attempt and owns what it accepts. `shortage` is
  /// called with the error when accepting begins to fail, and with nil when it works again. Errors: epoll_ctl's.
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
      // `accept` may have closed this acceptor.
      guard let accept, !isResting else { return }
      switch accept(descriptor) {
      case .taken: continue
      case .none: return
      case .failed(let error): return rest(error)
      }
    }
  }

  /// Stops listening. No callback follows.
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
