import CSystem

/// Signals as input: the signals are blocked, and the program reads the signals from a descriptor (signalfd(2)).
public final class Signals {
  public let descriptor: CInt

  public init(_ signals: [CInt]) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    sigprocmask(SIG_BLOCK, &set, nil)
    descriptor = signalfd(-1, &set, CInt(SFD_CLOEXEC | SFD_NONBLOCK))
  }

  deinit { close(descriptor) }

  /// The next pending signal, or nil if no signal is pending.
  public func next() -> CInt? {
    var info = signalfd_siginfo()
    let count = read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size)
    return count == MemoryLayout<signalfd_siginfo>.size ? CInt(info.ssi_signo) : nil
  }
}
