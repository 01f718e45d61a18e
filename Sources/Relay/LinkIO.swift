import Primitives
import Reactor
import Status

/// The result of a read or write on a stream.
enum TransferOutcome: Equatable {
  case moved(Int)
  case later
  /// The other side has closed its direction of the stream.
  case ended
  case failed(SystemError)
}

protocol LinkIO: AnyObject {
  var now: Instant { get }
  /// The counts of TCP segments sent; nil for a stream that does not run over TCP.
  var segments: SegmentCounts? { get }
  /// Reads received bytes into `buffer`, from its start.
  func receive(into buffer: UnsafeMutableRawBufferPointer) -> TransferOutcome
  /// Sends as many of `bytes` as the stream accepts now.
  func send(_ bytes: UnsafeRawBufferPointer) -> TransferOutcome
  /// Sets whether `LinkDriver.ready` is called when the stream is writable. Regardless of this setting, `ready` is
  /// called when bytes have arrived.
  func waitForRoom(_ waits: Bool)
  /// Sets the time at which `LinkDriver.timeUp` is called, and replaces the previous time. `.never` cancels the call.
  func wake(at instant: Instant)
  /// Closes the stream; the driver makes no further call. If `lingers` is true, the other side can read the last bytes
  /// even while it is still sending.
  func close(lingers: Bool)
}
