import Frame
import Link
import Primitives

/// The stream of a link, for frames that need not wait in the link's queue.
public protocol FrameSink: AnyObject {
  /// Accepts a sealed frame, which is sent after everything that the stream already holds. Returns false if the stream
  /// has no room for the frame now, or may not carry it outside TLS.
  func take(_ header: FrameHeader, _ payload: RawSpan) -> Bool
  /// Whether the stream has bytes that cannot be sent now.
  var hasUnsentBytes: Bool { get }
}

/// Cut-through: a frame for a link with an empty queue is copied once, into the stream's memory.
///
/// Cut-through is used only while the link's queue is empty, so the frames of a flow keep their order. A more urgent
/// frame that arrives later waits for the bytes that the stream has already accepted. `EncryptAhead` bounds these
/// bytes.
extension Node {
  /// Sets the stream of a link, until the link is closed.
  public func attach(_ sink: any FrameSink, to slot: Int) { sinks[slot] = sink }

  /// Passes a frame to the link's stream. Returns false if the frame must be queued.
  func cutThrough(_ header: FrameHeader, _ payload: RawSpan, to slot: Int) -> Bool {
    // A tap observes frames when they leave the queue, so with a tap every frame is queued.
    guard header.flags & FrameHeader.sealed != 0, links[slot].state == .up, !links[slot].hasFrames, tap == nil,
      let sink = sinks[slot], sink.take(header, payload)
    else { return false }
    links[slot].passed(header.frameByteCount)
    notePopped(slot)
    return true
  }
}
