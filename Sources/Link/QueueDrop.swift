import Primitives

/// Why a frame that was to wait was dropped.
public enum QueueDrop: UInt8, Sendable {
  /// No memory is left for anybody.
  case poolFull = 0
  /// Whoever it came from holds as much as it may.
  case neighbourQuota = 1
  /// As much waits for the link as may.
  case linkQuota = 2
  /// As much of its flow waits as may.
  case flowQuota = 3
  /// Whoever it came from, or all together, have too many flows.
  case flowsFull = 4
  /// A realtime frame gave way to a later one, or to a frame that must arrive.
  case overtaken = 5
  /// The link's own frames, of which few ever wait, fill their reserve.
  case controlFull = 6

  public static let count = 7

  /// The word used in status.
  public var name: StaticString {
    switch self {
    case .poolFull: "pool-full"
    case .neighbourQuota: "neighbour-quota"
    case .linkQuota: "link-quota"
    case .flowQuota: "flow-quota"
    case .flowsFull: "flows-full"
    case .overtaken: "overtaken"
    case .controlFull: "control-full"
    }
  }
}

/// How often each drop happened.
public struct QueueDropCounters: Sendable {
  private var counts = FixedArray<7, UInt64>(repeating: 0)
  public init() {}
  mutating func count(_ drop: QueueDrop) { counts[Int(drop.rawValue)] &+= 1 }
  public subscript(drop: QueueDrop) -> UInt64 { counts[Int(drop.rawValue)] }
  public var sum: UInt64 {
    var sum: UInt64 = 0
    for index in counts.indices { sum &+= counts[index] }
    return sum
  }
}
