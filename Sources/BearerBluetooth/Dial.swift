import Primitives
import Reactor

/// One dial over LE or classic. It ends exactly once.
protocol Dial: AnyObject {
  /// Starts the dial. `finished` may be called before this returns.
  func start(timeout: TimeSpan, _ finished: @escaping (DialOutcome) -> Void)
  /// Cancels the dial without a callback. The kernel cancels a pending connection when its socket closes.
  func cancel()
  /// Called when the peer has opened a stream. The dial then ends without a callback, unless it has requested its own
  /// stream. Returns whether it has ended.
  func yields() -> Bool
}

/// The result of a dial.
enum DialOutcome {
  /// The callback owns the descriptor. `psm` is the PSM of an LE channel, and 0 for classic.
  case opened(CInt, unitBytesMax: Int, psm: UInt16)
  /// The reason, and the kernel's error if there is one.
  case failed(StaticString, SystemError?)
  /// The link exists, but the peer does not answer: its process died and left the link behind. Its successor can be
  /// reached only over a new link.
  case unanswered(StaticString)
}
