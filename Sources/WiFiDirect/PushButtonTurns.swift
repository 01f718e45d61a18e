import Primitives

/// Decides which device may join by WPS push button, one device after the other.
///
/// If several devices push within the walk time of two minutes, WPS refuses all of them (Wi-Fi Simple Configuration
/// 2.0.8, push button configuration). Devices that repeat their attempts within this time would be refused for ever.
/// From a device's provision discovery request, the owner of a group knows the device's address. With this address, the
/// owner exempts one device from the rule (WPS_PBC of wpa_supplicant 2.10).
struct PushButtonTurns {
  /// The duration of a turn. A device needs a few seconds to join.
  static let turnTime = TimeSpan.seconds(15)

  private struct Turn {
    let device: MACAddress
    let end: Instant
  }

  private var turn: Turn?
  /// The last turn in which no device joined. Its device gets no turn for another `turnTime`, so that a device that
  /// only sends requests leaves turns to other devices.
  private var wasted: Turn?

  /// Returns whether a device has the turn at `now`.
  func isTaken(at now: Instant) -> Bool { turn.map { now < $0.end } ?? false }

  /// Takes a request of `device`. Returns whether a turn of this device begins now.
  mutating func request(by device: MACAddress, at now: Instant) -> Bool {
    if isTaken(at: now) { return false }
    if let turn { wasted = turn }
    turn = nil
    if let wasted, wasted.device == device, now < wasted.end + Self.turnTime { return false }
    turn = Turn(device: device, end: now + Self.turnTime)
    return true
  }

  /// Ends the current turn early, because a device has joined or push button was activated for all devices.
  mutating func end() { turn = nil }
}
