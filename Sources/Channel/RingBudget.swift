/// Memory for rings beyond what each is sure of (`ChannelLimits.ringBytesMin`), shared by the channels of a node.
public final class RingBudget {
  /// What is still to be had.
  public private(set) var bytesFree: Int

  public init(bytes: Int = ChannelLimits.ringBudgetBytes) { bytesFree = bytes }

  /// False, and nothing taken, when there is not as much.
  func take(_ byteCount: Int) -> Bool {
    guard byteCount <= bytesFree else { return false }
    bytesFree -= byteCount
    return true
  }

  func giveBack(_ byteCount: Int) { bytesFree += byteCount }
}
