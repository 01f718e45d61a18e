import Primitives

/// Decides when this node takes a later epoch because an advertisement with its key is newer than its own (RFC 2328,
/// 13.4, for sequence numbers).
///
/// Usually the stored epoch counter was lost, and others still hold advertisements of a former start: the first time
/// the node answers at once, and so it does when one comes that is about as old as its last answer: others kept it while
/// they were out of reach. If a newer one was made later, another node uses the key. Two such nodes must not race,
/// so from then on each answers after a pause that doubles.
struct EpochContest {
  static let pauseMin = TimeSpan.seconds(60)
  static let pauseMax = TimeSpan.seconds(3_600)
  /// The age of an advertisement is not signed, so only so many are answered at once for their age, and then one in every
  /// `formerPause`. Nor can a false age hide a rival for longer: after so many in all each is a rival's.
  static let formersMax = 4
  static let formerPause = TimeSpan.seconds(600)

  /// The latest epoch that another advertisement claims; zero for none.
  private(set) var rival: UInt64 = 0
  private var answeredAt: Instant?
  private var pause = Self.pauseMin
  /// How many were answered for their age, when all of these answers are given back, and whether `rival` is to be.
  private var formers = 0
  private var formersBackAt = Instant.zero
  private var isFormer = false

  /// An advertisement with this node's key and a later epoch was heard, which was made `age` ago. True when another node
  /// must be using the key.
  mutating func heard(_ epoch: UInt64, age: TimeSpan, now: Instant) -> Bool {
    guard let answeredAt else {
      rival = max(rival, epoch)
      return false
    }
    // Nobody holds a newer word for older than the answer that it held before (`Mesh.install`), so a former one looks
    // about as old as the answer; a rival's, which was made when that had come, much younger.
    let mayAnswer = formersBackAt <= now + Self.formerPause * UInt64(Self.formersMax - 1)
    let isOld = now - answeredAt < age * 2 && mayAnswer
    isFormer = isOld && (isFormer || rival == 0)
    rival = max(rival, epoch)
    return !isOld || formers >= Self.formersMax
  }

  /// When the node takes an epoch later than `rival`.
  var deadline: Instant {
    if rival == 0 { return .never }
    if isFormer { return .zero }
    return answeredAt.map { $0 + pause } ?? .zero
  }

  /// The epoch to take now: the counter in the upper half one higher, the random lower half of `current`. Nil when it is
  /// not due, or when there is no higher counter.
  mutating func next(current: UInt64, now: Instant) -> UInt64? {
    guard deadline <= now else { return nil }
    let counter = rival >> 32
    rival = 0
    guard counter < UInt64(UInt32.max) else { return nil }
    if isFormer {
      formers = min(formers + 1, Self.formersMax)
      formersBackAt = max(formersBackAt, now) + Self.formerPause
    } else if answeredAt != nil {
      pause = min(pause * 2, Self.pauseMax)
    }
    isFormer = false
    answeredAt = now
    return (counter + 1) << 32 | current & UInt64(UInt32.max)
  }
}
