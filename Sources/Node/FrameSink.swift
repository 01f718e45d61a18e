import Frame
import Link
import Primitives

/// The stream of a link, for frames that need not wait in the link's queue.
public protocol FrameSink: AnyObject {
  /// Accepts a sealed frame behind everything that the stream has to send. Returns false if the stream has no room for
  /// it now, or may not carry it outside TLS.
  func take(_ header: FrameHeader, _ payload: RawSpan) -> Bool
  /// Whether the stream has bytes that it cannot send now.
  var holdsBytes: Bool { get }
}

/// Cut-through: a frame for a link with an empty queue is copied once, into the stream's memory.
///
/// Queued frames go first, so a flow keeps its order. A more urgent frame that arrives later in the same wake-up waits
/// for what the stream accepted, as it waits for bytes from earlier wake-ups. `EncryptAhead` bounds both.
extension Node {
  /// Sets the stream of a link, until the link is closed.
  public func attach(_ sink: any FrameSink, to slot: Int) { sinks[slot] = sink }

  /// Passes a frame to the link's stream. Returns false if it must be queued.
  func cutThrough(_ header: FrameHeader, _ payload: RawSpan, to slot: Int) -> Bool {
    // A tap sees frames when they leave the queue.
    guard header.flags & FrameHeader.sealed != 0, links[slot].state == .up, !links[slot].hasFrames, tap == nil,
      let sink = sinks[slot], sink.take(header, payload)
    else { return false }
    links[slot].passed(header.frameByteCount)
    notePopped(slot)
    return true
  }
}
