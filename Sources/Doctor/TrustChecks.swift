import CSystem
import Configuration
import Identity
import Primitives
import Trust

/// Checks of trust: whether this box can verify other nodes' certificates, and whether other boxes accept this box's
/// own.
extension Doctor {
  /// Checks the trust anchors and the stored identity. If this user lacks the permission to read a file of the
  /// identity, the finding is a note.
  func trust() -> [Finding] {
    let anchors = TrustAnchors(directory: machine.path(configuration.trust.anchors))
    // The box's own chain is evaluated first. The box's chain can contain the issuer of a revocation list, and that
    // list is then not reported as unmatched.
    let own = identity(anchors)
    let findings = self.anchors(anchors) + own
    if findings.contains(where: { $0.state == .wrong }) { return findings }
    return findings + [Finding("trust", .good, "policy \(configuration.trust.policy.name)")]
  }

  private func anchors(_ anchors: TrustAnchors) -> [Finding] {
    let matters = configuration.trust.policy == .authority
    var findings = anchors.faults.prefix(Self.faultsMax).map { fault in
      Finding(
        "anchors", matters ? .wrong : .note, matters ? "\(fault.text); \(fault.effect)" : fault.text,
        remedy: "correct or remove the file; then causeway reload")
    }
    if matters {
      if anchors.faults.isEmpty && anchors.certificateCount == 0 {
        findings.append(
          Finding(
            "anchors", .wrong,
            "[trust] policy is ca, but \(configuration.trust.anchors) has no certificate: only pinned peers are accepted",
            remedy: "put the authority's certificate there; then causeway reload"))
      }
      for text in anchors.outdated(at: time).prefix(Self.faultsMax) {
        findings.append(
          Finding(
            "anchors", .note, "\(text): certificates revoked since then are accepted",
            remedy: "put its newest list into \(configuration.trust.anchors); then causeway reload"))
      }
      for text in anchors.unmatched.prefix(Self.faultsMax) {
        findings.append(
          Finding(
            "anchors", .note, "\(text): it applies only below an authority of exactly this name that peers present",
            remedy: "check that it is the intended list; lists of the anchors have the anchors' names"))
      }
    }
    return findings
  }

  private var time: TrustTime { TrustTime(kept: 0, wall: clock.seconds, isSynchronised: clock.isSynchronised) }

  /// The maximum number of findings of one kind, such as faults of anchors.
  private static let faultsMax = 8

  private func identity(_ anchors: TrustAnchors) -> [Finding] {
    let path = machine.path(configuration.node.stateDirectory)
    // `directories` already reports a missing state directory.
    guard machine.exists(configuration.node.stateDirectory + "/.") else { return [] }
    do throws(IdentityError) {
      let directory = try StateDirectory(path)
      // Before the daemon's first start the box has no key, which is not a fault.
      guard directory.has("node.key") else { return [] }
      guard let identity = try NodeIdentity.load(directory) else { return [] }
      let store = try TrustStore(directory)
      var findings: [Finding] = []
      if let notice = identity.notice { findings.append(Finding("identity", .wrong, notice)) }
      if let notice = store.notice {
        findings.append(Finding("trust-state", .wrong, notice, remedy: "causeway identity show"))
      }
      if let fault = identity.chainFault {
        findings.append(
          Finding("identity", .wrong, fault, remedy: "causeway identity import FILE --replace, with another chain"))
      } else if !identity.isForServers {
        findings.append(
          Finding(
            "identity", .note, "this box's certificate does not allow serverAuth: others cannot dial this box",
            remedy: "issue it with clientAuth and serverAuth"))
      }
      if isJudged(by: anchors) {
        findings += verdict(identity, store, anchors)
      } else {
        for note in identity.chainNotes(at: time.seconds) {
          findings.append(Finding("identity", .note, note, remedy: "causeway identity import FILE --replace"))
        }
      }
      return findings
    } catch {
      if case .unreadable(_, EACCES) = error {
        return [Finding("identity", .note, error.text, remedy: "run this as root")]
      }
      return [Finding("identity", .wrong, error.text)]
    }
  }

  /// Whether the anchors of this box decide which certificates are accepted.
  private func isJudged(by anchors: TrustAnchors) -> Bool {
    configuration.trust.policy == .authority && anchors.faults.isEmpty && anchors.certificateCount > 0
  }

  /// Checks whether other boxes that have the same trust anchors accept this box's certificate.
  private func verdict(_ identity: NodeIdentity, _ store: TrustStore, _ anchors: TrustAnchors) -> [Finding] {
    let clock = clock
    let keeper = TrustKeeper(
      identity, store, policy: .authority, anchors: anchors, operators: configuration.trust.operators,
      clock: { (clock.seconds, clock.isSynchronised) })
    guard let refusal = keeper.ownRefusal else { return [] }
    return [
      Finding(
        "identity", .note, "others with the same anchors refuse this box: \(refusal)",
        remedy: "causeway identity import FILE --replace")
    ]
  }
}
