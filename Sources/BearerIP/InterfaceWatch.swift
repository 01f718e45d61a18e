import CSystem
import Primitives
import Reactor

/// Receives the kernel's notifications of changed interfaces and addresses (rtnetlink(7)). It does not parse them:
/// `changed` runs once, `settleTime` after the first of a burst, and enumerates again.
final class InterfaceWatch: EventSource {
  /// How long a burst of notifications is collected.
  static let settleTime = TimeSpan.milliseconds(100)
  /// The most notifications read in one wake-up; the rest is reported again.
  private static let readsMax = 32

  private let loop: EventLoop
  private let descriptor: CInt
  private var registration: Registration?
  private var timer: Timer?

  /// Errors: those of socket, bind and epoll_ctl.
  init(_ loop: EventLoop, _ changed: @escaping () -> Void) throws(SystemError) {
    self.loop = loop
    let type = CInt(bitPattern: SOCK_RAW.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    descriptor = socket(AF_NETLINK, type, CInt(NETLINK_ROUTE))
    if descriptor < 0 { throw SystemError.last }
    var address = sockaddr_nl()
    address.nl_family = sa_family_t(AF_NETLINK)
    address.nl_groups = UInt32(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
    let bound = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_nl>.size))
      }
    }
    if bound != 0 {
      let error = SystemError.last
      CSystem.close(descriptor)
      throw error
    }
    timer = Timer(loop, changed)
    do {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      CSystem.close(descriptor)
      throw error
    }
  }

  func ready(_ events: UInt32) {
    var buffer: [UInt8] = [UInt8](repeating: 0, count: 4096)
    for _ in 0..<Self.readsMax {
      // ENOBUFS: notifications were lost, which is also a change.
      if recv(descriptor, &buffer, buffer.count, 0) < 0, csystem_errno() != ENOBUFS { break }
    }
    if let timer, timer.deadline == .never { timer.set(after: Self.settleTime) }
  }

  func close() {
    guard let registration else { return }
    self.registration = nil
    loop.remove(registration)
    CSystem.close(descriptor)
    timer?.cancel()
    timer = nil
  }
}
