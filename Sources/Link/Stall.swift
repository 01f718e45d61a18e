import Primitives

/// Notices a neighbour that takes nothing although its radio answers: it grants no credits (Core Specification 5.4, Vol 3, Part A,
/// 10.1), because its reader pauses or its receive buffer is too short. No answer can come to a ping that has not left, so time
/// judges it.
///
/// Over Bluetooth LE alone: there the controllers end the connection to a neighbour that has gone, after the supervision timeout.
/// Elsewhere a stream that takes nothing may be all that tells of it.
struct Stall {
  /// How long a neighbour may take nothing, from the first timeout that finds it so. An application that a phone stops for a
  /// shorter time goes on where it was.
  static let spanMax = TimeSpan.seconds(20)

  private var since = Instant.never
  private var bytesOut: UInt64 = 0
  /// It has kept a neighbour from being judged.
  private(set) var isExcuse = false

  /// Looks at the stream. `isBlocked`: it does not take what waits; `bytesOut` have left for it so far.
  mutating func look(isBlocked: Bool, bytesOut: UInt64, now: Instant) {
    if !isBlocked {
      self = Stall()
    } else if since == .never || bytesOut != self.bytesOut {
      since = now
      self.bytesOut = bytesOut
    }
  }

  /// The end of the neighbour's time; nil while nothing is blocked.
  var end: Instant? { since == .never ? nil : since + Self.spanMax }

  mutating func excuse() { isExcuse = true }

  /// How long nothing has been taken.
  func span(now: Instant) -> TimeSpan { since == .never ? TimeSpan(nanoseconds: 0) : now - since }
}
