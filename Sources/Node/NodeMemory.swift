import Channel
import Frame
import Link
import Mesh
import Primitives

/// What a node takes at most, by owner, in bytes, for the ledger of whoever runs one. Rings of channels and sessions of
/// peers have limits of their own: `ChannelLimits`, `SealLimits`.
public enum NodeMemory {
  /// Frames that wait, of all links.
  public static let framePool = FramePool.byteCount
  /// Advertisements, neighbours and routes of `Limits.nodesMax` nodes, and the duplicate cache.
  public static let mesh = Mesh.byteCount
  /// One link: its record, its control frames, the frame that is coming in.
  public static let link =
    MemoryLayout<Link>.stride + MemoryLayout<FrameInbox>.stride + Arena.byteCount(FrameQueue.byteCount)
    + Arena.byteCount(Limits.frameBytesMax)
  /// Payloads being sealed and opened.
  public static let scratch = 2 * Limits.framePayloadBytesMax + 1
  /// One association without its rings and sessions.
  public static let association = Channel.recordBytesMax + 1_024
  /// One peer as applications see it.
  public static let peer = Directory.entryBytesMax
  /// One candidate, and the dial that it may be in.
  public static let candidate = MemoryLayout<Connector.Candidate>.stride
  /// Dials under way at once.
  public static let dialsMax = Connector.dialsMax
}
