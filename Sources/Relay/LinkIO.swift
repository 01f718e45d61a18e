import Diagnostics
import Primitives
import Reactor

/// The result of a read or write on a stream.
enum TransferOutcome: Equatable {
  case moved(Int)
  /// Nothing can be transferred now.
  case later
  /// The other side has closed its direction.
  case ended
  case failed(SystemError)
}

/// The environment of a link driver: its stream, its clock and its timer.
protocol LinkIO: AnyObject {
  var now: Instant { get }
  /// What TCP has sent; nil for a stream that is not TCP's.
  var segments: SegmentCounts? { get }
  /// Reads received bytes into the beginning of the buffer.
  func receive(into buffer: UnsafeMutableRawBufferPointer) -> TransferOutcome
  /// Sends as many of the bytes as the stream accepts.
  func send(_ bytes: UnsafeRawBufferPointer) -> TransferOutcome
  /// Whether to call `LinkDriver.ready` when the stream accepts bytes. It is always called when bytes have arrived.
  func waitForRoom(_ waits: Bool)
  /// Calls `LinkDriver.timeUp` at this instant, which replaces a former one; `.never` cancels.
  func wake(at instant: Instant)
  /// Closes the stream; the driver no longer uses it. With `lingers` the other side can read the last bytes even while
  /// it is still sending.
  func close(lingers: Bool)
}
