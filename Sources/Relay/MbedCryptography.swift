import Channel
import Identity
import Node
import Primitives
import Seal
import SecureTransport
import Session

/// The cryptography that the node requires, implemented by mbedTLS with this node's key.
final class MbedCryptography: NodeCryptography {
  private let identity: NodeIdentity
  private let sessions: DTLSSessions

  init(_ identity: NodeIdentity) throws(SecureStreamError) {
    self.identity = identity
    sessions = try DTLSSessions(identity)
  }

  func sign(_ message: RawSpan) -> InlineArray<64, UInt8> { message.withUnsafeBytes { identity.sign($0) } }

  func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool {
    point.withUnsafeBytes { NodeIdentity.nodeID(ofPoint: $0) } == node
      && NodeIdentity.verify(signature, over: message, by: point)
  }

  func digest(_ bytes: RawSpan) -> InlineArray<32, UInt8> {
    let digest = sha256([UInt8](copying: bytes))
    return InlineArray { digest[$0] }
  }

  func beginSession(_ name: SessionName, now: Instant) -> (any PeerSession)? { sessions.beginSession(name, now: now) }

  func answerHello(
    _ datagram: RawSpan, _ name: SessionName, reply: UnsafeMutableRawBufferPointer, now: Instant
  ) -> HelloAnswer {
    sessions.answerHello(datagram, name, reply: reply, now: now)
  }

  func refuseHello(_ datagram: RawSpan, reply: UnsafeMutableRawBufferPointer) -> Int {
    sessions.refuseHello(datagram, reply: reply)
  }

  func acceptSession(_ datagram: RawSpan, _ name: SessionName, now: Instant) -> (any PeerSession)? {
    sessions.acceptSession(datagram, name, now: now)
  }
}
