import Primitives

/// Decides when this node raises its epoch because an advertisement with its key is newer than its own. RFC 2328,
/// section 13.4, does the same with sequence numbers.
///
/// Usually the stored epoch counter was lost, and others still have advertisements from before. The node answers the
/// first of these immediately. It does the same for one that is about as old as its last answer, because an unreachable
/// part of the network kept it. A newer advertisement that was made later means that another node uses the key. Two
/// such nodes must not race, so each then answers after a pause that doubles.
struct EpochContest {
  static let pauseMin = TimeSpan.seconds(60)
  static let pauseMax = TimeSpan.seconds(3_600)
  /// The age of an advertisement is not signed. Only this many are therefore answered immediately because of their age,
  /// and then one per `formerPause`. A false age also cannot hide a rival for longer: after this many in total, each is
  /// considered a rival's.
  static let formersMax = 4
  static let formerPause = TimeSpan.seconds(600)

  /// The latest epoch that another advertisement claims, or zero for none.
  private(set) var rival: UInt64 = 0
  private var answeredAt: Instant?
  private var pause = Self.pauseMin
  /// How many advertisements were answered because of their age, when all these answers are available again, and
  /// whether `rival` gets one.
  private var formers = 0
  private var formersBackAt = Instant.zero
  private var isFormer = false

  /// Records an advertisement with this node's key and a later epoch, made `age` ago. Returns true if another node must
  /// be using the key.
  mutating func heard(_ epoch: UInt64, age: TimeSpan, now: Instant) -> Bool {
    guard let answeredAt else {
      rival = max(rival, epoch)
      return false
    }
    // A node never considers a newer advertisement older than the answer it replaces (`Mesh.install`). An advertisement
    // from before a restart thus appears about as old as the answer. A rival's is made after the answer arrived, so it
    // appears much younger.
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

  /// The epoch to take now, or nil if none is due or no higher counter exists. The counter in the upper half is one
  /// higher than the rival's; the random lower half is that of `current`.
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
