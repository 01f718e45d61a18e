import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The channels of all clients that ask for our service records.
struct SDPConnections {
  /// As many as a controller has links over BR/EDR: one for each peer, which therefore takes nobody else's place.
  static let countMax = 7
  /// Of one channel: a whole record in the smallest pieces takes twelve requests. A phone asks at once, and closes the channel when
  /// it knows. Who sends what is no request is no client.
  static let rules = RequestChannel.Rules(
    idleMax: .seconds(10), unitBytesMax: SDPServer.requestBytesMax, requestsMax: 64, endsByNonsense: true)

  let channels: RequestChannels
  private let server: SDPServer

  init(_ loop: EventLoop, _ server: SDPServer) {
    channels = RequestChannels(loop, Self.rules, countMax: Self.countMax)
    self.server = server
  }

  /// As `RequestChannels.adopt`, in place of a channel that the same peer has. Answers have at most `unitBytes`.
  func adopt(_ descriptor: CInt, _ peer: BluetoothEndpoint, unitBytes: Int) {
    channels.existing(peer)?.close()
    _ = channels.adopt(descriptor, peer) { [server] in server.respond(to: $0, unitBytes: unitBytes) }
  }
}
