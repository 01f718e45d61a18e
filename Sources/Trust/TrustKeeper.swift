import Identity
import Primitives
import SecureTransport

/// Decides which nodes are trusted. The decision depends on deny-lists, pins, certificates and the known time.
///
/// Links and end-to-end sessions use the keeper as their `PeerJudge`. The name of a peer is known later than its key,
/// and `refusal(of:named:proof:)` checks the name. `saveIfChanged` saves pins of first use; every other change is saved
/// at once. If `TrustStore.writeInBackground` is enabled, saving only begins a write.
public final class TrustKeeper: PeerJudge {
  public let policy: TrustPolicy
  /// The trust anchors. The caller that sets new anchors must check the peers of all links again.
  public var anchors: TrustAnchors
  public let store: TrustStore
  /// The alarms about keys that were offered under names that are pinned to other keys.
  public internal(set) var alarms = TrustAlarms()
  /// The nodes that were refused most recently.
  public internal(set) var strangers = RefusedStrangers()
  /// Whether the state has unsaved changes, such as pins of first use.
  public internal(set) var hasUnsaved = false
  /// The number of times that the name of a proven key was not pinned, because a rate was exceeded or the table of pins
  /// was full.
  public private(set) var unpinnedCount: UInt64 = 0
  private var firstUse = FirstUsePins()
  /// The keys with pins of first use that were used since the start. The use of these keys is already saved, or
  /// `saveIfChanged` will save this use.
  private var usedKeys: [NodeID] = []

  public let identity: NodeIdentity
  /// The nodes whose deny-lists are accepted.
  let operators: [NodeID]
  /// All deny-lists in force, signed, including this node's own list.
  public internal(set) var lists: [HeldDenyList] = []
  private var steadyClock = SteadyClock()
  private let clock: () -> (seconds: Int64, isSynchronised: Bool)

  /// `clock` returns the time of the wall clock in seconds since 1970, and whether the wall clock is synchronised.
  public init(
    _ identity: NodeIdentity, _ store: TrustStore, policy: TrustPolicy, anchors: TrustAnchors, operators: [NodeID],
    clock: @escaping () -> (seconds: Int64, isSynchronised: Bool)
  ) {
    self.identity = identity
    self.store = store
    self.policy = policy
    self.anchors = anchors
    self.operators = Array(operators.prefix(TrustLimits.operatorsMax))
    self.clock = clock
    updateLists()
  }

  // MARK: Time

  public var time: TrustTime {
    let now = clock()
    return TrustTime(kept: store.state.keptSeconds, wall: now.seconds, isSynchronised: now.isSynchronised)
  }

  /// Saves the current synchronised time if it is at least a day later than the saved time. The saved time is the floor
  /// of `TrustTime` after the next boot. Only a clock that was steady for `SteadyClock.time` raises the floor, so one
  /// wrong answer from a time server has no effect. `uptimeSeconds` is the current time of a monotonic clock.
  public func keepTime(uptimeSeconds: Int64) throws(IdentityError) {
    let now = clock()
    steadyClock.look(wall: now.seconds, isSynchronised: now.isSynchronised, uptime: uptimeSeconds)
    // Writing the time once each day is enough and reduces wear of the card.
    guard steadyClock.isSteady(uptime: uptimeSeconds), now.seconds >= store.state.keptSeconds + 86_400 else { return }
    store.state.keptSeconds = now.seconds
    try save()
  }

  // MARK: Decisions

  public func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal? { refusal(of: chain, peer, from: 0) }

  /// Checks deny-lists and, if the policy requires a valid chain, the chain. Returns nil if the peer is accepted.
  /// `source` is the address of the peer, in the form to which admission charges streams, or 0 if the address is
  /// unknown.
  public func refusal(of chain: PeerChain, _ peer: NodeID, from source: UInt64) -> PeerRefusal? {
    let refusal = judge(chain, peer)
    if let refusal { strangers.note(peer, [], refusal, from: source) }
    return refusal
  }

  private func judge(_ chain: PeerChain, _ peer: NodeID) -> PeerRefusal? {
    if isDenied(peer) { return .denied }
    switch policy {
    case .open, .firstUse: return nil
    case .authority:
      if store.state.pins.contains(where: { $0.node == peer && $0.isByOperator }) { return nil }
      switch chain.evaluate(anchors, time) {
      // For `.trustedForNow` it is uncertain whether the validity period has begun. The chain is evaluated again when
      // the clock is synchronised.
      case .trusted, .trustedForNow: return nil
      case .refused(let refusal): return refusal
      }
    }
  }

  /// Checks deny-lists and the name that the peer claims. The name must not be pinned to another key, and must not be
  /// similar to a name that is pinned to another key (`nameSkeleton`). A pin of first use counts only under the policy
  /// `firstUse`, a pin that the operator set under every policy.
  ///
  /// `proof` states that the peer has just proved its key; nil means that the name is from an advertisement. Two
  /// effects require a proof. Under the policy `firstUse`, an unused name is pinned to the peer if the rate allows
  /// another pin and a slot is free. A name that is pinned to another key raises an alarm. An advertisement has neither
  /// effect, because it may be old, for example from this node's own former key.
  public func refusal(of peer: NodeID, named name: [UInt8], proof: KeyProof?) -> PeerRefusal? {
    let refusal = judge(peer, name, proof)
    if let refusal { strangers.note(peer, name, refusal, from: proof?.source ?? 0) }
    return refusal
  }

