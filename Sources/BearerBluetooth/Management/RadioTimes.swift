import Primitives

/// How long a radio has scanned and dialled. If the event loop is late, the time of the state that ended is too long by
/// that delay.
struct RadioTimes {
  private var scanning = TimeSpan.milliseconds(0)
  private var dialling = TimeSpan.milliseconds(0)
  private var isScanning = false
  private var isDialling = false
  private var since = Instant.zero

  /// Notes whether the radio scans or dials from now on.
  mutating func note(isScanning: Bool, isDialling: Bool, _ now: Instant) {
    (scanning, dialling) = total(now)
    self.isScanning = isScanning
    self.isDialling = isDialling
    since = now
  }

  /// The time spent scanning and the time spent dialling, each until now.
  func total(_ now: Instant) -> (scanning: TimeSpan, dialling: TimeSpan) {
    (isScanning ? scanning + (now - since) : scanning, isDialling ? dialling + (now - since) : dialling)
  }
}
