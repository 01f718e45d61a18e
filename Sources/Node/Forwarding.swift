import Frame
import Journal
import Link
import Mesh
import Primitives

/// Received frames: link-local, flooded or routed.
extension Node {
  /// Handles a received frame. `hasWaited` means that the frame has waited for its signature check. While the frame
  /// waited, its link may have been parked (kept without a connection), or opened again on a new stream. Throws the
  /// reason if the frame is rejected. The rejection of a frame alone does not close the link.
  func receiveFrame(_ header: FrameHeader, _ payload: RawSpan, on slot: Int, hasWaited: Bool = false, now: Instant)
    throws(FrameError)
  {
    if !hasWaited && !links[slot].isMutual && links[slot].state == .up && header.knownType != .hello {
      links[slot].confirm()
      closeDuplicates(of: slot, now)
    }
    if header.isRouted {
      if !links[slot].isReceiving { throw .unexpected }
      parking.talks(slot)
      if header.source == settings.id { throw .loopedSource }
      if header.destination != settings.id { return try forward(header, payload, cameFrom: slot) }
      return try deliver(header, payload, from: slot, now)
    }
    guard let type = header.knownType else { throw .unknownType }
    if type == .request { return try receiveRequest(payload, on: slot, now: now) }
    if type.isLinkLocal { return try receiveLinkLocal(header, payload, type, on: slot, now: now) }
    if !(hasWaited ? links[slot].isStanding : links[slot].isReceiving) { throw .unexpected }
    if type == .denyList { return try receiveDenyList(header, payload, on: slot, now: now) }
    try receiveAdvertisement(header, payload, on: slot, now: now)
  }

  /// Sends a frame of this node to its destination. Returns false if the link's queue has no room.
  func send(_ header: FrameHeader, _ payload: RawSpan, over route: Route) -> Bool {
    let slot = Int(route.link)
    guard cutThrough(header, payload, to: slot) || links[slot].append(header, payload, from: FramePool.ownIngress)
    else { return false }
    parking.talks(slot)
    wantTransmit(slot)
    return true
  }

  /// Forwards a frame without reading its payload.
  ///
  /// A relay remembers no forwarded frames, because a neighbour could fill that memory in another node's name. The hop
  /// limit ends loops. The destination drops duplicates, by DTLS, segment offsets or datagram numbers.
  private func forward(_ header: FrameHeader, _ payload: RawSpan, cameFrom slot: Int) throws(FrameError) {
    guard settings.relays else { throw .unexpected }
    // A frame with a TTL of 1 is for the destination only and is not forwarded.
    if header.ttl == 1 { throw .ttlZero }
    var onward = header
    onward.ttl = min(onward.ttl, Limits.hopsMax) - 1
    guard let next = mesh.link(to: header.destination, within: onward.ttl), links[next].peer != links[slot].peer else {
      return count { $0.dropsNoRoute &+= 1 }
    }
    if payload.byteCount > links[next].payloadBytesMax { return count { $0.dropsTooLong &+= 1 } }
    let isRelayed = header.source != links[slot].peer
    guard
      cutThrough(onward, payload, to: next) || links[next].append(onward, payload, from: slot, isRelayed: isRelayed)
    else { return }
    parking.talks(next)
    wantTransmit(next)
    topSources.count(header.frameByteCount, of: header.source)
    count {
      $0.framesForwarded &+= 1
      $0.bytesForwarded &+= UInt64(header.frameByteCount)
    }
  }
}
