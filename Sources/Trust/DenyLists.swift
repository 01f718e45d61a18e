import Frame
import Identity
import Primitives
import SecureTransport

/// A deny-list that is in force on this node: the keys that one operator has revoked.
public struct HeldDenyList {
  public let issuer: NodeID
  public let serial: UInt64
  /// The ids of the revoked keys, ascending.
  public let nodes: [NodeID]
  /// The list in wire format.
  public let bytes: [UInt8]

  /// Creates a deny-list from its wire format. Returns nil if the bytes are not a deny-list, or if the signature does
  /// not match the key in the list.
  init?(_ payload: RawSpan) {
    guard let view = try? DenyListView(payload) else { return nil }
    guard NodeIdentity.verify(view.signature, over: view.signed, by: view.point) else { return nil }
    issuer = view.point.withUnsafeBytes { NodeIdentity.nodeID(ofPoint: $0) }
    serial = view.serial
    var nodes: [NodeID] = []
    for index in 0..<view.count { nodes.append(view.node(index)) }
    self.nodes = nodes
    bytes = payload.withUnsafeBytes { Array($0) }
  }
}

/// The result of handling a received deny-list.
public enum DenyListOutcome: Sendable {
  case accepted
  case notWanted
  case wrongSignature
  case notSaved
}

/// Deny-lists of this node and of the configured operators.
extension TrustKeeper {
  public func isDenied(_ node: NodeID) -> Bool { lists.contains { $0.nodes.contains(node) } }

  /// Revokes a key permanently and removes its alarms and pins. The state is saved when the method returns
  /// (`TrustStore`). The caller closes the links of the key and distributes this node's new list.
  public func revoke(_ node: NodeID) throws(TrustError) {
    if node == identity.id { throw .isOwn }
    if store.state.denied.contains(node) { throw .isRevokedAlready }
    if store.state.denied.count >= Limits.deniedMax { throw .deniedFull }
    let before = store.state
    let index = store.state.denied.firstIndex { node < $0 } ?? store.state.denied.count
    store.state.denied.insert(node, at: index)
    store.state.deniedSerial += 1
    store.state.deniedSeconds = UInt64(max(time.seconds, 0))
    store.state.pins.removeAll { $0.node == node }
    try saveOr(before)
    updateLists()
    endAlarms(of: before)
    alarms.remove { $0.offered == node }
  }

  /// Whether a received list is issued by one of the configured operators and newer than the stored list. The signature
  /// is not checked.
  public func wants(_ payload: RawSpan, from issuer: NodeID) -> Bool {
    guard operators.contains(issuer), issuer != identity.id, let view = try? DenyListView(payload) else { return false }
    return !lists.contains { $0.issuer == issuer && $0.serial >= view.serial }
  }

  /// Handles a received list. The list is accepted if it is wanted (`wants`), signed by its issuer, and saved
  /// (`TrustStore`). An accepted list is in force, and the caller should forward it.
  public func take(_ payload: RawSpan, from issuer: NodeID) -> DenyListOutcome {
    guard wants(payload, from: issuer) else { return .notWanted }
    guard let list = HeldDenyList(payload), list.issuer == issuer else { return .wrongSignature }
    let before = store.state
    store.state.lists = lists.filter { $0.issuer != issuer && $0.issuer != identity.id }.map { $0.bytes } + [list.bytes]
    do throws(TrustError) {
      try saveOr(before)
    } catch {
      return .notSaved
    }
    updateLists()
    return .accepted
  }

  /// The number of revoked keys. A key on several lists is counted once for each list.
  public var deniedCount: Int {
    var count = 0
    for list in lists { count += list.nodes.count }
    return count
  }

  /// Whether one of the operators revoked this node.
  public var isSelfDenied: Bool { isDenied(identity.id) }

  /// The number of stored deny-lists that this version of the program does not understand. Lists that are not
  /// understood were written by a later version.
  public var unreadLists: Int { store.state.lists.count { HeldDenyList($0.span.bytes) == nil } }

  /// Rebuilds the lists in force from the saved state. This node's own list is signed again, because the box may have a
  /// new key.
  func updateLists() {
    lists = []
    for bytes in store.state.lists {
      if let list = HeldDenyList(bytes.span.bytes), operators.contains(list.issuer) { lists.append(list) }
    }
    if let bytes = makeOwnList(), let list = HeldDenyList(bytes.span.bytes) { lists.append(list) }
  }

  private func makeOwnList() -> [UInt8]? {
    let state = store.state
    if state.deniedSerial == 0 { return nil }
    let identity = identity
    return [UInt8](unsafeUninitializedCapacity: Limits.advertisementBytesMax) { buffer, count in
      var output = OutputRawSpan(buffer: UnsafeMutableRawBufferPointer(buffer), initializedCount: 0)
      DenyListView.writeHead(
        count: state.denied.count, serial: state.deniedSerial, issuedSeconds: state.deniedSeconds,
        point: identity.publicPoint.span.bytes, to: &output)
      for node in state.denied { output.append(node) }
      let signature = output.bytes.withUnsafeBytes { identity.sign($0) }
      output.append(bytes: signature.span.bytes)
      count = output.byteCount
    }
  }
}
