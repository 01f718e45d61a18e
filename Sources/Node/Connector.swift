import Primitives

/// Which candidate to dial, and when.
///
/// Of two nodes that discover each other the one with the lower id dials at once. The other dials only when no link was
/// made in time, because the first may be unable to. A failed dial is retried with growing pauses.
struct Connector {
  struct Candidate {
    var handle: UInt32
    var bearer: BearerKind
    /// First 8 bytes of the id, claimed by discovery or learned from a link; 0 when unknown.
    var hint: UInt64
    var phase: Phase
    /// Failed dials and closed links since a link last came up.
    var failures: UInt32 = 0
  }

  enum Phase: Equatable {
    /// Do not dial before this instant.
    case waiting(Instant)
    case dialling
    /// This dial led to the link in this slot.
    case linked(Int)
  }

  /// Dials under way at once, over all bearers.
  static let dialsMax = 8
  /// How long the node with the higher id waits for the other to dial.
  static let dialDeferral = TimeSpan.seconds(2)
  /// The pause after a failed dial doubles from `pauseMin` to `pauseMiddle`, so that a box that restarts is reached
  /// within seconds. After `retriesMax` failures in a row it is not restarting, and `pauseMax` spares the channel.
  static let pauseMin = TimeSpan.milliseconds(250)
  static let pauseMiddle = TimeSpan.seconds(3)
  static let pauseMax = TimeSpan.seconds(30)
  static let retriesMax: UInt32 = 16

  private let localHint: UInt64
  private(set) var candidates: [Candidate] = []

  init(local: NodeID) {
    localHint = local.high
    candidates.reserveCapacity(Limits.candidatesMax)
  }

  /// False when the table is full and the candidate was dropped.
  mutating func found(_ handle: UInt32, _ bearer: BearerKind, hint: UInt64, now: Instant) -> Bool {
    if hint == localHint { return true }
    if let index = index(of: handle) {
      if hint != 0 { candidates[index].hint = hint }
      return true
    }
    if candidates.count == Limits.candidatesMax { return false }
    let start = hint == 0 || localHint < hint ? now : now + Self.dialDeferral
    candidates.append(Candidate(handle: handle, bearer: bearer, hint: hint, phase: .waiting(start)))
    return true
  }

  mutating func lost(_ handle: UInt32) { candidates.removeAll { $0.handle == handle } }

  mutating func dialFailed(_ handle: UInt32, now: Instant) {
    guard let index = index(of: handle) else { return }
    candidates[index].failures = min(candidates[index].failures + 1, Self.retriesMax)
    candidates[index].phase = .waiting(now + pause(candidates[index]))
  }

  /// A link opened. `handle` is nil when the neighbour dialled.
  mutating func linkOpened(_ slot: Int, _ handle: UInt32?, peer: NodeID) {
    guard let handle, let index = index(of: handle) else { return }
    candidates[index].hint = peer.high
    candidates[index].phase = .linked(slot)
  }

  /// The link came up: count failures from zero again.
  mutating func linkUp(_ slot: Int) {
    for index in candidates.indices where candidates[index].phase == .linked(slot) { candidates[index].failures = 0 }
  }

  /// A link to `peer` closed. Its candidates wait as long as the neighbour asked, or a short pause.
  mutating func linkClosed(_ slot: Int, peer: NodeID, retryAfterSeconds: UInt16, now: Instant) {
    for index in candidates.indices {
      let isThisLink = candidates[index].phase == .linked(slot)
      if isThisLink { candidates[index].failures = min(candidates[index].failures + 1, Self.retriesMax) }
      guard isThisLink || (candidates[index].hint == peer.high && retryAfterSeconds > 0) else { continue }
      let asked = TimeSpan.seconds(UInt64(retryAfterSeconds))
      candidates[index].phase = .waiting(now + max(asked, pause(candidates[index])))
    }
  }

  /// The next candidate to dial; it is then in `.dialling`. `isLinked` says whether a link over `bearer` to the node
  /// with this hint exists.
  mutating func nextDial(now: Instant, isLinked: (_ hint: UInt64, _ bearer: BearerKind) -> Bool) -> UInt32? {
    if isDiallingAll { return nil }
    for index in candidates.indices {
      let candidate = candidates[index]
      guard case .waiting(let start) = candidate.phase, start <= now else { continue }
      if candidate.hint != 0 && (isLinked(candidate.hint, candidate.bearer) || isDialling(like: candidate)) {
        // Checked again after the existing link or dial has had its time.
        candidates[index].phase = .waiting(now + Self.dialDeferral)
        continue
      }
      candidates[index].phase = .dialling
      return candidate.handle
    }
    return nil
  }

  /// When `nextDial` may have a new result.
  var deadline: Instant {
    // The end of a dial is an event.
    if isDiallingAll { return .never }
    var earliest = Instant.never
    for candidate in candidates {
      if case .waiting(let start) = candidate.phase { earliest = min(earliest, start) }
    }
    return earliest
  }

  private func index(of handle: UInt32) -> Int? { candidates.firstIndex { $0.handle == handle } }

  private var isDiallingAll: Bool {
    var dials = 0
    for candidate in candidates where candidate.phase == .dialling { dials += 1 }
    return dials >= Self.dialsMax
  }

  private func isDialling(like other: Candidate) -> Bool {
    candidates.contains { $0.phase == .dialling && $0.hint == other.hint && $0.bearer == other.bearer }
  }

  /// Randomised by up to a quarter, so that two boxes do not dial at the same time.
  private func pause(_ candidate: Candidate) -> TimeSpan {
    let doubled = TimeSpan(nanoseconds: Self.pauseMin.nanoseconds << UInt64(candidate.failures))
    let base = candidate.failures < Self.retriesMax ? min(doubled, Self.pauseMiddle) : Self.pauseMax
    let spread = (localHint ^ UInt64(candidate.handle) &* 0x9E37_79B9_7F4A_7C15) >> 48
    return TimeSpan(nanoseconds: base.nanoseconds + base.nanoseconds / 4 * spread / 65_536)
  }
}
