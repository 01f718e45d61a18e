import Channel
import Frame
import Link
import Mesh
import Primitives

/// The greatest memory of a node by owner, in bytes, for the memory ledger of its host. The rings of channels and the
/// sessions have limits of their own: `ChannelLimits`, `SealLimits`.
public enum NodeMemory {
  /// Queued frames of all links.
  public static let framePool = FramePool.byteCount
  /// Advertisements, neighbours and routes of `Limits.nodesMax` nodes.
  public static let mesh = Mesh.byteCount
  /// Advertisements and deny-lists that wait for the check of their signature.
  public static let waitingFrames = WaitingFrames.byteCount
  /// One link: its record, its control frames, its incoming frame.
  public static let link =
    MemoryLayout<Link>.stride + MemoryLayout<FrameInbox>.stride + MemoryLayout<LinkFlooding>.stride
    + SlotMemory.byteCount
  /// Buffers for payloads that are sealed and opened.
  public static let scratch = 2 * Limits.framePayloadBytesMax + 1
  /// One association without its rings and sessions.
  public static let association = Channel.recordBytesMax + 1_024
  /// A message of a session on its way: which result belongs to which.
  public static let flight = SessionHost.flightBytes
  /// One peer in the directory.
  public static let peer = Directory.entryBytesMax
  /// One candidate and its dial.
  public static let candidate = MemoryLayout<Connector.Candidate>.stride
  /// Dials under way at once.
  public static let dialsMax = Connector.dialsMax
}
