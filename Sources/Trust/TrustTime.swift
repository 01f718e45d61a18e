import CMbedTLS
import CSystem
import Identity

/// The time at which a certificate is evaluated, in seconds since 1970, UTC.
///
/// A box may have no battery-backed clock. Even without a battery-backed clock, a box has a floor: a time that real
/// time cannot precede. The floor is the later of the release date of this program and the latest certain time on disk.
/// The wall clock is used if the kernel reports that it is synchronised, and is ignored otherwise. Peers can set
/// neither the clock nor the floor.
public struct TrustTime: Equatable, Sendable {
  /// The earliest possible floor: 21 November 2026, in seconds since 1970. Each release raises this time.
  public static let releaseSeconds: Int64 = 1_795_219_200

  /// The floor, in seconds since 1970. Real time is not earlier.
  public var floor: Int64
  public var wall: Int64
  public var isSynchronised: Bool

  /// `kept` is the latest synchronised time on disk, or 0 without such a time. `wall` is the time of the wall clock.
  /// `kept` and `wall` are in seconds since 1970.
  public init(kept: Int64, wall: Int64, isSynchronised: Bool) {
    floor = max(kept, Self.releaseSeconds)
    self.wall = wall
    self.isSynchronised = isSynchronised
  }

  /// The known time in seconds since 1970. If the clocks are right, the known time is never later than real time.
  public var seconds: Int64 { isSynchronised ? max(wall, floor) : floor }
}

/// Determines whether the wall clock has been synchronised and steady for long enough to save its time.
///
/// The kernel reports a clock as synchronised after one answer from a time server, and NTP without authentication
/// accepts any answer. A saved time is never lowered again: a certificate that is expired at that time stays expired.
/// So a time becomes the floor only under two conditions. The clock was synchronised for the period `time` without
/// interruption, and agreed with the monotonic clock during that period. A box that was off for a year meets the
/// conditions after the same period. An attacker who controls every answer during the period can still raise the floor.
struct SteadyClock {
  /// The required period of steadiness, in seconds: 6 hours.
  static let time: Int64 = 6 * 3600
  /// The maximum drift between the wall clock and the monotonic clock in that period, in seconds. A drift of 500 ppm is
  /// 11 s in 6 hours.
  static let driftMax: Int64 = 30

  private var since: (wall: Int64, uptime: Int64)?

  /// Compares the wall clock and the monotonic clock, in seconds. The caller calls this method every few seconds, so
  /// that no step of the wall clock is missed.
  mutating func look(wall: Int64, isSynchronised: Bool, uptime: Int64) {
    guard isSynchronised else { return since = nil }
    if let since, ((wall - since.wall) - (uptime - since.uptime)).magnitude <= UInt64(Self.driftMax) { return }
    since = (wall, uptime)
  }

  func isSteady(uptime: Int64) -> Bool { since.map { uptime - $0.uptime >= Self.time } ?? false }
}

/// The result of comparing a certificate's dates with a `TrustTime`.
enum Validity {
  case valid
  case expired
  case notYetValid
  /// The certificate becomes valid after the floor, and the clock is not synchronised.
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

  /// Converts an mbedTLS time to seconds since 1970.
  static func seconds(_ time: mbedtls_x509_time) -> Int64 { Certificate.seconds(time) }
}
