import Link
import Primitives

/// With whom this node links.
extension Node {
  /// The next candidate to dial.
  func nextDial(_ now: Instant) -> UInt32? {
    _ = connector.choose(now: now, isLinked: isLinked)
    return connector.nextDial(now: now, isLinked: isLinked)
  }

  private func isLinked(_ hint: UInt64, _ bearer: BearerKind) -> Bool {
    links.indices.contains { isOpen($0) && links[$0].peer.high == hint && links[$0].bearer == bearer }
  }
}
