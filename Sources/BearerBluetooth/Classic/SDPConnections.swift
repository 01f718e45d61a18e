import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The channels of all clients that read this node's service records.
struct SDPConnections {
  /// The maximum number of clients: a controller has this many links over BR/EDR. Each peer has at most one channel, so
  /// no peer can use up the channels of others.
  static let countMax = 7
  /// The limits of one channel. A complete record in the smallest parts takes twelve requests. A phone sends its
  /// request at once, and closes the channel when it has the answer. If a peer sends anything but requests, its channel
  /// is closed.
  static let rules = RequestChannel.Rules(
    idleMax: .seconds(10), unitBytesMax: SDPServer.requestBytesMax, requestsMax: 64, endsByNonsense: true)

  let channels: RequestChannels
  private let server: SDPServer

  init(_ loop: EventLoop, _ server: SDPServer) {
    channels = RequestChannels(loop, Self.rules, countMax: Self.countMax)
    self.server = server
  }

  /// Serves a connected channel, as `RequestChannels.adopt` does, and closes an earlier channel of the same peer.
  /// Answers have at most `unitBytes` bytes.
  func adopt(_ descriptor: CInt, _ peer: BluetoothEndpoint, unitBytes: Int) {
    channels.existing(peer)?.close()
    _ = channels.adopt(descriptor, peer) { [server] in server.respond(to: $0, unitBytes: unitBytes) }
  }
}
