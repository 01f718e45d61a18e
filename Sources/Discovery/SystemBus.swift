import CSystem
import Primitives
import Reactor

/// The machine's D-Bus, while there is no connection to it: when it is worth an attempt, which blocks for up to a second.
///
/// Its socket is watched (inotify), so that an absent bus costs nothing and is noticed at once. A bus that refuses is
/// tried again after pauses that double; a new socket ends the pause.
final class SystemBus {
  /// D-Bus makes its socket before it answers.
  static let settleTime = TimeSpan.milliseconds(300)
  static let retryMin = TimeSpan.seconds(1)
  /// A socket that a dead bus left behind stays refused.
  static let retryMax = TimeSpan.seconds(600)
  /// Where the directory cannot be watched.
  static let lookTime = TimeSpan.seconds(30)

  private let loop: EventLoop
  /// Empty when the bus is at no path.
  private let path: String
  private let worthATry: () -> Void
  private var watch: DirectoryWatch?
  private var timer: Timer?
  /// The socket of the last attempt.
  private var tried: (inode: UInt, changed: timespec)?
  private var retry = retryMin

  /// `worthATry` makes an attempt, and calls `refused` or `connected`. It is called from the loop, until `connected`.
  init(_ loop: EventLoop, address: String?, worthATry: @escaping () -> Void) {
    self.loop = loop
    self.worthATry = worthATry
    path = Self.path(of: address)
  }

  /// The bus is looked for: at once if it is there.
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

  func refused() {
    if timer == nil { return }
    timer?.set(after: retry, slack: retry / 4)
    retry = min(retry * 2, Self.retryMax)
  }

  func connected() { stop() }

  /// No call follows until `seek`.
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

  /// The default path of libdbus, or that of "unix:path=PATH,…" (D-Bus Specification 0.43, server addresses).
  private static func path(of address: String?) -> String {
    guard let address else { return "/run/dbus/system_bus_socket" }
    let prefix = "unix:path="
    guard address.utf8.starts(with: prefix.utf8) else { return "" }
    let rest = address.utf8.dropFirst(prefix.utf8.count)
    return String(decoding: rest.prefix { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: ";") }, as: UTF8.self)
  }
}
