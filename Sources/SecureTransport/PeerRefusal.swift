import Identity
import Primitives

/// Why a peer is refused although it proved its key. The raw value is stored in journal records.
public enum PeerRefusal: UInt8, Error, Sendable {
  /// A certificate of the peer's chain has expired.
  case expired = 1
  /// A certificate of the chain is not valid yet.
  case notYetValid = 2
  /// The chain does not lead to a trust anchor (an authority in the anchors directory).
  case unknownIssuer = 3
  /// The peer's own certificate is that of an authority (CA), not of a node.
  case authorityAsLeaf = 4
  /// An authority in the chain has more authorities below it than the path length of this authority allows.
  case pathTooLong = 5
  /// The issuer of a certificate in the chain is not an authority.
  case issuerNotAuthority = 6
  /// The peer's certificate, or an authority's certificate above it, is on a revocation list.
  case revoked = 7
  /// The usage of the peer's certificate does not allow TLS, or an authority in the chain may not issue certificates
  /// for nodes.
  case wrongUsage = 8
  /// A signature in the chain is wrong.
  case wrongSignature = 9
  /// A signature in the chain uses a weak algorithm or key, for example SHA-1.
  case weakAlgorithm = 10
  /// The anchors directory has a revocation list for an authority of the chain, and that authority did not sign the
  /// list.
  case revocationListForged = 11
  /// The chain has more certificates or names than this node checks.
  case chainTooLong = 12
  /// The peer presented no certificate, or its key is not ECDSA P-256.
  case noUsableKey = 13
  /// The peer's key is on a deny-list.
  case denied = 14
  /// Another key is pinned under the peer's name.
  case keyChanged = 15
  /// A file of the anchors directory cannot be parsed, and it may revoke a certificate of the chain.
  case revocationUnknown = 17
  /// A certificate of the chain has a serial number that no revocation list can contain.
  case malformedSerial = 18

  /// The reason and the remedy, in one line.
  public var text: StaticString {
    switch self {
    case .expired: "its certificate, or one above it, has expired; issue a new one"
    case .notYetValid: "its certificate, or one above it, is not valid yet; is this box's clock right?"
    case .unknownIssuer: "no authority in the anchors directory issued its certificate"
    case .authorityAsLeaf: "its certificate is an authority's (CA), not a node's"
    case .pathTooLong: "an authority in its chain has more authorities below it than its path length allows"
    case .issuerNotAuthority: "the issuer of its certificate is not an authority (CA)"
    case .revoked: "its certificate, or one above it, is revoked (CRL)"
    case .wrongUsage:
      """
      its certificate does not allow this use; it needs digitalSignature, clientAuth, and serverAuth to be dialled; the extended \
      key usage of each authority above it must allow clientAuth
      """
    case .wrongSignature: "a signature in its chain is invalid"
    case .weakAlgorithm: "its chain is signed with a weak algorithm or key; SHA-256 and P-256 or better are needed"
    case .revocationListForged: "the revocation list (CRL) of its authority is not signed by it; replace the file"
    case .chainTooLong: "its chain is longer than 8 intermediate certificates, or has more than 256 names"
    case .noUsableKey: "it sent no certificate with an ECDSA P-256 key"
    case .denied: "its key is revoked (deny-list)"
    case .keyChanged: "another key is pinned under its name or one that looks like it"
    case .malformedSerial: "a serial number in its chain is not 1 to 20 bytes in the shortest form; issue a new one"
    case .revocationUnknown: "a file in the anchors directory that may revoke it cannot be read; see: causeway doctor"
    }
  }

  /// The TLS alert to send to the peer (RFC 8446, section 6.2).
  var alert: UInt8 {
    switch self {
    case .expired: 45
    case .revoked, .denied: 44
    case .unknownIssuer: 48
    case .wrongUsage, .authorityAsLeaf, .noUsableKey: 43
    case .notYetValid, .pathTooLong, .issuerNotAuthority, .wrongSignature, .weakAlgorithm, .chainTooLong,
      .malformedSerial:
      42
    case .revocationListForged, .keyChanged, .revocationUnknown: 46
    }
  }
}

/// Decides whether to admit peers that proved their key: neighbours on links, and the other ends of end-to-end
/// sessions.
public protocol PeerJudge: AnyObject {
  /// Why the peer is refused; nil if it is admitted. `chain` is the peer's certificate chain. `peer` is the id of the
  /// key that the peer proved.
  func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal?
  /// The time spent on verifying chains so far, in units of one P-256 signature check.
  var checksMade: Int { get }
}

extension PeerJudge {
  public var checksMade: Int { 0 }
}
