import Frame
import Link
import Primitives

/// The stream of a link, for frames that need not wait in the link's queue.
public protocol FrameSink: AnyObject {
  /// Takes a sealed frame behind all that the stream has to send. False when the stream has no room for it now, or may not
  /// carry it outside TLS.
  func take(_ header: FrameHeader, _ payload: RawSpan) -> Bool
  /// The stream has bytes that it cannot send now.
  var holdsBytes: Bool { get }
}

/// Cut-through: of a frame for a link whose queue is empty one copy is made, into the stream's memory.
///
/// What is queued for the link goes first, so a flow keeps its order. A frame that is more urgent and comes later in the same
/// wake-up waits for what the stream has taken, as it waits for what is there from former ones: `EncryptAhead` bounds both.
extension Node {
  /// The stream of a link, from now until the link is closed.
  public func attach(_ sink: any FrameSink, to slot: Int) { sinks[slot] = sink }

  /// Hands a frame to the link's stream. False when it has to be queued.
  func cutThrough(_ header: FrameHeader, _ payload: RawSpan, to slot: Int) -> Bool {
    // Frames that pass a tap are seen where they leave the queue.
    guard header.flags & FrameHeader.sealed != 0, links[slot].state == .up, !links[slot].hasFrames, tap == nil,
      let sink = sinks[slot], sink.take(header, payload)
    else { return false }
    links[slot].passed(header.frameByteCount)
    notePopped(slot)
    return true
  }
}
