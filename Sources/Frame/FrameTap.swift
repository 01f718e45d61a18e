import Primitives

/// The link on which a frame was observed, and its direction.
public struct FramePassage: Equatable, Sendable {
  /// The slot of the link.
  public var slot: Int
  /// The node at the other end of the link.
  public var neighbour: NodeID
  public var bearer: BearerKind
  /// Whether the frame was sent on the link; if false, the frame was received.
  public var isSent: Bool
  /// Whether the frame travels outside the link's TLS records instead of inside them.
  public var isOutsideTLS: Bool

  public init(slot: Int, neighbour: NodeID, bearer: BearerKind, isSent: Bool, isOutsideTLS: Bool) {
    self.slot = slot
    self.neighbour = neighbour
    self.bearer = bearer
    self.isSent = isSent
    self.isOutsideTLS = isOutsideTLS
  }
}

/// An observer of every frame on every link. The observer gets a received frame before all checks except the length
/// check, and a sent frame when the frame leaves the queue. The bytes of the frame are valid only during the call. The
/// observer must not call the node during the call.
public protocol FrameTap: AnyObject {
  /// `header` has 48 bytes. `payload` is the complete payload and may be empty.
  func passed(_ passage: FramePassage, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer)
}
