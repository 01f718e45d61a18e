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

/// A key came under a name that is another's.
public struct TrustAlarm: Equatable, Sendable {
  public var name: [UInt8]
  public var pinned: NodeID
  public var offered: NodeID
  /// How often, until the pin goes or another key tries.
  public var count: UInt64
}

/// Decides whom this node has to do with: by deny-lists, pins, certificates and what is known of the time.
///
/// For links and for the far ends of inner sessions it is the `PeerJudge`; for names, which come later, ask
/// `refusal(of:named:)`. Pins of first sight are written by `saveIfChanged`, everything else before the call returns.
public final class TrustKeeper: PeerJudge {
  public let policy: TrustPolicy
  /// Whoever sets others lets the links be judged anew.
  public var anchors: TrustAnchors
  public let store: TrustStore
  /// What the last key change was; nil when there is none to worry about.
  public private(set) var alarm: TrustAlarm?
  /// The alarm is another one since this was last set to false.
  public var isAlarmNew = false
  /// Pins of first sight that are not on disk yet.
  public private(set) var hasUnsaved = false

  public let identity: NodeIdentity
  /// Nodes whose deny-lists count.
  let operators: [NodeID]
  /// Every deny-list that counts here, signed, this node's own among them.
  public internal(set) var lists: [HeldDenyList] = []
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

  /// Keep a synchronised time that is later than what was kept, so that the next boot without a clock begins there.
  public func keepTime() throws(IdentityError) {
    let time = time
    // A write a day is enough, and spares the card.
    guard time.isSynchronised, time.seconds >= store.state.keptSeconds + 86_400 else { return }
    store.state.keptSeconds = time.seconds
    try save()
  }

  // MARK: Deciding

  /// By deny-list and, where the policy asks for it, by the chain.
  public func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal? {
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

  /// By deny-list and by the name that the peer gives itself. Under `firstUse` a name that nobody has is the peer's from
  /// now on.
  public func refusal(of peer: NodeID, named name: [UInt8]) -> PeerRefusal? {
    if isDenied(peer) { return .denied }
    if let pin = store.state.pins.first(where: { $0.name == name }) {
      if pin.node == peer { return nil }
      raiseAlarm(name, pin.node, peer)
      return .keyChanged
    }
    guard policy == .firstUse else { return nil }
    if let index = store.state.pins.firstIndex(where: { $0.node == peer }) {
      // One key has one name: it takes the new one along.
      store.state.pins[index].name = name
    } else {
      if store.state.pins.count >= TrustLimits.pinsMax { return .pinsFull }
      store.state.pins.append(Pin(node: peer, name: name, isByOperator: false))
    }
    hasUnsaved = true
    return nil
  }

  /// Whether the peer is one that was met and pinned before.
  public func isPinned(_ peer: NodeID) -> Bool { store.state.pins.contains { $0.node == peer } }

  private func raiseAlarm(_ name: [UInt8], _ pinned: NodeID, _ offered: NodeID) {
    if let known = alarm, known.offered == offered, known.name == name {
      alarm?.count &+= 1
      return
    }
    alarm = TrustAlarm(name: name, pinned: pinned, offered: offered, count: 1)
    isAlarmNew = true
  }

  // MARK: Pins

  public var pins: [Pin] { store.state.pins }

  /// Pin a key by the operator's word, with a name or without one. A pin of the name or of the key gives way.
  public func pin(_ node: NodeID, named name: [UInt8]) throws(TrustError) {
    if isDenied(node) { throw .isRevoked }
    let before = store.state
    store.state.pins.removeAll { $0.node == node || (!name.isEmpty && $0.name == name) }
    if store.state.pins.count >= TrustLimits.pinsMax {
      store.state = before
      throw .pinsFull
    }
    store.state.pins.append(Pin(node: node, name: name, isByOperator: true))
    try saveOr(before)
    if alarm?.name == name { alarm = nil }
  }

  /// Forget the pins of a name or of a key. Gives how many there were.
  public func unpin(name: [UInt8], node: NodeID?) throws(TrustError) -> Int {
    let before = store.state
    store.state.pins.removeAll { $0.name == name || $0.node == node }
    let count = before.pins.count - store.state.pins.count
    if count > 0 { try saveOr(before) }
    if alarm?.name == name || (node != nil && alarm?.pinned == node) { alarm = nil }
    return count
  }

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

/// Why an operator's wish could not be fulfilled.
public enum TrustError: Error {
  case isRevoked
  case isOwn
  case pinsFull
  case deniedFull
  case notWritten(IdentityError)

  public var text: String {
    switch self {
    case .isRevoked: "this key is revoked, and a revoked key does not come back: give the peer a new one"
    case .isOwn: "this is the box's own key; make another one by: causeway identity new"
    case .pinsFull: "\(TrustLimits.pinsMax) keys are pinned; remove one by: causeway identity untrust NAME"
    case .deniedFull: "as many keys are revoked as a deny-list holds; give the fleet a new authority"
    case .notWritten(let error): error.text
    }
  }
}
