import Identity
import Primitives
import SecureTransport

/// Decides which nodes are trusted, by deny-lists, pins, certificates and the known time.
///
/// It is the `PeerJudge` of links and of end-to-end sessions. For names, which are known later, call
/// `refusal(of:named:proof:)`. `saveIfChanged` saves pins of first use; every other change is saved at once. Saving may
/// only begin a write in the background (`TrustStore.writeInBackground`).
public final class TrustKeeper: PeerJudge {
  public let policy: TrustPolicy
  /// The trust anchors. After changing them the caller must check the links again.
  public var anchors: TrustAnchors
  public let store: TrustStore
  /// Alarms about keys that were offered under names of other keys.
  public internal(set) var alarms = TrustAlarms()
  /// Nodes that were refused recently.
  public internal(set) var strangers = RefusedStrangers()
  /// Whether there are changes, such as pins of first use, that are not saved yet.
  public internal(set) var hasUnsaved = false
  /// The number of proven keys whose names were not pinned, because a rate was exceeded or the table was full.
  public private(set) var unpinnedCount: UInt64 = 0
  private var firstUse = FirstUsePins()
  /// Keys used since the start whose use is saved or about to be saved.
  private var usedKeys: [NodeID] = []

  public let identity: NodeIdentity
  /// The nodes whose deny-lists are accepted.
  let operators: [NodeID]
  /// All deny-lists in force, signed, including this node's own list.
  public internal(set) var lists: [HeldDenyList] = []
  private var steadyClock = SteadyClock()
  private let clock: () -> (seconds: Int64, isSynchronised: Bool)

  /// `clock` returns the wall clock: seconds since 1970, and whether it is synchronised.
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

  /// Saves a synchronised time that is later than the saved one, as the floor for the next boot without a clock. Only a
  /// clock that was steady for `SteadyClock.time` raises the floor, so one wrong answer from a time server does not.
  /// `uptimeSeconds` is a monotonic clock.
  public func keepTime(uptimeSeconds: Int64) throws(IdentityError) {
    let now = clock()
    steadyClock.look(wall: now.seconds, isSynchronised: now.isSynchronised, uptime: uptimeSeconds)
    // One write per day is enough and reduces wear of the card.
    guard steadyClock.isSteady(uptime: uptimeSeconds), now.seconds >= store.state.keptSeconds + 86_400 else { return }
    store.state.keptSeconds = now.seconds
    try save()
  }

  // MARK: Decisions

  public func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal? { refusal(of: chain, peer, from: 0) }

  /// Checks deny-lists and, if the policy requires it, the chain. `source` is the address from which the peer came, as
  /// admission charges it; 0 for none.
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
      // It is uncertain whether the validity has begun; checked again once the clock is synchronised.
      case .trusted, .trustedForNow: return nil
      case .refused(let refusal): return refusal
      }
    }
  }

  /// Checks deny-lists and the name that the peer claims, including similar names (`nameSkeleton`).
  ///
  /// A `proof` means that the peer has just proved its key. Two effects require it, because an advertisement may be
  /// old, for example from this node's own former key. Under `firstUse` an unused name is pinned to the peer, within
  /// the rate and while a place is free. A name of another key raises an alarm.
  public func refusal(of peer: NodeID, named name: [UInt8], proof: KeyProof?) -> PeerRefusal? {
    let refusal = judge(peer, name, proof)
    if let refusal { strangers.note(peer, name, refusal, from: proof?.source ?? 0) }
    return refusal
  }

  private func judge(_ peer: NodeID, _ name: [UInt8], _ proof: KeyProof?) -> PeerRefusal? {
    if isDenied(peer) { return .denied }
    let skeleton = nameSkeleton(name)
    if let pin = store.state.pins.first(where: { $0.holds(skeleton) && $0.node != peer }) {
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
    // A key has one self-chosen name; a new name replaces it. Pins by the operator stay.
    if let index = store.state.pins.firstIndex(where: { $0.node == pin.node && !$0.isByOperator }) {
      alarms.rename(store.state.pins[index], to: pin)
      store.state.pins[index] = pin
    } else if store.state.pins.count < TrustLimits.pinsMax && firstUse.take(proof) {
      store.state.pins.append(pin)
    } else {
      unpinnedCount &+= 1
      return
    }
    hasUnsaved = true
  }

  /// Moves a peer's pin of first use to the end of the list. The first one is evicted when the operator pins another
  /// key. The first use since the start is saved; later uses are saved only with other changes, which reduces wear of
  /// the card.
  private func noteUse(of peer: NodeID) {
    guard let index = store.state.pins.firstIndex(where: { $0.node == peer && !$0.isByOperator }) else { return }
    store.state.pins.append(store.state.pins.remove(at: index))
    if usedKeys.contains(peer) { return }
    if usedKeys.count >= TrustLimits.pinsMax { usedKeys.removeFirst() }
    usedKeys.append(peer)
    hasUnsaved = true
  }

  /// The number of pins that the operator has not verified.
  public var unverifiedCount: Int { store.state.pins.count { !$0.isByOperator } }

  /// The number of free places for pins, as far as it concerns the operator.
  public var pinsLeft: PinsLeft {
    if store.state.pins.count < TrustLimits.pinsWarned || unverifiedCount == 0 { return .many }
    return store.state.pins.count < TrustLimits.pinsMax ? .few : .none
  }

  /// The fault of the anchors in one line; nil if there is none. Only the policy `ca` needs anchors.
  public var anchorFault: String? {
    guard policy == .authority else { return nil }
    guard let first = anchors.faults.first(where: { $0.isClosing }) ?? anchors.faults.first else {
      return anchors.certificateCount > 0
        ? nil : "[trust] policy is ca, but there is no authority's certificate: only pinned peers are accepted"
    }
    let more = anchors.faults.count - 1
    return "\(first.text)\(more > 0 ? "; and \(more) more" : ""); \(first.effect)"
  }

  /// Whether the peer has a pin.
  public func isPinned(_ peer: NodeID) -> Bool { store.state.pins.contains { $0.node == peer } }

  /// Whether the operator pinned the peer, rather than the node by trust on first use.
  public func isPinnedByOperator(_ peer: NodeID) -> Bool {
    store.state.pins.contains { $0.node == peer && $0.isByOperator }
  }

  public var pins: [Pin] { store.state.pins }

  /// Notes that the state in memory differs from the saved state, so that `saveIfChanged` writes it.
  public func noteUnsaved() { hasUnsaved = true }

  /// Notes that the node has adopted a later epoch than that of this start (`TrustStore.epochRaised`).
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

  /// Saves the state. If that fails, restores `before` and throws.
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
  /// Why nodes with the same anchors refuse this box; nil if they accept it, or may accept it at another time.
  public var ownRefusal: String? {
    if case .refused(let refusal) = identity.chain.evaluate(anchors, time) { return "\(refusal.text)" }
    return nil
  }
}
