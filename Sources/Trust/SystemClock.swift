import CSystem

/// The wall clock of this machine, and whether a time service synchronises it.
///
/// Every time service (chronyd, ntpd, systemd-timesyncd) reports to the kernel, and any process may read the result:
/// adjtimex(2), STA_UNSYNC. The same call can set the clock, so a sandbox may forbid it. In that case the flag file of
/// systemd-timesyncd is used. Other services have no such file, so their clock counts as unsynchronised.
public final class SystemClock {
  /// The kernel's report about its clock.
  public enum KernelState: Sendable {
    case synchronised
    case unsynchronised
    /// The call failed with this errno.
    case refused(CInt)
  }

  /// The flag file of systemd-timesyncd. It is updated at each synchronisation and lies on a file system that is
  /// cleared at boot (systemd-timesyncd.service(8), Files).
  public static let timesyncFlag = "/run/systemd/timesync/synchronized"

  private let flag: String
  private let kernel: () -> KernelState

  public init(
    flag: String = SystemClock.timesyncFlag, kernel: @escaping () -> KernelState = { SystemClock.kernelState }
  ) {
    self.flag = flag
    self.kernel = kernel
  }

  /// Seconds since 1970, UTC.
  public var seconds: Int64 { Int64(CSystem.time(nil)) }

  public var isSynchronised: Bool {
    switch kernel() {
    case .synchronised: true
    case .unsynchronised: false
    case .refused: access(flag, F_OK) == 0
    }
  }

  /// Why the kernel cannot be queried, and the remedy, in one line; nil if it can.
  public var notice: String? {
    guard case .refused(let code) = kernel() else { return nil }
    return """
      the kernel does not report whether the clock is synchronised (adjtimex: \(String(cString: strerror(code)))): only \
      systemd-timesyncd's \(flag) counts; with another time service set ProtectClock=no and \
      SystemCallFilter=clock_adjtime in the unit
      """
  }

  public static var kernelState: KernelState {
    var state = timex()
    if adjtimex(&state) < 0 { return .refused(csystem_errno()) }
    return state.status & STA_UNSYNC == 0 ? .synchronised : .unsynchronised
  }
}
