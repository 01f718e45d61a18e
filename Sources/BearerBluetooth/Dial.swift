import Primitives
import Reactor

/// One dial over LE or classic. The dial ends exactly once.
protocol Dial: AnyObject {
  /// Starts the dial. `finished` may be called before this returns.
  func start(timeout: TimeSpan, _ finished: @escaping (DialOutcome) -> Void)
  /// Cancels the dial without a callback. The kernel cancels a pending connection when its socket closes.
  func cancel()
  /// Called when the peer has opened a stream itself. The dial then ends without a callback, unless it has already
  /// requested its own stream. Returns whether the dial has ended.
  func yields() -> Bool
}

/// The result of a dial.
enum DialOutcome {
  /// The callback receives ownership of the descriptor. `psm` is the PSM of an LE channel, and 0 for classic.
  case opened(CInt, unitBytesMax: Int, psm: UInt16)
  /// The reason, and the kernel's error if there is one.
  case failed(StaticString, SystemError?)
  /// The link exists, but the peer does not answer. The peer's process has died and left the link. The peer's next
  /// process can be reached only over a new link.
  case unanswered(StaticString)
}
