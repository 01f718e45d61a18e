import Primitives

/// A name that one machine of a network may hold (RFC 6762, section 9): the service's instance name, or the host name.
/// The type is pure.
///
/// After a conflict another name is claimed at once: "name #2", "name #3", … Any machine can claim each of them as
/// well. After `alternativesMax` names a pause follows, and then names with a random number. So a machine that claims
/// names without end silences the box no longer than one pause after its last claim.
struct ClaimedName {
  /// The number of alternative names that are claimed before a pause.
  static let alternativesMax = 8
  static let firstPause = TimeSpan.seconds(5)
  /// The longest pause. With the time of a claim (RFC 6762, section 8.1), a name is announced within 60 s after the
  /// last conflict.
  static let longestPause = TimeSpan.seconds(40)
  /// A name that is held for this time is reported as announced again.
  static let settleTime = TimeSpan.seconds(5)
  /// A name that was held for this time had no rival: the count of alternatives and the pauses start again.
  static let lastingTime = TimeSpan.seconds(60)
  /// Random numbers have up to nine digits, and exceed the numbers of the first alternatives.
  static let randomNumbers: ClosedRange<UInt64> = 1000...999_999_999

  enum Kind {
    case service, host

    /// The text between a name and its number, as Avahi writes it.
    var separator: String {
      switch self {
      case .service: " #"
      case .host: "-"
      }
    }
  }

  private enum State {
    /// The name is claimed, and not yet held.
    case claiming
    case held(since: Instant)
    /// Nothing is claimed. `isTaken`: other machines hold the names that were claimed.
    case resting(until: Instant, isTaken: Bool)
  }

  /// The action that `due` asks for.
  enum Due: Equatable {
    case nothing
    /// The owner must claim `current`.
    case claim
    /// `current` is held again after a pause. The owner reports this once.
    case settled
  }

  /// At most `DiscoverySettings.nameBytesMax` bytes.
  private(set) var current: String
  private let base: String
  private let kind: Kind
  private var number: UInt64 = 1
  private var alternatives = 0
  private var pauses = Backoff(first: Self.firstPause, longest: Self.longestPause)
  private var state = State.claiming
  /// Whether a pause has begun and no name has settled since.
  private(set) var isContested = false

  init(_ name: String, _ kind: Kind) {
    current = name
    base = name
    self.kind = kind
  }

  var isResting: Bool {
    if case .resting = state { true } else { false }
  }

  /// The time at which `due` must be called.
  var deadline: Instant {
    switch state {
    case .claiming: .never
    case .held(let since): isContested ? since + Self.settleTime : .never
    case .resting(let until, _): until
    }
  }

  /// Notes that `current` is claimed again, because something that it refers to has changed.
  mutating func claimedAgain(now: Instant) {
    if !isResting { leave(now) }
  }

  /// Notes that `current` is established.
  mutating func held(now: Instant) {
    if case .claiming = state { state = .held(since: now) }
  }

  /// Notes that another machine has `current`. Returns true if a new `current` must be claimed at once; false if
  /// nothing is claimed until `deadline`.
  mutating func lost(now: Instant) -> Bool {
    if isResting { return false }
    leave(now)
    if alternatives == Self.alternativesMax {
      rest(now, isTaken: true)
      return false
    }
    alternatives += 1
    take(number + 1)
    return true
  }

  /// Notes that `current` could not be claimed for another reason. It is claimed again at `deadline`.
  mutating func failed(now: Instant) {
    if isResting { return }
    leave(now)
    rest(now, isTaken: false)
  }

  /// The action that is due. `random` is any number.
  mutating func due(now: Instant, random: UInt64) -> Due {
    if now < deadline { return .nothing }
    switch state {
    case .claiming: return .nothing
    case .held:
      isContested = false
      return .settled
    case .resting(_, let isTaken):
      state = .claiming
      if isTaken {
        alternatives = 0
        take(Self.randomNumbers.lowerBound + random % (Self.randomNumbers.upperBound - Self.randomNumbers.lowerBound))
      }
      return .claim
    }
  }

  private mutating func leave(_ now: Instant) {
    if case .held(let since) = state, now - since >= Self.lastingTime {
      alternatives = 0
      pauses.reset()
    }
    state = .claiming
  }

  private mutating func rest(_ now: Instant, isTaken: Bool) {
    isContested = true
    state = .resting(until: now + pauses.take(), isTaken: isTaken)
  }

  private mutating func take(_ number: UInt64) {
    self.number = number
    let suffix = Array("\(kind.separator)\(number)".utf8)
    let head = cutUTF8(Array(base.utf8), bytesMax: DiscoverySettings.nameBytesMax - suffix.count)
    current = String(decoding: head + suffix, as: UTF8.self)
  }
}

/// Messages about a responder's names: the event, and the remedy.
enum NameReport {
  /// Other machines hold every name that was claimed.
  static func taken(_ kind: ClaimedName.Kind) -> String {
    let what =
      switch kind {
      case .service: "service name"
      case .host: "host name"
      }
    return
      "another machine on the network claims every \(what) of this box: other nodes cannot find it by DNS-SD. New names "
      + "are tried within \(pauseSeconds) s. Disconnect that machine, or list this box under [ip] peers of the others"
  }

  /// `reason`: the error text of Avahi.
  static func failed(_ reason: String) -> String {
    "this box cannot be announced by DNS-SD (\(reason)): it tries again within \(pauseSeconds) s. If this persists, "
      + "restart avahi-daemon, or causeway where there is none"
  }

  private static var pauseSeconds: UInt64 { ClaimedName.longestPause.milliseconds / 1000 }

  static func settled(_ name: String) -> String { "this box is announced again, as \(name)" }
}
