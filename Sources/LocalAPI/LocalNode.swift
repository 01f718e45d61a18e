import Channel
import Primitives
import Session

/// The operations of the node that `ClientRecords` needs. All calls come from `ClientRecords`. After the calls, the
/// host carries out the node's outputs.
public protocol LocalNode: AnyObject {
  var sessions: Sessions { get }
  /// This node's display name.
  var name: [UInt8] { get }
  /// The description of a node, which may be this node. Nil if the node is out of reach.
  func peer(_ node: NodeID) -> LocalPeer?
  /// The certificate chain with which a node has proved its key, in DER. The node's own certificate is first. The chain
  /// is empty if the traffic with the node is not sealed. Nil until the node has proved its key;
  /// `SessionEvent.decisionWanted` reports the proof.
  func certificates(of node: NodeID) -> [[UInt8]]?
  /// The endpoint of an application's service; see `MemberAddress.endpoint`.
  func endpoint(user: UInt32, type: [UInt8], instance: [UInt8]) -> UInt32
  /// See `Sessions.advertise` and `Sessions.withdraw`.
  func advertise(_ service: Service, now: Instant) throws(SessionError)
  func withdraw(_ endpoint: UInt32, now: Instant)
  /// Sends a message to one member; see `Sessions.send` and `Sessions.sendUnreliably`.
  func send(
    _ data: [UInt8], in session: SessionHandle, to: MemberAddress, lane: Lane, now: Instant
  ) throws(SessionError) -> SessionMessageID
  func sendUnreliably(
    _ data: [UInt8], in session: SessionHandle, to: MemberAddress, now: Instant
  ) throws(SessionError)
}

/// A service type that only the members of a group may use.
public struct LocalRestriction: Equatable, Sendable {
  public var type: [UInt8]
  /// A numeric group id. A group name would need a lookup that may block.
  public var group: UInt32

  public init(type: [UInt8], group: UInt32) {
    self.type = type
    self.group = group
  }
}
