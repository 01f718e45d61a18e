import Primitives

/// A name that only one machine of a network can have (RFC 6762, section 9): the service's instance name, or the host
/// name. The type is pure: it makes no system call.
///
/// After a conflict the box claims an alternative name at once: "name #2", "name #3", … Another machine can claim each
/// alternative as well. After `alternativesMax` conflicts the box pauses, and then claims names with a random number.
/// So a machine that claims every name keeps the box unannounced for at most one pause after its last claim.
struct ClaimedName {
  /// The number of alternative names that the box claims before a pause.
  static let alternativesMax = 8
  static let firstPause = TimeSpan.seconds(5)
  /// The longest pause after conflicts. A claim takes about a second (RFC 6762, section 8.1). So a name is announced
  /// within 60 s after the last conflict.
  static let longestPause = TimeSpan.seconds(40)
  /// If a name has no conflict for this time after a pause, the owner reports that the box is announced again.
  static let settleTime = TimeSpan.seconds(5)
  /// After a name had no conflict for this time, the count of alternatives and the length of pauses start again.
  static let lastingTime = TimeSpan.seconds(60)
  /// Random numbers have up to nine digits, and are larger than the numbers of the alternatives before a pause.
  static let randomNumbers: ClosedRange<UInt64> = 1000...999_999_999

  enum Kind {
    case service, host

    /// The text between a name and its number, as in Avahi's own alternative names.
    var separator: String {
      switch self {
      case .service: " #"
      case .host: "-"
      }
    }
  }

  private enum State {
    /// The name is claimed, and it is not yet certain that no other machine has it.
    case claiming
    case held(since: Instant)
    /// A pause: no name is claimed. `isTaken` states whether the reason is that other machines have all claimed names.
    case resting(until: Instant, isTaken: Bool)
  }

  /// The action that the owner must carry out after calling `due`.
  enum Due: Equatable {
    case nothing
    /// The owner must claim `current`.
    case claim
    /// `current` had no conflict for `settleTime` after a pause. The owner reports this once.
    case settled
  }

  /// The name to claim, or the claimed name: at most `DiscoverySettings.nameBytesMax` bytes.
  private(set) var current: String
  private let base: String
  private let kind: Kind
  private var number: UInt64 = 1
  private var alternatives = 0
  private var pauses = Backoff(first: Self.firstPause, longest: Self.longestPause)
  private var state = State.claiming
  /// Whether a pause has begun, and since then no name was without conflict for `settleTime`.
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

  /// Records that `current` is claimed again, because a record of the service or host has changed.
  mutating func claimedAgain(now: Instant) {
    if !isResting { leave(now) }
  }

  /// Records that no other machine has `current`.
  mutating func held(now: Instant) {
    if case .claiming = state { state = .held(since: now) }
  }

  /// Records that another machine has `current`. Returns true if the owner must claim the new `current` at once; false
  /// if a pause of claiming begins.
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

  /// Records that `current` could not be claimed for a reason other than a conflict. The owner claims `current` again
  /// at `deadline`.
  mutating func failed(now: Instant) {
    if isResting { return }
    leave(now)
    rest(now, isTaken: false)
  }

  /// Returns the action that is due. `random` is a random number, from which the next claimed name may be made.
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

/// The messages for the operator about the names that a responder claims.
enum NameReport {
  /// The message that other machines have every name that was claimed.
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

  /// The message that a name could not be claimed. `reason` is Avahi's error text.
  static func failed(_ reason: String) -> String {
    "this box cannot be announced by DNS-SD (\(reason)): it tries again within \(pauseSeconds) s. If this persists, "
      + "restart avahi-daemon, or causeway where there is none"
  }

  private static var pauseSeconds: UInt64 { ClaimedName.longestPause.milliseconds / 1000 }

  static func settled(_ name: String) -> String { "this box is announced again, as \(name)" }
}
