import Primitives

/// Decides when this node raises its boot epoch, because an advertisement under its key is newer than its own. RFC
/// 2328, section 13.4, does the same with sequence numbers.
///
/// Usually this node's stored epoch counter was lost, and others still have its advertisements from before. The node
/// answers the first of its former advertisements immediately, by advertising under a later epoch. Another
/// advertisement that is about as old as this node's last answer is also answered immediately. An advertisement of that
/// age was kept by a part of the network that was unreachable.
///
/// An advertisement that was made after the last answer means that another node uses the key: a rival. Two nodes with
/// one key must not race, so each node answers only after a pause, which doubles.
struct EpochRecovery {
  static let pauseMin = TimeSpan.seconds(60)
  static let pauseMax = TimeSpan.seconds(3_600)
  /// The age of an advertisement is not signed. So only this many former advertisements are answered immediately, and
  /// further ones once in `formerPause`. Beyond this number, each former advertisement is also reported as a rival's.
  /// So a false age cannot hide a rival for longer.
  static let formersMax = 4
  static let formerPause = TimeSpan.seconds(600)

  /// The latest epoch among the advertisements that this node must answer, or zero for none.
  private(set) var rival: UInt64 = 0
  private var answeredAt: Instant?
  private var backoff = Backoff(first: Self.pauseMin, longest: Self.pauseMax)
  /// How many former advertisements were answered immediately, and when all `formersMax` answers are available again.
  /// `isFormer` is whether `rival` is from a former advertisement.
  private var formers = 0
  private var formersBackAt = Instant.zero
  private var isFormer = false
  /// Whether the raised epoch must still be reported, so that it is stored.
  private var isReportDue = false

  /// Records an advertisement under this node's key that was made `age` ago and is newer than this node's own. Returns
  /// true if another node must be using the key.
  mutating func receive(_ epoch: UInt64, age: TimeSpan, now: Instant) -> Bool {
    guard let answeredAt else {
      rival = max(rival, epoch)
      return false
    }
    // Every node limits the age of a newer advertisement to the age of the advertisement that is replaced
    // (`Mesh.install`). So a former advertisement appears about as old as this node's last answer. A rival makes its
    // advertisement after that answer has arrived, so a rival's advertisement appears much younger.
    let mayAnswer = formersBackAt <= now + Self.formerPause * UInt64(Self.formersMax - 1)
    let isOld = now - answeredAt < age * 2 && mayAnswer
    isFormer = isOld && (isFormer || rival == 0)
    rival = max(rival, epoch)
    return !isOld || formers >= Self.formersMax
  }

  /// When the node takes an epoch later than `rival`, or `.never`.
  var deadline: Instant {
    if rival == 0 { return .never }
    if isFormer { return .zero }
    return answeredAt.map { $0 + backoff.pause } ?? .zero
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
      backoff.double()
    }
    isFormer = false
    answeredAt = now
    isReportDue = true
    return (counter + 1) << 32 | current & UInt64(UInt32.max)
  }

  /// Whether a raised epoch was not reported yet. The next call returns false.
  mutating func takeReport() -> Bool {
    defer { isReportDue = false }
    return isReportDue
  }
}
