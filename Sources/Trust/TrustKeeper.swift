import Identity
import Primitives
import SecureTransport

/// Which keys are welcome.
public enum TrustPolicy: UInt8, Sendable {
  /// Every key that is proven.
  case open
  /// Every key; but the name that a key comes with is its own from then on.
  case firstUse
  /// Keys whose chain of certificates leads to an anchor, and keys that the operator pinned.
  case authority

  public var name: StaticString {
    switch self {
    case .open: "open"
    case .firstUse: "first-use"
    case .authority: "ca"
    }
  }
}

/// Decides whom this node has to do with: by deny-lists, pins, certificates and what is known of the time.
///
/// For links and for the far ends of inner sessions it is the `PeerJudge`; for names, which come later, ask
/// `refusal(of:named:isProven:)`. Pins of first sight are written by `saveIfChanged`, everything else before the call
/// returns.
public final class TrustKeeper: PeerJudge {
  public let policy: TrustPolicy
  /// Whoever sets others lets the links be judged anew.
  public var anchors: TrustAnchors
  public let store: TrustStore
  /// Keys that came under names which are others'.
  public internal(set) var alarms = TrustAlarms()
  /// Who was refused lately.
  public internal(set) var strangers = RefusedStrangers()
  /// Pins of first sight that are not on disk yet.
  public internal(set) var hasUnsaved = false

  public let identity: NodeIdentity
  /// Nodes whose deny-lists count.
  let operators: [NodeID]
  /// Every deny-list that counts here, signed, this node's own among them.
  public internal(set) var lists: [HeldDenyList] = []
  private var steadyClock = SteadyClock()
  private let clock: () -> (seconds: Int64, isSynchronised: Bool)

  /// `clock` gives the wall clock: seconds since 1970, and whether the kernel calls it synchronised.
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

  /// Keep a synchronised time that is later than what was kept, so that the next boot without a clock begins there. Only a
  /// clock that has been right for `SteadyClock.time` moves the floor, so that one false answer of a time server does not:
  /// see there. `uptimeSeconds` is any clock that only time moves.
  public func keepTime(uptimeSeconds: Int64) throws(IdentityError) {
    let now = clock()
    steadyClock.look(wall: now.seconds, isSynchronised: now.isSynchronised, uptime: uptimeSeconds)
    // A write a day is enough, and spares the card.
    guard steadyClock.isSteady(uptime: uptimeSeconds), now.seconds >= store.state.keptSeconds + 86_400 else { return }
    store.state.keptSeconds = now.seconds
    try save()
  }

  // MARK: Deciding

  /// By deny-list and, where the policy asks for it, by the chain.
  public func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal? {
    let refusal = judge(chain, peer)
    if let refusal { strangers.note(peer, [], refusal) }
    return refusal
  }

  private func judge(_ chain: PeerChain, _ peer: NodeID) -> PeerRefusal? {
    if isDenied(peer) { return .denied }
    switch policy {
    case .open, .firstUse: return nil
    case .authority:
      if store.state.pins.contains(where: { $0.node == peer && $0.isByOperator }) { return nil }
      switch chain.evaluate(anchors, time) {
      // Valid from a time that may or may not have come: asked again when the clock is synchronised.
      case .trusted, .trustedForNow: return nil
      case .refused(let refusal): return refusal
      }
    }
  }

  /// By deny-list and by the name that the peer gives itself, or one that looks like it (`nameSkeleton`).
  ///
  /// `isProven`: the key has just shown that it lives, by the handshake of a link or of a session. Only then a name that
  /// nobody has becomes the peer's under `firstUse`, and only then a name that is another's is an alarm: an advertisement may
  /// be of a life that is over, of this very node for one.
  public func refusal(of peer: NodeID, named name: [UInt8], isProven: Bool) -> PeerRefusal? {
    let refusal = judge(peer, name, isProven: isProven)
    if let refusal { strangers.note(peer, name, refusal) }
    return refusal
  }

  private func judge(_ peer: NodeID, _ name: [UInt8], isProven: Bool) -> PeerRefusal? {
    if isDenied(peer) { return .denied }
    let skeleton = nameSkeleton(name)
    if let pin = store.state.pins.first(where: { $0.holds(skeleton) && $0.node != peer }) {
      if isProven { alarms.raise(pin, offered: peer, under: name) }
      return .keyChanged
    }
    guard policy == .firstUse, isProven else { return nil }
    if store.state.pins.contains(where: { $0.holds(skeleton) && $0.name == name }) { return nil }
    let pin = Pin(node: peer, name: name, isByOperator: false)
    // One key has one name of its own choice: it takes the new one along. What the operator pinned stays beside it.
    if let index = store.state.pins.firstIndex(where: { $0.node == peer && !$0.isByOperator }) {
      store.state.pins[index] = pin
    } else {
      if store.state.pins.count >= TrustLimits.pinsMax { return .pinsFull }
      store.state.pins.append(pin)
    }
    hasUnsaved = true
    return nil
  }

  /// Whether the peer is one that was met and pinned before.
  public func isPinned(_ peer: NodeID) -> Bool { store.state.pins.contains { $0.node == peer } }

  public var pins: [Pin] { store.state.pins }

  /// What is in memory is not on disk: `saveIfChanged` has something to do.
  public func noteUnsaved() { hasUnsaved = true }

  public func saveIfChanged() throws(IdentityError) {
    if hasUnsaved { try save() }
  }

  func save() throws(IdentityError) {
    try store.save()
    hasUnsaved = false
  }

  /// What could not be written did not happen.
  func saveOr(_ before: TrustState) throws(TrustError) {
    do throws(IdentityError) {
      try save()
    } catch {
      store.state = before
      throw .notWritten(error)
    }
  }
}
