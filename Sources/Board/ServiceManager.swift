import CSystem
import Reactor

/// Notifies the service manager of the daemon's state, with the datagrams of sd_notify(3), "Standalone
/// Implementations". A message that cannot be sent is lost. If keep-alives are lost for too long, the service manager
/// treats the daemon as hung.
public final class ServiceManager {
  private let socketPath: String
  private let descriptor: CInt
  private var status: [UInt8] = []

  /// The service manager that started this process; nil if NOTIFY_SOCKET is not set.
  public convenience init?() {
    guard let value = getenv("NOTIFY_SOCKET"), value.pointee != 0 else { return nil }
    self.init(socketPath: String(cString: value))
  }

  /// `socketPath`: a path, or "@" and a name in the abstract namespace. Returns nil if no descriptor is free.
  public init?(socketPath: String) {
    descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    if descriptor < 0 { return nil }
    self.socketPath = socketPath
  }

  deinit { close(descriptor) }

  /// Reports that the daemon is ready, at the start and after each reload.
  public func ready() { notify("READY=1") }

  /// Reports the start of a reload; `ready` reports its end. `microseconds`: the current monotonic time.
  public func reloading(microseconds: UInt64) { notify("RELOADING=1\nMONOTONIC_USEC=\(microseconds)") }

  /// Reports that the daemon shuts down.
  public func stopping() { notify("STOPPING=1") }

  /// Sends the watchdog's keep-alive. The service manager kills a service that sends no keep-alive for WatchdogSec=.
  public func alive() { notify("WATCHDOG=1") }

  /// Sets the status line of `systemctl status`. Control characters become “?”. An unchanged line is not sent again.
  public func show(_ status: String) {
    // A line feed would end the status, and begin another assignment in the datagram.
    let line = status.utf8.map { $0 < 0x20 ? UInt8(ascii: "?") : $0 }
    if line == self.status { return }
    self.status = line
    notify(Array("STATUS=".utf8) + line)
  }

  private func notify(_ text: String) { notify(Array(text.utf8)) }

  private func notify(_ bytes: [UInt8]) {
    _ = withUnixAddress(socketPath) { address, addressBytes in
      let sent = bytes.withUnsafeBytes {
        sendto(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT), address, addressBytes)
      }
      return sent == bytes.count ? 0 : -1
    }
  }
}
