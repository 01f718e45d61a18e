import Primitives

/// A name that one machine of a network may have (RFC 6762, section 9): the service's instance name, or the host name. Pure.
///
/// After a conflict another name is claimed at once: "name #2", "name #3", … Any machine can claim each of them as well. After
/// `alternativesMax` names a pause follows, and then names with a random number, so that a machine that claims names without an
/// end silences the box no longer than the pause after its last claim.
struct ClaimedName {
  /// How many other names are claimed before a pause.
  static let alternativesMax = 8
  static let firstPause = TimeSpan.seconds(5)
  /// With the time of a claim (RFC 6762, section 8.1), a name is announced within 60 s after the last conflict.
  static let longestPause = TimeSpan.seconds(40)
  /// A name that is held for so long is reported as announced again.
  static let settleTime = TimeSpan.seconds(5)
  /// A name that was held for so long had no rival: the count of alternatives and the pauses start again.
  static let lastingTime = TimeSpan.seconds(60)
  /// Random numbers have up to nine digits, and are above those of the first alternatives.
  static let randomNumbers: ClosedRange<UInt64> = 1000...999_999_999

  enum Kind {
    case service, host

    /// Between a name and its number, as Avahi writes them.
    var separator: String {
      switch self {
      case .service: " #"
      case .host: "-"
      }
    }
  }

  private enum State {
    /// Claimed, and not yet held.
    case claiming
    case held(since: Instant)
    /// Nothing is claimed. `isTaken`: other machines have the names that were claimed.
    case resting(until: Instant, isTaken: Bool)
  }

  /// The action that `due` asks for.
  enum Due: Equatable {
    case nothing
    /// `current` is to be claimed.
    case claim
    /// `current` is held again after a pause: to be reported, once.
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
  /// True from a pause until a name has settled.
  private(set) var isContested = false

  init(_ name: String, _ kind: Kind) {
    current = name
    base = name
    self.kind = kind
  }

  var isResting: Bool {
    if case .resting = state { true } else { false }
  }

  /// When `due` is to be called.
  var deadline: Instant {
    switch state {
    case .claiming: .never
    case .held(let since): isContested ? since + Self.settleTime : .never
    case .resting(let until, _): until
    }
  }

  /// `current` is claimed again, because something that it refers to has changed.
  mutating func claimedAgain(now: Instant) {
    if !isResting { leave(now) }
  }

  /// `current` is established.
  mutating func held(now: Instant) {
    if case .claiming = state { state = .held(since: now) }
  }

  /// Another machine has `current`. True: another `current` is to be claimed at once. False: nothing is, until `deadline`.
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

  /// `current` cannot be claimed for another reason; it is claimed again at `deadline`.
  mutating func failed(now: Instant) {
    if isResting { return }
    leave(now)
    rest(now, isTaken: false)
  }

  /// `random` is any number.
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
  /// Other machines have every name that was claimed.
  static func taken(_ kind: ClaimedName.Kind) -> String {
    let what =
      switch kind {
      case .service: "service name"
      case .host: "host name"
      }
    return "another machine on the network claims each \(what) of this box: others cannot find it by DNS-SD. New names "
      + "are tried within \(pauseSeconds) s. Disconnect that machine, or list this box under [ip] peers of the others"
  }

  /// `reason`: what Avahi returned.
  static func failed(_ reason: String) -> String {
    "this box cannot be announced by DNS-SD (\(reason)): it tries again within \(pauseSeconds) s. If this stays, "
      + "restart avahi-daemon, or causeway where there is none"
  }

  private static var pauseSeconds: UInt64 { ClaimedName.longestPause.milliseconds / 1000 }

  static func settled(_ name: String) -> String { "this box is announced again, as \(name)" }
}
