/// The memory for rings beyond their guaranteed size (`ChannelLimits.ringBytesMin`), shared by the channels of a node.
public final class RingBudget {
  /// The bytes of the budget that no ring uses.
  public private(set) var bytesFree: Int

  public init(bytes: Int = ChannelLimits.ringBudgetBytes) { bytesFree = bytes }

  /// Takes `byteCount` bytes from the budget. Returns false and takes nothing if fewer bytes are free.
  func take(_ byteCount: Int) -> Bool {
    guard byteCount <= bytesFree else { return false }
    bytesFree -= byteCount
    return true
  }

  func giveBack(_ byteCount: Int) { bytesFree += byteCount }
}
