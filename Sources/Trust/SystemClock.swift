import CSystem

/// The wall clock of this machine, and whether a time service synchronises it.
///
/// Every time service (chronyd, ntpd, systemd-timesyncd) reports to the kernel, and any process can read the result:
/// the flag STA_UNSYNC of adjtimex(2). The same call can set the clock, so a sandbox may forbid the call. In that case
/// the flag file of systemd-timesyncd is used. Other time services have no such file, so in a sandbox of this kind the
/// clock is treated as unsynchronised.
public final class SystemClock {
  /// The kernel's report about its clock.
  public enum KernelState: Sendable {
    case synchronised
    case unsynchronised
    /// The call of adjtimex failed with this errno.
    case refused(CInt)
  }

  /// The flag file of systemd-timesyncd. systemd-timesyncd updates the file at each synchronisation. The file is on a
  /// file system that is cleared at boot (systemd-timesyncd.service(8), Files).
  public static let timesyncFlag = "/run/systemd/timesync/synchronized"

  private let flag: String
  private let kernel: () -> KernelState

  public init(
    flag: String = SystemClock.timesyncFlag, kernel: @escaping () -> KernelState = { SystemClock.kernelState }
  ) {
    self.flag = flag
    self.kernel = kernel
  }

  /// The time of the wall clock in seconds since 1970, UTC.
  public var seconds: Int64 { Int64(CSystem.time(nil)) }

  public var isSynchronised: Bool {
    switch kernel() {
    case .synchronised: true
    case .unsynchronised: false
    case .refused: access(flag, F_OK) == 0
    }
  }

  /// A line of text that states why the kernel cannot be queried and how to correct this, or nil if the kernel can be
  /// queried.
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
