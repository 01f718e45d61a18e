import CSystem
import Reactor

/// Tells the service manager how the daemon is: the datagrams of sd_notify(3), "Standalone Implementations". A message
/// that cannot be sent is lost: the service manager then acts as if the daemon had hung, which it may well have.
public final class ServiceManager {
  private let socketPath: String
  private let descriptor: CInt
  private var status: [UInt8] = []

  /// The service manager that started this process; nil when none waits for messages (NOTIFY_SOCKET is not set).
  public convenience init?() {
    guard let value = getenv("NOTIFY_SOCKET"), value.pointee != 0 else { return nil }
    self.init(socketPath: String(cString: value))
  }

  /// `socketPath` is a path, or "@" and a name in the abstract namespace. Nil without a free descriptor.
  public init?(socketPath: String) {
    descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    if descriptor < 0 { return nil }
    self.socketPath = socketPath
  }

  deinit { close(descriptor) }

  /// The daemon serves, at the start and again after a reload.
  public func ready() { tell("READY=1") }

  /// A reload has begun; `ready` ends it. `microseconds`: the monotonic clock, now.
  public func reloading(microseconds: UInt64) { tell("RELOADING=1\nMONOTONIC_USEC=\(microseconds)") }

  public func stopping() { tell("STOPPING=1") }

  /// The daemon is alive. A service with WatchdogSec= is killed when this comes less often.
  public func alive() { tell("WATCHDOG=1") }

  /// The line of `systemctl status`; control characters in it become “?”. The same line is told once.
  public func show(_ status: String) {
    // A line feed would begin another assignment.
    let line = status.utf8.map { $0 < 0x20 ? UInt8(ascii: "?") : $0 }
    if line == self.status { return }
    self.status = line
    tell(Array("STATUS=".utf8) + line)
  }

  private func tell(_ text: String) { tell(Array(text.utf8)) }

  private func tell(_ bytes: [UInt8]) {
    _ = withUnixAddress(socketPath) { address, addressBytes in
      let sent = bytes.withUnsafeBytes {
        sendto(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT), address, addressBytes)
      }
      return sent == bytes.count ? 0 : -1
    }
  }
}
