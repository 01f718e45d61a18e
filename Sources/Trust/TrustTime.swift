import CMbedTLS
import CSystem
import Identity

/// The time at which a certificate is evaluated, in seconds since 1970, UTC.
///
/// A box may have no clock. It always has a floor, which real time cannot precede: the release date of this program or
/// the latest certain time on disk. The wall clock is used if the kernel reports it as synchronised, and ignored
/// otherwise. Peers never set the clock or the floor.
public struct TrustTime: Equatable, Sendable {
  /// The earliest possible floor: 21 November 2026, raised with each release.
  public static let releaseSeconds: Int64 = 1_795_219_200

  /// The floor: real time is not earlier.
  public var floor: Int64
  public var wall: Int64
  public var isSynchronised: Bool

  /// `kept` is the latest synchronised time on disk; 0 if there is none.
  public init(kept: Int64, wall: Int64, isSynchronised: Bool) {
    floor = max(kept, Self.releaseSeconds)
    self.wall = wall
    self.isSynchronised = isSynchronised
  }

  /// The known time; never later than real time.
  public var seconds: Int64 { isSynchronised ? max(wall, floor) : floor }
}

/// Determines whether the wall clock has been right long enough to save its time.
///
/// The kernel reports a clock as synchronised after one answer from a time server, and NTP without authentication
/// accepts any answer. A saved time cannot be revoked: certificates that it expires stay expired. So a time becomes the
/// floor only if the clock was synchronised for `time` without interruption and agreed with the monotonic clock. A box
/// that was off for a year also has the right time after `time`. An attacker who controls every answer for that long
/// can still raise the floor.
struct SteadyClock {
  /// The required period of steadiness, in seconds: 6 hours.
  static let time: Int64 = 6 * 3600
  /// The maximum drift between the wall clock and the monotonic clock in that period, in seconds. 500 ppm in 6 hours
  /// are 11 s.
  static let driftMax: Int64 = 30

  private var since: (wall: Int64, uptime: Int64)?

  /// Compares both clocks, in seconds. Call it every few seconds, so that no step is missed.
  mutating func look(wall: Int64, isSynchronised: Bool, uptime: Int64) {
    guard isSynchronised else { return since = nil }
    if let since, ((wall - since.wall) - (uptime - since.uptime)).magnitude <= UInt64(Self.driftMax) { return }
    since = (wall, uptime)
  }

  func isSteady(uptime: Int64) -> Bool { since.map { uptime - $0.uptime >= Self.time } ?? false }
}

/// The validity of a certificate's dates.
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

  /// An mbedTLS time in seconds since 1970.
  static func seconds(_ time: mbedtls_x509_time) -> Int64 { Certificate.seconds(time) }
}
