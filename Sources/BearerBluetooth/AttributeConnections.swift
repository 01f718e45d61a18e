import Bearer
import Primitives
import Reactor

/// The attribute channels of all LE links of a controller. They serve this node's attribute table, and carry its
/// request to a peer that it dials.
///
/// There is one such channel per link, whichever side opened it, so a peer that we dial may send requests on it too.
struct AttributeConnections {
  /// One per link; links are already limited (`BluetoothSettings.linksMaxRange`).
  static let countMax = BluetoothSettings.linksMaxRange.upperBound
  /// The longest time of an attribute transaction (Core Specification 5.4, Vol 3, Part F, 3.3.3).
  static let idleMax = TimeSpan.seconds(30)

  let channels: RequestChannels
  private let server: AttributeServer

  init(_ loop: EventLoop, psm: UInt16) {
    channels = RequestChannels(
      loop,
      RequestChannel.Rules(
        idleMax: Self.idleMax, unitBytesMax: AttributeServer.unitBytesMax, requestsMax: .max, endsByNonsense: false),
      countMax: Self.countMax)
    server = AttributeServer(psm: psm)
  }

  /// Adopts a channel, as `RequestChannels.adopt`. The peer has `firstTime` for its first request.
  @discardableResult
  func adopt(_ descriptor: CInt, _ peer: BluetoothEndpoint, firstTime: TimeSpan? = nil) -> RequestChannel? {
    var server = server
    return channels.adopt(descriptor, peer, firstTime: firstTime) { server.respond(to: $0) }
  }
}
