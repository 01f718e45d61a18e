import Primitives

/// Dials that were given up because the peer opened a channel itself. The failure of a dial that was given up is
/// reported after `handshakeTime`. By then the TLS handshake over the peer's channel has shown which node the peer is.
/// If the failure were reported at once, the caller would dial the peer again.
struct OvertakenDials {
  /// The delay of the report: several times the duration of a TLS handshake over Bluetooth LE.
  static let handshakeTime = TimeSpan.milliseconds(1_500)

  private var dials: [(token: UInt32, end: Instant)] = []

  mutating func add(_ token: UInt32, _ now: Instant) { dials.append((token, now + Self.handshakeTime)) }

  /// Removes and returns the token of a dial whose failure is to be reported now; nil if there is none.
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
