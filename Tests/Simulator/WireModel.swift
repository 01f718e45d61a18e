import Primitives

/// The properties of a wire: bearer, rate, delay, and the buffer below a link.
public struct WireModel: Sendable {
  public var bearer: BearerKind
  /// Bytes a second in each direction, all streams of the wire together: from its first end, and from its second.
  public var bytesPerSecond: (UInt64, UInt64)
  /// From the last bit sent to the last bit received.
  public var delay: (least: TimeSpan, most: TimeSpan)
  /// The unit of loss: a radio packet, a segment of TCP.
  public var packetBytes: Int
  /// How long until a lost packet has been sent again and has arrived.
  public var repairDelay: TimeSpan
  /// Packets that are lost and sent again, always.
  public var lossPerThousand: UInt64 = 0
  /// What waits for the wire arrives later by so many times its wait: a medium that many share.
  public var loadDelayFactor: UInt64 = 0
  /// Bytes that a link has handed down and that are not on the wire yet. One frame may exceed it.
  public var bytesBelowMax: Int
  /// The longest frame payload that the ends take; hellos that offer more are cut to it.
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

  /// Bluetooth LE at 1 Mbit/s in packets of 247 bytes, an L2CAP channel.
  public static let bluetoothLE = WireModel(
    .bluetoothLE, bytesPerSecond: 125_000, delay: (.milliseconds(8), .milliseconds(8)), packetBytes: 247,
    repairDelay: .milliseconds(15), bytesBelowMax: 12_288)
  /// Bluetooth BR/EDR at 2 Mbit/s in packets of 1021 bytes (3-DH5). Routed like every Bluetooth link.
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

  /// The same wire with delays that vary between the model's and ten times as much.
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

  /// How long the wire is busy with `byteCount` bytes from end `side`.
  func time(for byteCount: Int, from side: Int) -> TimeSpan {
    let rate = side == 0 ? bytesPerSecond.0 : bytesPerSecond.1
    return TimeSpan(nanoseconds: UInt64(byteCount) * 1_000_000_000 / max(rate, 1))
  }
}
