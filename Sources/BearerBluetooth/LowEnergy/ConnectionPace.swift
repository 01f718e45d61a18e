import Bearer
import Primitives

/// The parameters of an LE connection (Core Specification 5.4, Vol 6, Part B, 4.5). The intervals are in units of 1.25
/// ms, the supervision timeout in units of 10 ms. No connection events are skipped (latency 0).
struct ConnectionParameters: Equatable {
  let intervalMin: UInt16
  let intervalMax: UInt16
  let timeout: UInt16 = 400

  /// 15 to 30 ms, for a new connection (`RadioDefault.ours`).
  static let initial = ConnectionParameters(intervalMin: 12, intervalMax: 24)
  /// 7.5 to 15 ms: data waits half as long for the next connection event as with `initial`.
  static let fast = ConnectionParameters(intervalMin: 6, intervalMax: 12)
  /// 90 to 120 ms: both radios wake up about ten times a second instead of fifty. A line of text waits 60 ms on
  /// average. Pings of the link are still answered within their time limit.
  static let slow = ConnectionParameters(intervalMin: 72, intervalMax: 96)
}

/// The choice of parameters for one LE connection that this node has made. The node that made a connection is its
/// central, and only the central sets the intervals. The pace is fast from the first load on, and slow after `calm`
/// without load. The type does no I/O.
struct ConnectionPace: Equatable {
  /// The bytes within a second from which traffic is a load. A file, a stream or a handshake is a load; pings, lines of
  /// text and route advertisements are not.
  static let loadBytes: UInt64 = 4096
  static let calm = TimeSpan.seconds(10)
  /// The delay before the command is sent a second time. The kernel updates a connection only if it has an entry for
  /// the device, and the first command may only create the entry.
  static let repeatTime = TimeSpan.seconds(1)

  let endpoint: BluetoothEndpoint
  private var load = TrafficLoad(bytesMin: loadBytes, calm: calm)
  /// The earliest time at which a new connection becomes slow, because its TLS handshake comes first.
  private let settled: Instant
  private(set) var parameters = ConnectionParameters.initial
  private var repeatAt = Instant.never

  init(_ endpoint: BluetoothEndpoint, _ now: Instant) {
    self.endpoint = endpoint
    settled = now + Self.calm
  }

  /// Notes that `count` bytes have passed since the last call, in both directions. Returns whether the load has begun,
  /// so that `next` has parameters to set.
  mutating func passed(_ count: UInt64, _ now: Instant) -> Bool { load.passed(count, now) }

  /// The parameters to set now; nil if nothing is due. Call this method again at `deadline`.
  mutating func next(_ now: Instant) -> ConnectionParameters? {
    let wanted = load.isLoaded(now) ? .fast : now >= max(settled, load.end) ? .slow : parameters
    if wanted != parameters {
      parameters = wanted
      repeatAt = now + Self.repeatTime
      return wanted
    }
    guard now >= repeatAt else { return nil }
    repeatAt = .never
    return wanted
  }

  var deadline: Instant { min(repeatAt, parameters == .slow ? .never : max(settled, load.end)) }
}
