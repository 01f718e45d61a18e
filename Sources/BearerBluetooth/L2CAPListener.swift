import Bearer
import CBluetooth
import CSystem
import Reactor

/// A listening L2CAP socket.
final class L2CAPListener: EventSource {
  /// Connections accepted per `ready`.
  private static let acceptsPerCallMax = 8

  private let loop: EventLoop
  private let descriptor: CInt
  private var registration: Registration?
  private var accepted: ((CInt, BluetoothEndpoint) -> Void)?

  /// Takes over `descriptor`, also when it throws. `accepted` owns the descriptors it is given.
  init(
    _ loop: EventLoop, _ descriptor: CInt, _ accepted: @escaping (CInt, BluetoothEndpoint) -> Void
  ) throws(SystemError) {
    self.loop = loop
    self.descriptor = descriptor
    self.accepted = accepted
    do {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      _ = CSystem.close(descriptor)
      throw error
    }
  }

  func close() {
    guard let registration else { return }
    self.registration = nil
    accepted = nil
    loop.remove(registration)
    _ = CSystem.close(descriptor)
  }

  func ready(_ events: UInt32) {
    for _ in 0..<Self.acceptsPerCallMax {
      // A process out of descriptors leaves the peer waiting until it has some again.
      guard let accepted, let next = try? L2CAPSocket.accept(descriptor) else { return }
      accepted(next.descriptor, next.peer)
    }
  }
}
