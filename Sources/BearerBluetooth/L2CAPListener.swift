import Bearer
import Reactor

/// A listening L2CAP socket.
final class L2CAPListener {
  private let acceptor: Acceptor

  /// Takes over `descriptor`, even when it throws. `accepted` owns its descriptors; `shortage` is called when accepting
  /// begins to fail, and with nil when that is over.
  init(
    _ loop: EventLoop, _ descriptor: CInt, _ accepted: @escaping (CInt, BluetoothEndpoint) -> Void,
    shortage: @escaping (SystemError?) -> Void
  ) throws(SystemError) {
    acceptor = try Acceptor(
      loop, descriptor,
      accept: { descriptor in
        do throws(SystemError) {
          let next = try L2CAPSocket.accept(descriptor)
          accepted(next.descriptor, next.peer)
          return .taken
        } catch {
          return Acceptor.Outcome(error)
        }
      }, shortage: shortage)
  }

  func close() { acceptor.close() }
}
