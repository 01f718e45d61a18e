import Primitives
import Reactor

/// One dial of either kind. It ends exactly once.
protocol Dial: AnyObject {
  /// Starts. `finished` may be called before this returns.
  func start(timeout: TimeSpan, _ finished: @escaping (DialOutcome) -> Void)
  /// Cancels without a callback; the kernel cancels a pending connection when its socket closes.
  func cancel()
  /// The peer has opened a stream. Ends without a callback, unless this dial has asked for its own stream; returns whether
  /// it has ended.
  func yields() -> Bool
}

enum DialOutcome {
  /// The callback owns the descriptor. The PSM is that of LE.
  case opened(CInt, unitBytesMax: Int, psm: UInt16)
  /// What went wrong, and the kernel's reason if it has one.
  case failed(StaticString, SystemError?)
  /// The link exists, but the peer does not answer: its process died and left the link behind. Only a new link
  /// reaches its successor.
  case unanswered(StaticString)
}
