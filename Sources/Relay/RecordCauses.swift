import Bearer
import Journal
import Primitives
import SecureTransport
import Trust

// The causes of the journal's records that the relay writes. A line about a node on which the operator has decided uses
// a reserve of the journal, which no stranger can use (`RecordCause`).

extension StreamHandoff {
  /// The interface that carried the stream, whose addresses cost a stranger nothing.
  var cause: RecordCause { .interface(interfaceIndex) }
}

extension LinkDriver {
  /// The cause of a record about this stream. The record is about the peer if the peer has proved its key.
  func recordCause(_ trust: TrustKeeper) -> RecordCause {
    var refusal: PeerRefusal?
    if case .refused(let reason) = streamEnd { refusal = reason }
    return handoff.cause.about(trust.decided(peer, refusal))
  }
}

extension TrustKeeper {
  /// The node about which a record informs the operator, if the operator has decided on that node; otherwise `.none`.
  /// `peer` has proved its key, or is `.none`. `refusal` is the reason why the peer was refused.
  ///
  /// A name is only claimed. So a key under a pinned name is a stranger's, and the alarm about it is logged by
  /// `TrustReports`.
  func decided(_ peer: NodeID, _ refusal: PeerRefusal? = nil) -> NodeID {
    if peer == .none { return .none }
    if isDenied(peer) || isPinnedByOperator(peer) { return peer }
    // An authority that is revoked itself can issue any number of certificates, so these nodes count as one.
    if refusal == .revoked { return Self.listed }
    return .none
  }

  /// Stands for all nodes whose certificates are on a revocation list. No key has this id.
  private static var listed: NodeID { NodeID(high: 0, low: 1) }
}
