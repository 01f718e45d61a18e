import CMbedTLS
import CSystem

/// What is known of the time when a certificate is evaluated. Seconds since 1970, UTC.
///
/// A box may have no clock. What it always has is a floor that real time cannot be before: when this program was written,
/// and the latest time that was certain and kept on disk. The wall clock counts when the kernel calls it synchronised;
/// an unsynchronised one says nothing, be it at 1970 or in twenty years. Peers never set the clock nor the floor.
public struct TrustTime: Equatable, Sendable {
  /// No clock is before this: 21 November 2026, raised with each release.
  public static let releaseSeconds: Int64 = 1_795_219_200

  /// Real time is not before this.
  public var floor: Int64
  public var wall: Int64
  public var isSynchronised: Bool

  /// `kept` is the latest synchronised time on disk, 0 when there is none.
  public init(kept: Int64, wall: Int64, isSynchronised: Bool) {
    floor = max(kept, Self.releaseSeconds)
    self.wall = wall
    self.isSynchronised = isSynchronised
  }

  /// The best guess at the time, never after it.
  public var seconds: Int64 { isSynchronised ? max(wall, floor) : floor }
}

/// Whether the wall clock has been right for long enough to be written down.
///
/// The kernel calls a clock synchronised after one answer of a time server, and NTP without authentication believes any
/// answer. What is written down cannot be taken back: certificates that are found expired once stay so. So the clock has to
/// be synchronised for `time` on end, and run beside the monotonic clock all the while, before its time becomes the floor. A
/// box that was off for a year is right after `time` too. Who controls every answer for so long moves the floor all the same.
struct SteadyClock {
  /// 6 hours.
  static let time: Int64 = 6 * 3600
  /// By how much the wall clock may drift from the monotonic one meanwhile: seconds; 500 ppm in 6 hours are 11.
  static let driftMax: Int64 = 30

  private var since: (wall: Int64, uptime: Int64)?

  /// Look at both clocks, seconds. Call it every few seconds, so that no step stays unseen.
  mutating func look(wall: Int64, isSynchronised: Bool, uptime: Int64) {
    guard isSynchronised else { return since = nil }
    if let since, ((wall - since.wall) - (uptime - since.uptime)).magnitude <= UInt64(Self.driftMax) { return }
    since = (wall, uptime)
  }

  func isSteady(uptime: Int64) -> Bool { since.map { uptime - $0.uptime >= Self.time } ?? false }
}

/// How a certificate's dates stand to the time.
enum Validity {
  case valid
  case expired
  case notYetValid
  /// It begins after the floor, and the clock is not synchronised: nobody can tell.
  case uncertain

  init(_ certificate: mbedtls_x509_crt, _ time: TrustTime) {
    if Validity.seconds(certificate.valid_to) < time.seconds {
      self = .expired
    } else if Validity.seconds(certificate.valid_from) > time.seconds {
      self = time.isSynchronised ? .notYetValid : .uncertain
    } else {
      self = .valid
    }
  }

  /// Seconds since 1970. mbedTLS counts months from 1 and refuses others when it reads the certificate.
  static func seconds(_ time: mbedtls_x509_time) -> Int64 {
    var parts = tm()
    parts.tm_year = time.year - 1900
    parts.tm_mon = time.mon - 1
    parts.tm_mday = time.day
    parts.tm_hour = time.hour
    parts.tm_min = time.min
    parts.tm_sec = time.sec
    return Int64(csystem_timegm(&parts))
  }
}
