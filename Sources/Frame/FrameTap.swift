import Primitives

/// Where a frame was seen, and which way it went.
public struct FramePassage: Equatable, Sendable {
  /// The link's slot.
  public var slot: Int
  /// The node at the other end of the link.
  public var neighbour: NodeID
  public var bearer: BearerKind
  /// Handed to the stream; otherwise received from it.
  public var isSent: Bool
  /// It travels beside the TLS records of the link, not inside them.
  public var isBesideTLS: Bool

  public init(slot: Int, neighbour: NodeID, bearer: BearerKind, isSent: Bool, isBesideTLS: Bool) {
    self.slot = slot
    self.neighbour = neighbour
    self.bearer = bearer
    self.isSent = isSent
    self.isBesideTLS = isBesideTLS
  }
}

/// Sees each frame of every link: those received as they came, before any check but of their length; those sent as they
/// leave the queue. The bytes are valid only during the call, which must not call the node.
public protocol FrameTap: AnyObject {
  /// `header` has 48 bytes. `payload` is all of the payload, possibly empty.
  func passed(_ passage: FramePassage, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer)
}
