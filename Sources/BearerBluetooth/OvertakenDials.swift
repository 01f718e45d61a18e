import Primitives

/// Dials that were given up because their peer opened a channel itself. Their failure is reported a moment later, when
/// a handshake has shown which node opened the peer's stream. Otherwise the caller would dial again.
struct OvertakenDials {
  /// Several times the duration of a TLS handshake over Bluetooth LE.
  static let handshakeTime = TimeSpan.milliseconds(1_500)

  private var dials: [(token: UInt32, end: Instant)] = []

  mutating func add(_ token: UInt32, _ now: Instant) { dials.append((token, now + Self.handshakeTime)) }

  /// The token of a dial whose failure is to be reported now.
  mutating func next(_ now: Instant) -> UInt32? {
    guard let first = dials.first, first.end <= now else { return nil }
    return dials.removeFirst().token
  }

  mutating func takeAll() -> [UInt32] {
    defer { dials = [] }
    return dials.map { $0.token }
  }

  var deadline: Instant { dials.first?.end ?? .never }
}
