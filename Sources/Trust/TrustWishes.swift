import Identity
import Primitives

/// Commands of the operator. Each command saves its change (`TrustStore`), and throws if there is nothing to change.
extension TrustKeeper {
  /// Pins a key for the operator, with or without a name. Former pins of the key, of the name and of similar names are
  /// removed together with their alarms. If the table is full, the pin of first use that was used longest ago is
  /// evicted and returned.
  @discardableResult public func pin(_ node: NodeID, named name: [UInt8]) throws(TrustError) -> Pin? {
    if node == identity.id { throw .isOwn }
    if isDenied(node) { throw .isRevoked }
    let pin = Pin(node: node, name: name, isByOperator: true)
    let before = store.state
    store.state.pins.removeAll { $0.node == node || $0.holds(pin.skeleton) }
    if before.pins.contains(pin) && before.pins.count == store.state.pins.count + 1 {
      store.state = before
      throw .isPinnedAlready
    }
    var displaced: Pin?
    if store.state.pins.count >= TrustLimits.pinsMax {
      guard let unused = store.state.pins.firstIndex(where: { !$0.isByOperator }) else {
        store.state = before
        throw .pinsFull
      }
      displaced = store.state.pins.remove(at: unused)
    }
    store.state.pins.append(pin)
    try saveOr(before)
    endAlarms(of: before)
    strangers.forget(node)
    return displaced
  }

  /// The key that is pinned under a name or a similar name.
  public func holder(of name: [UInt8]) -> NodeID? {
    let skeleton = Pin(node: .none, name: name, isByOperator: true).skeleton
    return store.state.pins.first { $0.holds(skeleton) }?.node
  }

  /// Removes the pins of a key, or of a name if the key is `.none`. Returns the removed pins.
  public func unpin(_ node: NodeID, name: [UInt8]) throws(TrustError) -> [Pin] {
    let before = store.state
    let gone = before.pins.filter { node == .none ? !name.isEmpty && $0.name == name : $0.node == node }
    if gone.isEmpty { throw .isNotPinned }
    store.state.pins.removeAll { gone.contains($0) }
    try saveOr(before)
    endAlarms(of: before)
    return gone
  }

  /// Moves the pin of an alarm to the offered key, because the operator knows that the peer changed its key. Returns
  /// the alarm.
  public func accept(_ offered: NodeID) throws(TrustError) -> TrustAlarm {
    guard let alarm = alarms.all.first(where: { $0.offered == offered }) else { throw .noAlarm }
    try pin(offered, named: alarm.name)
    return alarm
  }

  /// Removes the alarms of pins that are in `before` but no longer in the state.
  func endAlarms(of before: TrustState) {
    for pin in before.pins where !store.state.pins.contains(pin) { alarms.forget(pin) }
  }
}

/// Why a command of the operator failed.
public enum TrustError: Error {
  case isRevoked
  case isRevokedAlready
  case isOwn
  case isPinnedAlready
  case isNotPinned
  case noAlarm
  case pinsFull
  case deniedFull
  case notWritten(IdentityError)

  public var text: String {
    switch self {
    case .isRevoked: "this key is revoked and stays revoked: give the peer a new one"
    case .isRevokedAlready: "this key is already revoked"
    case .isOwn: "this is the box's own key; create another one with: causeway identity new"
    case .isPinnedAlready: "this key already has this pin"
    case .isNotPinned: "no such pin; see: causeway identity show"
    case .noAlarm: "there is no such alarm; see: causeway identity alarms"
    case .pinsFull: "you have pinned \(TrustLimits.pinsMax) keys; remove one with: causeway identity untrust NAME"
    case .deniedFull: "the deny-list is full; give the fleet a new authority"
    case .notWritten(let error): error.text
    }
  }
}
