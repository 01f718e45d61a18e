import CSystem
import Primitives
import Reactor

/// Decides, while there is no connection to the machine's D-Bus, when to attempt one. An attempt blocks for up to a
/// second.
///
/// The bus's socket is watched (inotify), so an absent bus costs nothing and its appearance is noticed at once. A bus
/// that refuses is tried again after pauses that double; a new socket ends the pause.
final class SystemBus {
  /// The wait after the socket appears, because D-Bus creates its socket before it answers.
  static let settleTime = TimeSpan.milliseconds(300)
  static let retryMin = TimeSpan.seconds(1)
  /// The longest pause. A socket that a dead bus left behind refuses every attempt.
  static let retryMax = TimeSpan.seconds(600)
  /// The interval between looks if the directory cannot be watched.
  static let lookTime = TimeSpan.seconds(30)

  private let loop: EventLoop
  /// The path of the bus's socket; empty if the bus has none.
  private let path: String
  private let worthATry: () -> Void
  private var watch: DirectoryWatch?
  private var timer: Timer?
  /// The socket at the last attempt.
  private var tried: (inode: UInt, changed: timespec)?
  private var retry = retryMin

  /// `worthATry` makes an attempt, and calls `refused` or `connected`. The loop calls it until `connected`.
  init(_ loop: EventLoop, address: String?, worthATry: @escaping () -> Void) {
    self.loop = loop
    self.worthATry = worthATry
    path = Self.path(of: address)
  }

  /// Looks for the bus, and makes an attempt at once if its socket exists.
  func seek() {
    if timer != nil { return }
    timer = Timer(loop) { [self] in attempt() }
    retry = Self.retryMin
    if !path.utf8.isEmpty, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
      watch = try? DirectoryWatch(loop, slash == path.utf8.startIndex ? "/" : String(path[..<slash])) { [self] in look()
      }
    }
    attempt()
  }

  /// Notes that an attempt failed. The next one follows after a pause.
  func refused() {
    if timer == nil { return }
    timer?.set(after: retry, slack: retry / 4)
    retry = min(retry * 2, Self.retryMax)
  }

  func connected() { stop() }

  /// Stops. No callback follows until `seek`.
  func stop() {
    timer?.cancel()
    timer = nil
    watch?.stop()
    watch = nil
    tried = nil
  }

  private func look() {
    guard let socket = socket() else { return }
    if let tried, tried.inode == socket.inode, tried.changed.tv_sec == socket.changed.tv_sec,
      tried.changed.tv_nsec == socket.changed.tv_nsec
    {
      return
    }
    tried = socket
    retry = Self.retryMin
    timer?.set(after: Self.settleTime)
  }

  private func attempt() {
    if path.utf8.isEmpty { return worthATry() }
    tried = socket()
    if tried != nil {
      worthATry()
    } else if watch == nil {
      timer?.set(after: Self.lookTime, slack: Timer.choreSlack)
    }
  }

  private func socket() -> (inode: UInt, changed: timespec)? {
    var status = stat()
    return stat(path, &status) == 0 ? (UInt(status.st_ino), status.st_ctim) : nil
  }

  /// The path in "unix:path=PATH,…" (D-Bus Specification 0.43, server addresses), or libdbus's default path. Empty for
  /// an address of another kind.
  private static func path(of address: String?) -> String {
    guard let address else { return "/run/dbus/system_bus_socket" }
    let prefix = "unix:path="
    guard address.utf8.starts(with: prefix.utf8) else { return "" }
    let rest = address.utf8.dropFirst(prefix.utf8.count)
    return String(decoding: rest.prefix { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: ";") }, as: UTF8.self)
  }
}
