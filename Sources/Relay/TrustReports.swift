import Journal
import Log
import Primitives
import SecureTransport
import Status
import Text
import Trust

/// Reports each change in the trust of this node once, and describes the trust for the status.
final class TrustReports {
  private let trust: TrustKeeper
  private let journal: Journal
  private let faults: FaultReports
  /// The serial numbers of the deny-lists (lists of revoked keys) against which the links were last checked.
  private var deniedSeen: [UInt64] = []
  /// The value of `TrustKeeper.pinsLeft` that was reported last.
  private var pinsLeft = PinsLeft.many
  private var unpinnedReported: UInt64 = 0
  private var wasSynchronised: Bool

  init(_ trust: TrustKeeper, _ journal: Journal, _ faults: FaultReports) {
    self.trust = trust
    self.journal = journal
    self.faults = faults
    wasSynchronised = trust.time.isSynchronised
  }

  /// Reports new alarms. The method is called at the end of each pass of the event loop. Returns true if a deny-list is
  /// new and the links must be checked against that list.
  func report(_ now: Instant) -> Bool {
    for (alarm, isFirst) in trust.takeFreshAlarms() {
      // The first alarm about a pin is always written. Later alarms about that pin are counted if the journal has many
      // equal lines.
      let pinned = trust.isPinnedByOperator(alarm.pinned) ? alarm.pinned : .none
      let cause = RecordCause.interface(0).about(pinned)
      journal.report(.error, at: now, "trust", alarm.text, cause: cause, isCounted: !isFirst)
      say("trust", alarm.text)
    }
    if trust.unpinnedCount != unpinnedReported {
      unpinnedReported = trust.unpinnedCount
      journal.report(
        .warning, at: now, "trust",
        "a peer is linked without a pin of its name: too many new names in a short time, or all pins are in use",
        cause: .interface(0))
    }
    if deniedSeen != trust.lists.map({ $0.serial }) {
      deniedSeen = trust.lists.map { $0.serial }
      if trust.isSelfDenied { journal.report(.error, at: now, "trust", "this box's own key is revoked by an operator") }
      return true
    }
    return false
  }

  /// Warns once when half of the pins are in use, and once when all are in use. The status shows the fault while the
  /// shortage lasts.
  func reportPins() {
    let left = trust.pinsLeft
    if left == pinsLeft { return }
    pinsLeft = left
    faults.resolve("pins")
    let remedy =
      "some by unverified keys; see causeway identity show, and remove them with causeway identity untrust NAME"
    switch left {
    case .many: faults.report("pins", "more than half of the pins are free again", isFault: false)
    case .few: faults.report("pins", "half of the \(TrustLimits.pinsMax) pins are in use, \(remedy)", isFault: true)
    case .none:
      faults.report(
        "pins", "all \(TrustLimits.pinsMax) pins are in use, and names of new peers are not protected; \(remedy)",
        isFault: true)
    }
  }

  /// Whether the clock has been synchronised since the last call. Certificates are then checked against the new time.
  func clockBecameSynchronised() -> Bool {
    let isSynchronised = trust.time.isSynchronised
    defer { wasSynchronised = isSynchronised }
    return isSynchronised && !wasSynchronised
  }

  // MARK: Status

  /// The trust policy, and the numbers of pins, revocations and anchors, for status.
  var text: String {
    var line = "\(trust.policy.name), \(trust.pins.count) pinned, \(trust.deniedCount) revoked"
    if trust.unverifiedCount > 0 { line += ", \(trust.unverifiedCount) pins unverified" }
    if trust.unpinnedCount > 0 { line += ", \(trust.unpinnedCount) times a name was not pinned" }
    if trust.policy == .authority {
      line += ", \(trust.anchors.certificateCount) anchors, \(trust.anchors.listCount) revocation lists"
      let unmatched = trust.anchors.unmatched.count
      if unmatched > 0 { line += " (\(unmatched) by no authority here)" }
      if !trust.anchors.faults.isEmpty { line += ", \(trust.anchors.faults.count) not understood" }
      if !trust.time.isSynchronised { line += ", clock not synchronised" }
    }
    return line
  }

  /// The most important alarm, in one line; empty if there is none.
  var alarm: String {
    if trust.isSelfDenied { return "this box's own key is revoked by an operator" }
    let all = trust.alarms.all
    guard let first = all.first else { return "" }
    let more = UInt64(all.count - 1) + trust.alarms.missedCount
    return more == 0 ? first.text : "\(first.text); and \(more) more alarms"
  }

  var alarms: [AlarmStatus] {
    trust.alarms.all.map {
      AlarmStatus(
        name: String(decoding: $0.name, as: UTF8.self), pinned: $0.pinned, offered: $0.offered,
        offeredName: String(decoding: $0.offeredName, as: UTF8.self), count: $0.count)
    }
  }

  var strangers: [StrangerStatus] {
    trust.strangers.all.reversed().map {
      StrangerStatus(
        id: $0.id, name: String(decoding: $0.name, as: UTF8.self), reason: text(of: $0), count: $0.count)
    }
  }

  /// Why a node was refused. For a changed key, the text names the command that shows what to do. There is an alarm
  /// only if the node has proved its key and the operator has not decided about it.
  private func text(of stranger: RefusedStranger) -> String {
    if stranger.reason != .keyChanged { return "\(stranger.reason.text)" }
    let hasAlarm = trust.alarms.all.contains { $0.offered == stranger.id }
    return "\(stranger.reason.text); see: causeway \(hasAlarm ? "identity alarms" : "explain \(stranger.id.shortText)")"
  }
}