  /// The same decision as `refusal(of:named:proof:)`, without any effect: why `peer` is refused under a name now.
  public func refusal(of peer: NodeID, under name: [UInt8]) -> PeerRefusal? {
    if isDenied(peer) { return .denied }
    return pin(against: peer, nameSkeleton(name)) == nil ? nil : .keyChanged
  }

  /// The pin because of which `peer` may not use a name with this skeleton.
  private func pin(against peer: NodeID, _ skeleton: [UInt8]) -> Pin? {
    store.state.pins.first {
      $0.holds(skeleton) && $0.node != peer && ($0.isByOperator || policy == .firstUse)
    }
  }

  private func judge(_ peer: NodeID, _ name: [UInt8], _ proof: KeyProof?) -> PeerRefusal? {
    if isDenied(peer) { return .denied }
    let skeleton = nameSkeleton(name)
    if let pin = pin(against: peer, skeleton) {
      if let proof { alarms.raise(pin, offered: peer, under: name, at: proof.at) }
      return .keyChanged
    }
    guard policy == .firstUse, let proof else { return nil }
    if !store.state.pins.contains(where: { $0.holds(skeleton) && $0.name == name }) {
      pinAtFirstUse(Pin(node: peer, name: name, isByOperator: false), proof)
    }
    noteUse(of: peer)
    return nil
  }

  private func pinAtFirstUse(_ pin: Pin, _ proof: KeyProof) {
    // A key has at most one pin of first use, so a new name of the peer replaces the former name. Pins that the
    // operator set remain.
    let former = store.state.pins.firstIndex { $0.node == pin.node && !$0.isByOperator }
    // A new name costs as much of the rates as a new key, because each is written to the card. A key that alternates
    // between names would otherwise wear the card.
    guard former != nil || store.state.pins.count < TrustLimits.pinsMax, firstUse.take(proof) else {
      unpinnedCount &+= 1
      return
    }
    if let former {
      alarms.rename(store.state.pins[former], to: pin)
      store.state.pins[former] = pin
    } else {
      store.state.pins.append(pin)
    }
    hasUnsaved = true
  }

  /// Moves a peer's pin of first use to the end of the list. When the list is full and the operator pins another key,
  /// the first pin of first use is evicted. The first use of a pin since the start is saved. Later uses are saved only
  /// together with other changes, which reduces wear of the card.
  private func noteUse(of peer: NodeID) {
    guard let index = store.state.pins.firstIndex(where: { $0.node == peer && !$0.isByOperator }) else { return }
    store.state.pins.append(store.state.pins.remove(at: index))
    if usedKeys.contains(peer) { return }
    if usedKeys.count >= TrustLimits.pinsMax { usedKeys.removeFirst() }
    usedKeys.append(peer)
    hasUnsaved = true
  }

  /// The number of pins of first use, which the operator has not verified.
  public var unverifiedCount: Int { store.state.pins.count { !$0.isByOperator } }

  /// How many slots for pins are free, in steps that matter to the operator.
  public var pinsLeft: PinsLeft {
    if store.state.pins.count < TrustLimits.pinsWarned || unverifiedCount == 0 { return .many }
    return store.state.pins.count < TrustLimits.pinsMax ? .few : .none
  }

  /// A line of text about the most important fault of the anchors, or nil without a fault. Only the policy `ca` needs
  /// anchors.
  public var anchorFault: String? {
    guard policy == .authority else { return nil }
    guard let first = anchors.faults.first(where: { $0.isClosing }) ?? anchors.faults.first else {
      return anchors.certificateCount > 0
        ? nil : "[trust] policy is ca, but there is no authority's certificate: only pinned peers are accepted"
    }
    let more = anchors.faults.count - 1
    return "\(first.text)\(more > 0 ? "; and \(more) more" : ""); \(first.effect)"
  }

  /// Whether the peer has a pin, by the operator or of first use.
  public func isPinned(_ peer: NodeID) -> Bool { store.state.pins.contains { $0.node == peer } }

  /// Whether the operator pinned the peer. A pin of first use is not enough.
  public func isPinnedByOperator(_ peer: NodeID) -> Bool {
    store.state.pins.contains { $0.node == peer && $0.isByOperator }
  }

  public var pins: [Pin] { store.state.pins }

  /// Records that the state in memory differs from the saved state, so that `saveIfChanged` writes the state.
  public func noteUnsaved() { hasUnsaved = true }

  /// Records that the node has adopted a later epoch than the epoch of this start (`TrustStore.epochRaised`).
  public func epochRaised(to epoch: UInt64) {
    store.epochRaised(to: epoch)
    noteUnsaved()
  }

  public func saveIfChanged() throws(IdentityError) {
    if hasUnsaved { try save() }
  }

  func save() throws(IdentityError) {
    try store.save()
    hasUnsaved = false
  }

  /// Saves the state. If saving fails, the method restores the state `before` and throws.
  func saveOr(_ before: TrustState) throws(TrustError) {
    do throws(IdentityError) {
      try save()
    } catch {
      store.state = before
      throw .notWritten(error)
    }
  }
}

extension TrustKeeper {
  /// The reason why nodes with the same anchors refuse this box's certificate. The value is nil if these nodes accept
  /// the certificate, or if these nodes may accept the certificate when their clock is synchronised.
  public var ownRefusal: String? {
    if case .refused(let refusal) = identity.chain.evaluate(anchors, time) { return "\(refusal.text)" }
    return nil
  }
}
