import Primitives

/// Detects a neighbour that accepts no frames although its radio responds. Such a neighbour grants no credits (Core
/// Specification 5.4, Vol 3, Part A, 10.1), because its reader pauses or its receive buffer is too short. A ping that
/// was not sent cannot be answered, so a time limit decides.
///
/// This is used over Bluetooth LE only. There the controllers end the connection to an absent neighbour after the
/// supervision timeout. On other bearers a blocked stream may be the only sign of its absence.
struct Stall {
  /// How long a neighbour may accept no frames, counted from the first timeout at which it does so. An application that
  /// a phone suspends for less time simply continues.
  static let spanMax = TimeSpan.seconds(20)

  private var since = Instant.never
  private var bytesOut: UInt64 = 0
  /// Whether the stall has prevented the link from being closed.
  private(set) var isExcuse = false

  /// Updates the state. `isBlocked` means that the stream does not accept the waiting bytes; `bytesOut` is the total it
  /// has accepted.
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

  /// How long nothing has been accepted.
  func span(now: Instant) -> TimeSpan { since == .never ? TimeSpan(nanoseconds: 0) : now - since }
}
