import Bearer
import Primitives

/// The parameters of an LE connection (Core Specification 5.4, Vol 6, Part B, 4.5): intervals in units of 1.25 ms, the supervision
/// timeout in units of 10 ms. No events are left out (latency 0).
struct ConnectionParameters: Equatable {
  let intervalMin: UInt16
  let intervalMax: UInt16
  let timeout: UInt16 = 400

  /// 15 to 30 ms, of a new connection (`RadioDefault.ours`).
  static let initial = ConnectionParameters(intervalMin: 12, intervalMax: 24)
  /// 7.5 to 15 ms: what waits for the next event waits half as long.
  static let fast = ConnectionParameters(intervalMin: 6, intervalMax: 12)
  /// 90 to 120 ms: both radios wake up about ten times a second instead of fifty. A line waits for 60 ms in the middle, and each
  /// ping is still answered in time.
  static let slow = ConnectionParameters(intervalMin: 72, intervalMax: 96)
}

/// The pace of one connection that this node has made: only its central sets the intervals. Fast from the first load on, slow when
/// none has come for `calm`. Pure.
struct ConnectionPace: Equatable {
  /// Within a second: more than pings, lines and advertisements; a file, a stream, a handshake.
  static let loadBytes: UInt64 = 4096
  static let calm = TimeSpan.seconds(10)
  /// The kernel updates a connection only when it has an entry for the device. The first command may only make the entry: it is
  /// given a second time.
  static let repeatTime = TimeSpan.seconds(1)

  let endpoint: BluetoothEndpoint
  private var load = TrafficLoad(bytesMin: loadBytes, calm: calm)
  /// A new connection has a handshake before it.
  private let settled: Instant
  private(set) var parameters = ConnectionParameters.initial
  private var repeatAt = Instant.never

  init(_ endpoint: BluetoothEndpoint, _ now: Instant) {
    self.endpoint = endpoint
    settled = now + Self.calm
  }

  /// So many bytes have passed since the last call, both ways. Returns whether `next` has something.
  mutating func passed(_ count: UInt64, _ now: Instant) -> Bool { load.passed(count, now) }

  /// What to set now; nil when nothing is due. Call it again at `deadline`.
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
