import Primitives

/// Detects a neighbour that accepts no frames although its radio responds. A neighbour that accepts no frames grants no
/// credits (Bluetooth Core Specification 5.4, Vol 3, Part A, 10.1). The neighbour's application does not read, or its
/// receive buffer is too short. A ping that was not sent cannot be answered. So a time limit decides whether the
/// neighbour is dead.
///
/// The time limit applies over Bluetooth LE only. Over Bluetooth LE the controller ends the connection to an absent
/// neighbour after the supervision timeout. Over other bearers a blocked stream may be the only sign that the neighbour
/// is absent.
struct Stall {
  /// The maximum time for which a neighbour may accept no frames. This time begins at the first timeout that finds the
  /// stream blocked. An application that a phone suspends for less time simply continues.
  static let spanMax = TimeSpan.seconds(20)

  private var since = Instant.never
  private var bytesOut: UInt64 = 0
  /// Whether the link was kept at a timeout only because of the stall.
  private(set) var isExcuse = false

  /// Updates the state. `isBlocked` means that the stream does not accept the waiting bytes. `bytesOut` is the total
  /// number of bytes that the stream has accepted.
  mutating func look(isBlocked: Bool, bytesOut: UInt64, now: Instant) {
    if !isBlocked {
      self = Stall()
    } else if since == .never || bytesOut != self.bytesOut {
      since = now
      self.bytesOut = bytesOut
    }
  }

  /// The end of the time limit, or nil while nothing is blocked.
  var end: Instant? { since == .never ? nil : since + Self.spanMax }

  mutating func excuse() { isExcuse = true }

  /// The time for which the neighbour has accepted no bytes; zero while nothing is blocked.
  func span(now: Instant) -> TimeSpan { since == .never ? TimeSpan(nanoseconds: 0) : now - since }
}
