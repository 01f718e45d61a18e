import CSystem

/// Delivers signals as events of the loop. The signals are blocked in this process and read from a signalfd.
public final class SignalSource: EventSource {
  private let descriptor: CInt
  private let received: (CInt) -> Void

  /// Errors: those of signalfd and epoll_ctl.
  public init(_ loop: EventLoop, _ signals: [CInt], _ received: @escaping (CInt) -> Void) throws(SystemError) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    sigprocmask(SIG_BLOCK, &set, nil)
    descriptor = signalfd(-1, &set, CInt(SFD_CLOEXEC | SFD_NONBLOCK))
    self.received = received
    if descriptor < 0 { throw SystemError.last }
    _ = try loop.add(descriptor, .read, .clock, self)
  }

  public func ready(_ events: UInt32) {
    var info = signalfd_siginfo()
    while read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0 { received(CInt(info.ssi_signo)) }
  }
}
