import Primitives

/// The properties of a wire: bearer, rate, delay, and the buffer below a link.
public struct WireModel: Sendable {
  public var bearer: BearerKind
  /// Bytes per second for all streams of the wire together: from its first end, and from its second end.
  public var bytesPerSecond: (UInt64, UInt64)
  /// The time from the last bit sent to the last bit received.
  public var delay: (least: TimeSpan, most: TimeSpan)
  /// The unit of loss: a radio packet or a TCP segment.
  public var packetBytes: Int
  /// The time until a lost packet has been retransmitted and has arrived.
  public var repairDelay: TimeSpan
  /// The share of packets in thousandths that are always lost and retransmitted.
  public var lossPerThousand: UInt64 = 0
  /// Data that waits for the wire is delayed further by this factor times its wait, as on a medium with many users.
  public var loadDelayFactor: UInt64 = 0
  /// The bytes that a link may hand down before they are on the wire. One frame may exceed the limit.
  public var bytesBelowMax: Int
  /// The longest frame payload that the ends accept; longer offers in hellos are cut to it.
  public var framePayloadBytesMax = Limits.framePayloadBytesMax

  public init(
    _ bearer: BearerKind, bytesPerSecond: UInt64, delay: (least: TimeSpan, most: TimeSpan), packetBytes: Int,
    repairDelay: TimeSpan, bytesBelowMax: Int
  ) {
    self.bearer = bearer
    self.bytesPerSecond = (bytesPerSecond, bytesPerSecond)
    self.delay = delay
    self.packetBytes = packetBytes
    self.repairDelay = repairDelay
    self.bytesBelowMax = bytesBelowMax
  }

  /// Bluetooth LE at 1 Mbit/s with packets of 247 bytes, over an L2CAP channel.
  public static let bluetoothLE = WireModel(
    .bluetoothLE, bytesPerSecond: 125_000, delay: (.milliseconds(8), .milliseconds(8)), packetBytes: 247,
    repairDelay: .milliseconds(15), bytesBelowMax: 12_288)
  /// Bluetooth BR/EDR at 2 Mbit/s with packets of 1021 bytes (3-DH5). It has the routing cost of every Bluetooth link.
  public static let bluetoothClassic = WireModel(
    .bluetoothLE, bytesPerSecond: 250_000, delay: (.milliseconds(4), .milliseconds(4)), packetBytes: 1021,
    repairDelay: .milliseconds(8), bytesBelowMax: 12_288)
  /// Wi-Fi at 50 Mbit/s, TCP.
  public static let wifi = WireModel(
    .wifi, bytesPerSecond: 6_250_000, delay: (.milliseconds(2), .milliseconds(2)), packetBytes: 1448,
    repairDelay: .milliseconds(10), bytesBelowMax: 65_536)
  /// Wi-Fi Direct at 50 Mbit/s, TCP.
  public static let wifiDirect = WireModel(
    .wifiDirect, bytesPerSecond: 6_250_000, delay: (.milliseconds(2), .milliseconds(2)), packetBytes: 1448,
    repairDelay: .milliseconds(10), bytesBelowMax: 65_536)
  /// Ethernet at 1 Gbit/s, TCP.
  public static let ethernet = WireModel(
    .ethernet, bytesPerSecond: 125_000_000, delay: (TimeSpan(nanoseconds: 100_000), TimeSpan(nanoseconds: 100_000)),
    packetBytes: 1448, repairDelay: .milliseconds(5), bytesBelowMax: 65_536)

  public static let all: [WireModel] = [.bluetoothLE, .bluetoothClassic, .wifi, .wifiDirect, .ethernet]

  /// The same wire with delays that vary between the model's delay and ten times that delay.
  public var jittery: WireModel {
    var model = self
    model.delay.most = delay.least * 10
    return model
  }

  /// The same wire with packets that are lost below the link.
  public func losing(perThousand: UInt64) -> WireModel {
    var model = self
    model.lossPerThousand = perThousand
    return model
  }

  /// The same wire with a delay that grows with its load.
  public func delayed(byLoad factor: UInt64) -> WireModel {
    var model = self
    model.loadDelayFactor = factor
    return model
  }

  /// The time for which `byteCount` bytes from end `side` occupy the wire.
  func time(for byteCount: Int, from side: Int) -> TimeSpan {
    let rate = side == 0 ? bytesPerSecond.0 : bytesPerSecond.1
    return TimeSpan(nanoseconds: UInt64(byteCount) * 1_000_000_000 / max(rate, 1))
  }
}
