import Primitives

/// The properties of a wire: its bearer, rate and delay, and the buffer below each link.
public struct WireModel: Sendable {
  public var bearer: BearerKind
  /// The rate in bytes per second that all streams of the wire share: from its first end, and from its second end.
  public var bytesPerSecond: (UInt64, UInt64)
  /// The delay between the transmission of a bit and its reception. The delay varies between `least` and `most`.
  public var delay: (least: TimeSpan, most: TimeSpan)
  /// The unit of loss: a radio packet or a TCP segment.
  public var packetBytes: Int
  /// The additional delay of a lost packet: its retransmission and the delivery of the copy.
  public var repairDelay: TimeSpan
  /// The rate at which packets are lost and retransmitted, in thousandths, without any fault.
  public var lossPerThousand: UInt64 = 0
  /// The delay that load adds on a shared medium: this factor times the time for which the data waited for the wire.
  public var loadDelayFactor: UInt64 = 0
  /// The size in bytes of the buffer below a link. The link sends while the buffer holds less than this size, so one
  /// frame may exceed the size.
  public var bytesBelowMax: Int
  /// The longest frame payload that the ends accept. Longer offers in hellos are reduced to this length.
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
  /// Bluetooth BR/EDR at 2 Mbit/s with packets of 1021 bytes (3-DH5). The bearer of this model is the bearer of LE,
  /// because both have the same routing cost.
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

  /// The same wire with a delay that varies between once and ten times the model's least delay.
  public var jittery: WireModel {
    var model = self
    model.delay.most = delay.least * 10
    return model
  }

  /// The same wire, on which packets are lost at this rate, in thousandths, and retransmitted.
  public func losing(perThousand: UInt64) -> WireModel {
    var model = self
    model.lossPerThousand = perThousand
    return model
  }

  /// The same wire with a delay that grows with load, by `loadDelayFactor`.
  public func delayed(byLoad factor: UInt64) -> WireModel {
    var model = self
    model.loadDelayFactor = factor
    return model
  }

  /// The time in which `byteCount` bytes from the end `side` are transmitted.
  func time(for byteCount: Int, from side: Int) -> TimeSpan {
    let rate = side == 0 ? bytesPerSecond.0 : bytesPerSecond.1
    return TimeSpan(nanoseconds: UInt64(byteCount) * 1_000_000_000 / max(rate, 1))
  }
}
