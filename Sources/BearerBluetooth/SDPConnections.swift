import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The channels of all clients that read our service records.
struct SDPConnections {
  /// The most clients: a controller has this many links over BR/EDR. Each peer has one channel, so no peer takes
  /// another's slot.
  static let countMax = 7
  /// The limits of one channel. A whole record in the smallest pieces takes twelve requests. A phone asks at once, and
  /// closes the channel when it has the answer. A peer that sends anything but requests is not a client.
  static let rules = RequestChannel.Rules(
    idleMax: .seconds(10), unitBytesMax: SDPServer.requestBytesMax, requestsMax: 64, endsByNonsense: true)

  let channels: RequestChannels
  private let server: SDPServer

  init(_ loop: EventLoop, _ server: SDPServer) {
    channels = RequestChannels(loop, Self.rules, countMax: Self.countMax)
    self.server = server
  }

  /// Adopts a channel, as `RequestChannels.adopt`, and closes an earlier channel of the same peer. Answers have at most
  /// `unitBytes` bytes.
  func adopt(_ descriptor: CInt, _ peer: BluetoothEndpoint, unitBytes: Int) {
    channels.existing(peer)?.close()
    _ = channels.adopt(descriptor, peer) { [server] in server.respond(to: $0, unitBytes: unitBytes) }
  }
}
