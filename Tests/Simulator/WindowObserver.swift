import Channel
import Frame
import Primitives

/// Checks flow control between two nodes: no sender exceeds the receiver's window, and no receiver offers a window
/// larger than the lane's ring buffer. Only unencrypted payloads can be checked.
struct WindowObserver {
  private struct Lane: Hashable {
    var sender: NodeID
    var receiver: NodeID
    var senderEpoch: UInt64
    var receiverEpoch: UInt64
    var lane: UInt8
  }

  /// The highest byte offset that each receiver has allowed its sender.
  private var offered: [Lane: UInt64] = [:]

  /// Checks a payload that a node sends in its own name. Returns the violation, or nil.
  mutating func sent(_ header: FrameHeader, _ payload: RawSpan) -> String? {
    if header.flags & FrameHeader.sealed != 0 { return nil }
    switch header.knownType {
    case .segment: return segment(header, payload)
    case .acknowledgement: return acknowledgement(header, payload)
    case .hello, .ping, .pong, .goodbye, .request, .advertisement, .denyList, .handshake, .sealed, .datagram, .reset,
      // A node sends `joined` only inside sealed frames. All other types of this case carry no window.
      .joined, nil:
      return nil
    }
  }

  private mutating func segment(_ header: FrameHeader, _ payload: RawSpan) -> String? {
    guard let view = try? SegmentView(payload), let segment = try? view.checked() else { return "sends a bad segment" }
    let lane = Lane(
      sender: header.source, receiver: header.destination, senderEpoch: segment.epochs.source,
      receiverEpoch: segment.epochs.destination, lane: segment.lane.rawValue)
    let end = segment.offset + UInt64(view.data.byteCount)
    // A sender probes a closed window with one byte beyond it.
    let most = max(offered[lane, default: 0], ChannelLimits.initialWindowBytes) + 1
    return end <= most ? nil : "sends bytes up to \(end) beyond the window up to \(most - 1)"
  }

  private mutating func acknowledgement(_ header: FrameHeader, _ payload: RawSpan) -> String? {
    guard let view = try? AcknowledgementView(payload), let told = try? view.checked() else {
      return "sends a bad acknowledgement"
    }
    let ring = told.lane == .bulk ? ChannelLimits.bulkRingBytes : ChannelLimits.interactiveRingBytes
    if told.windowLimit - told.cumulative > UInt64(ring) { return "offers more room than a lane's ring has" }
    let lane = Lane(
      sender: header.destination, receiver: header.source, senderEpoch: told.epochs.destination,
      receiverEpoch: told.epochs.source, lane: told.lane.rawValue)
    offered[lane] = max(offered[lane, default: 0], told.windowLimit)
    return nil
  }
}
