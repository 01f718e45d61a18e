import Primitives

/// The reason for dropping a frame instead of queueing it.
public enum QueueDrop: UInt8, Sendable {
  /// The pool that all links share has no free memory.
  case poolFull = 0
  /// The ingress (a neighbour or this node) has reached its quota of the pool.
  case neighbourQuota = 1
  /// The ingress has reached its share of the link's quota.
  case linkQuota = 2
  /// The flow has reached its limit of bytes or frames.
  case flowQuota = 3
  /// A realtime frame was dropped for a newer one or for an interactive or bulk frame.
  case overtaken = 4
  /// The memory for the link's control frames is full.
  case controlFull = 5

  public static let count = 6

  /// The name used in status output.
  public var name: StaticString {
    switch self {
    case .poolFull: "pool-full"
    case .neighbourQuota: "neighbour-quota"
    case .linkQuota: "link-quota"
    case .flowQuota: "flow-quota"
    case .overtaken: "overtaken"
    case .controlFull: "control-full"
    }
  }
}

/// Drop counters by reason.
public struct QueueDropCounters: Sendable {
  private var counts = FixedArray<6, UInt64>(repeating: 0)
  public init() {}
  mutating func count(_ drop: QueueDrop) { counts[Int(drop.rawValue)] &+= 1 }
  public subscript(drop: QueueDrop) -> UInt64 { counts[Int(drop.rawValue)] }
  public var sum: UInt64 {
    var sum: UInt64 = 0
    for index in counts.indices { sum &+= counts[index] }
    return sum
  }
}
