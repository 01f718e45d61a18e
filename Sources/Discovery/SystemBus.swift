import CSystem
import Primitives
import Reactor

/// Decides when the daemon attempts to connect to the D-Bus system bus, while it has no connection. An attempt blocks
/// for up to a second, so attempts must be rare.
///
/// The directory of the bus's socket is watched with inotify, so a new socket is noticed at once and needs no polling.
/// After a failed attempt the next attempt follows after a pause, which doubles each time. A new socket ends the pause.
final class SystemBus {
  /// The wait after the socket has appeared, because the bus creates its socket before it can answer.
  static let settleTime = TimeSpan.milliseconds(300)
  static let retryMin = TimeSpan.seconds(1)
  /// The longest pause between two attempts. A socket file that a dead bus has left behind would refuse every attempt.
  static let retryMax = TimeSpan.seconds(600)
  /// The interval at which the socket is searched if its directory cannot be watched.
  static let lookTime = TimeSpan.seconds(30)

  private let loop: EventLoop
  /// The path of the bus's socket; empty if the bus has an address of another kind.
  private let path: String
  private let worthATry: () -> Void
  private var watch: DirectoryWatch?
  private var timer: Timer?
  /// The identity of the socket file at the last attempt; nil if there was no file.
  private var tried: (inode: UInt, changed: timespec)?
  private var backoff = Backoff(first: retryMin, longest: retryMax)

  /// `worthATry` attempts to connect, and then calls `refused` or `connected`. `worthATry` is called again at each
  /// attempt until `connected`.
  init(_ loop: EventLoop, address: String?, worthATry: @escaping () -> Void) {
    self.loop = loop
    self.worthATry = worthATry
    path = Self.path(of: address)
  }

  /// Begins to search for the bus. Attempts to connect at once if the bus's socket exists.
  func seek() {
    if timer != nil { return }
    timer = Timer(loop) { [self] in attempt() }
    backoff.reset()
    if !path.utf8.isEmpty, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
      watch = try? DirectoryWatch(loop, slash == path.utf8.startIndex ? "/" : String(path[..<slash])) { [self] in look()
      }
    }
    attempt()
  }

  /// Records that an attempt failed. The next attempt follows after a pause.
  func refused() {
    if timer == nil { return }
    let pause = backoff.take()
    timer?.set(after: pause, slack: pause / 4)
  }

  func connected() { stop() }

  /// Stops the search. `worthATry` is not called until `seek`.
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
    backoff.reset()
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

  /// The socket's path in an address "unix:path=PATH,…" (D-Bus Specification 0.43, “Server Addresses”). The default
  /// path of libdbus if `address` is nil; empty for an address of another kind.
  private static func path(of address: String?) -> String {
    guard let address else { return "/run/dbus/system_bus_socket" }
    let prefix = "unix:path="
    guard address.utf8.starts(with: prefix.utf8) else { return "" }
    let rest = address.utf8.dropFirst(prefix.utf8.count)
    return String(decoding: rest.prefix { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: ";") }, as: UTF8.self)
  }
}
