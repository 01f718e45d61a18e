import Frame
import Journal
import Link
import Mesh
import Primitives

/// Frames on their way: to the neighbour, to everybody, or towards one node.
extension Node {
  /// Throws why the frame is refused; the link stays open.
  func receiveFrame(_ header: FrameHeader, _ payload: RawSpan, on slot: Int, now: Instant) throws(FrameRefusal) {
    if header.isRouted {
      if links[slot].state != .up { throw .unexpected }
      if header.source == settings.id { throw .loopedSource }
      if header.destination != settings.id { return try forward(header, payload, cameFrom: slot) }
      return try deliver(header, payload, now)
    }
    guard let type = header.knownType else { throw .unknownType }
    if type.isLinkLocal { return try receiveLinkLocal(header, payload, type, on: slot, now: now) }
    if links[slot].state != .up { throw .unexpected }
    if type == .denyList { return try receiveDenyList(header, payload, on: slot, now: now) }
    try receiveAdvertisement(header, payload, on: slot, now: now)
  }

  /// Send a frame of this node's own towards its destination. False when there is no way or no room.
  func send(_ header: FrameHeader, _ payload: RawSpan, over route: Route) -> Bool {
    guard links[Int(route.link)].append(header, payload, from: FramePool.ownIngress) else { return false }
    wantTransmit(Int(route.link))
    return true
  }

  /// Pass a frame on, unread.
  private func forward(_ header: FrameHeader, _ payload: RawSpan, cameFrom slot: Int) throws(FrameRefusal) {
    guard settings.relays else { throw .unexpected }
    // The last hop's node takes the frame at 1; nobody forwards it further.
    if header.ttl == 1 { throw .ttlZero }
    guard mesh.isFirstSight(header.source, header.identifier) else { throw .duplicate }
    guard let route = mesh.route(to: header.destination), Int(route.link) != slot else {
      return count { $0.dropsNoRoute &+= 1 }
    }
    let next = Int(route.link)
    if payload.byteCount > links[next].payloadBytesMax { return count { $0.dropsTooLong &+= 1 } }
    var onward = header
    onward.ttl -= 1
    guard links[next].append(onward, payload, from: slot) else { return }
    wantTransmit(next)
    count {
      $0.framesForwarded &+= 1
      $0.bytesForwarded &+= UInt64(header.frameByteCount)
    }
  }
}
