import Primitives

/// Dials that were given up because their peer opened a channel itself. That is told a moment later, when the peer's stream
/// has shown whose it is: who asked for the dial would dial again otherwise.
struct OvertakenDials {
  /// Several times what a TLS handshake over Bluetooth LE takes.
  static let handshakeTime = TimeSpan.milliseconds(1_500)

  private var dials: [(token: UInt32, end: Instant)] = []

  mutating func add(_ token: UInt32, _ now: Instant) { dials.append((token, now + Self.handshakeTime)) }

  /// The token of a dial whose end is to be told now.
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
