import CSystem
import Primitives
import Reactor

/// Watches the kernel's netlink events, and reports that interfaces, addresses or radios may have changed. The watch
/// needs no privilege and no file in /dev.
///
/// `changed` is called once for a burst of events, `settleTime` after the first event. The owner of the watch must then
/// query the current state itself, because events can be lost.
public final class KernelWatch: EventSource {
  /// The kind of events that a watch receives.
  public enum Subject {
    /// Interfaces and addresses (rtnetlink(7)).
    case addresses
    /// Radios that appeared, disappeared, or were blocked or unblocked by rfkill; and interfaces that appeared,
    /// disappeared or were renamed. The kernel sends these events to device managers (netlink(7),
    /// NETLINK_KOBJECT_UEVENT).
    case radios

    /// The time from the first event of a burst to the call of `changed`. The delay also ensures that a driver is not
    /// queried immediately after its radio was unblocked.
    var settleTime: TimeSpan {
      switch self {
      case .addresses: .milliseconds(100)
      case .radios: .milliseconds(200)
      }
    }

    fileprivate var source: (family: CInt, groups: UInt32) {
      switch self {
      case .addresses: (CInt(NETLINK_ROUTE), UInt32(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR))
      // Group 1 receives the kernel's own events, group 2 those of udev.
      case .radios: (CInt(NETLINK_KOBJECT_UEVENT), 1)
      }
    }

    fileprivate func isNews(_ event: ArraySlice<UInt8>) -> Bool {
      switch self {
      case .addresses: true
      case .radios: KernelWatch.concernsRadios(event)
      }
    }
  }

  /// The maximum number of events read in one pass of the event loop. If more are waiting, the loop calls `ready`
  /// again.
  private static let readsMax = 32
  /// The size of the receive buffer in bytes: enough for the kernel's UEVENT_BUFFER_SIZE and the preceding header. A
  /// longer event is truncated.
  private static let eventBytesMax = 4096

  private let loop: EventLoop
  private let subject: Subject
  private let descriptor: CInt
  private var registration: Registration?
  private var timer: Timer?

  /// Errors: those of socket, bind and epoll_ctl.
  public init(_ loop: EventLoop, _ subject: Subject, _ changed: @escaping () -> Void) throws(SystemError) {
    self.loop = loop
    self.subject = subject
    let type = CInt(bitPattern: SOCK_RAW.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    descriptor = socket(AF_NETLINK, type, subject.source.family)
    if descriptor < 0 { throw SystemError.last }
    var address = sockaddr_nl()
    address.nl_family = sa_family_t(AF_NETLINK)
    address.nl_groups = subject.source.groups
    let bound = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_nl>.size))
      }
    }
    do throws(SystemError) {
      if bound != 0 { throw SystemError.last }
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      CSystem.close(descriptor)
      throw error
    }
    timer = Timer(loop, changed)
  }

  public func ready(_ events: UInt32) {
    var buffer = [UInt8](repeating: 0, count: Self.eventBytesMax)
    var isNews = false
    for _ in 0..<Self.readsMax {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count >= 0 {
        isNews = isNews || subject.isNews(buffer[..<count])
      } else if csystem_errno() == ENOBUFS {
        // The kernel's queue for this socket overflowed, and events were lost.
        isNews = true
      } else {
        break
      }
    }
    if isNews, let timer, timer.deadline == .never { timer.set(after: subject.settleTime) }
  }

  /// Stops watching. No callback follows.
  public func stop() {
    guard let registration else { return }
    self.registration = nil
    loop.remove(registration)
    CSystem.close(descriptor)
    timer?.cancel()
    timer = nil
  }

  /// Whether an event concerns an interface or an rfkill switch. An event is "ACTION@PATH" followed by "KEY=VALUE"
  /// strings, each with a terminating zero (Linux, lib/kobject_uevent.c).
  static func concernsRadios(_ event: ArraySlice<UInt8>) -> Bool {
    for line in event.split(separator: 0) {
      if line.elementsEqual("SUBSYSTEM=rfkill".utf8) || line.elementsEqual("SUBSYSTEM=net".utf8) { return true }
    }
    return false
  }
}
