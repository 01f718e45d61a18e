import Channel
import Frame
import Link
import Mesh
import Primitives

/// The maximum memory of a node by owner, in bytes, for the memory ledger of its host. Channel rings and sessions have
/// their own limits: `ChannelLimits`, `SealLimits`.
public enum NodeMemory {
  /// The queued frames of all links.
  public static let framePool = FramePool.byteCount
  /// The advertisements, neighbours and routes of `Limits.nodesMax` nodes.
  public static let mesh = Mesh.byteCount
  /// Advertisements and deny-lists that await the check of their signature.
  public static let waitingFrames = WaitingFrames.byteCount
  /// The memory of one link: its record, its control frames and one incoming frame.
  public static let link =
    MemoryLayout<Link>.stride + MemoryLayout<FrameInbox>.stride + MemoryLayout<LinkFlooding>.stride
    + SlotMemory.byteCount
  /// Buffers for encrypting and decrypting payloads.
  public static let scratch = 2 * Limits.framePayloadBytesMax + 1
  /// The memory of one association without its rings and encrypted sessions.
  public static let association = Channel.recordBytesMax + 1_024
  /// The record of one message of an application session in flight, by which its result is found.
  public static let flight = SessionHost.flightBytes
  /// The memory of one peer in the directory.
  public static let peer = Directory.entryBytesMax
  /// The memory of one candidate and its dial.
  public static let candidate = MemoryLayout<Connector.Candidate>.stride
  /// The maximum number of concurrent dials.
  public static let dialsMax = Connector.dialsMax
}
