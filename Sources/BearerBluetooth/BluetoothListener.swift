import Bearer
import Reactor

/// A listening Bluetooth socket, of L2CAP or RFCOMM.
final class BluetoothListener {
  private let acceptor: Acceptor

  /// Takes ownership of `descriptor`, even if the initialiser throws. `accept` accepts the next connection. `accepted`
  /// receives ownership of the connection's descriptor. `shortage` is called with the error when accepting begins to
  /// fail, and with nil when accepting works again.
  init(
    _ loop: EventLoop, _ descriptor: CInt,
    accept: @escaping (CInt) throws(SystemError) -> (descriptor: CInt, peer: BluetoothEndpoint) = L2CAPSocket.accept,
    _ accepted: @escaping (CInt, BluetoothEndpoint) -> Void, shortage: @escaping (SystemError?) -> Void
  ) throws(SystemError) {
    acceptor = try Acceptor(
      loop, descriptor,
      accept: { descriptor in
        do throws(SystemError) {
          let next = try accept(descriptor)
          accepted(next.descriptor, next.peer)
          return .taken
        } catch {
          return Acceptor.Outcome(error)
        }
      }, shortage: shortage)
  }

  func close() { acceptor.close() }
}
