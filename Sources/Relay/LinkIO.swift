import Primitives
import Reactor

/// What moving bytes over a stream came to.
enum TransferOutcome: Equatable {
  case moved(Int)
  /// Nothing can be moved now.
  case later
  /// The other side has closed its direction.
  case ended
  case failed(SystemError)
}

/// The world of a link driver: its stream, its clock and its timer.
protocol LinkIO: AnyObject {
  var now: Instant { get }
  /// Read what has come into the buffer's beginning.
  func receive(into buffer: UnsafeMutableRawBufferPointer) -> TransferOutcome
  /// Send as many of the bytes as the stream takes.
  func send(_ bytes: UnsafeRawBufferPointer) -> TransferOutcome
  /// Whether `LinkDriver.ready` is to be called as soon as the stream takes bytes; it always is when bytes have come.
  func waitForRoom(_ waits: Bool)
  /// Call `LinkDriver.timeUp` then, and not at an instant that was named before; `.never` for not at all.
  func wake(at instant: Instant)
  /// Close the stream: the driver is done with it. `lingers` lets the other side read what was sent last, although it may
  /// still be sending itself.
  func close(lingers: Bool)
}
