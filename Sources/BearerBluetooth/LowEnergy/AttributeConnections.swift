import Bearer
import Primitives
import Reactor

/// The attribute channels of all LE links of a controller. On each channel, this node answers requests for its
/// attribute table. When this node dials a peer, it also requests the peer's PSM on the attribute channel.
///
/// Each link has one attribute channel, whichever node opened it. So a peer that this node dials can send requests on
/// the same channel.
struct AttributeConnections {
  /// The maximum number of channels: one for each link. The number of links is limited by
  /// `BluetoothSettings.linksMaxRange`.
  static let countMax = BluetoothSettings.linksMaxRange.upperBound
  /// The time after which an idle channel is closed: the limit of an attribute transaction (Core Specification 5.4, Vol
  /// 3, Part F, 3.3.3).
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

  /// Serves a connected channel, as `RequestChannels.adopt` does. `firstTime`: the time limit for the peer's first
  /// request; nil for `idleMax`.
  @discardableResult
  func adopt(_ descriptor: CInt, _ peer: BluetoothEndpoint, firstTime: TimeSpan? = nil) -> RequestChannel? {
    var server = server
    return channels.adopt(descriptor, peer, firstTime: firstTime) { server.respond(to: $0) }
  }
}
