/// Memory for rings beyond their guaranteed size (`ChannelLimits.ringBytesMin`), shared by the channels of a node.
public final class RingBudget {
  /// Bytes that are still available.
  public private(set) var bytesFree: Int

  public init(bytes: Int = ChannelLimits.ringBudgetBytes) { bytesFree = bytes }

  /// False when fewer bytes are available; then nothing is taken.
  func take(_ byteCount: Int) -> Bool {
    guard byteCount <= bytesFree else { return false }
    bytesFree -= byteCount
    return true
  }

  func giveBack(_ byteCount: Int) { bytesFree += byteCount }
}
