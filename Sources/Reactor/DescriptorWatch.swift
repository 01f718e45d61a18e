import CSystem

/// Calls a closure when a descriptor is readable. The caller owns the descriptor, and must read it in the closure.
public final class DescriptorWatch: EventSource {
  private let loop: EventLoop
  private let called: () -> Void
  private var registration: Registration?

  /// Errors: those of epoll_ctl.
  public init(_ loop: EventLoop, _ descriptor: CInt, _ called: @escaping () -> Void) throws(SystemError) {
    self.loop = loop
    self.called = called
    registration = try loop.add(descriptor, .read, .diagnostics, self)
  }

  public func ready(_ events: UInt32) { called() }

  /// Stops watching. The caller still owns the descriptor.
  public func stop() {
    if let registration { loop.remove(registration) }
    registration = nil
  }
}
