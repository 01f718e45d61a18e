import Identity
import Primitives

/// Why a peer is refused although it proved its key. The raw value is stored in journal records.
public enum PeerRefusal: UInt8, Error, Sendable {
  /// A certificate of its chain has expired.
  case expired = 1
  case notYetValid = 2
  /// Its chain does not lead to an anchor.
  case unknownIssuer = 3
  /// Its own certificate is that of an authority.
  case authorityAsLeaf = 4
  /// An authority in its chain has more authorities below it than its path length allows.
  case pathTooLong = 5
  /// A certificate of its chain was issued by one that is not an authority.
  case issuerNotAuthority = 6
  /// Its certificate, or one above it, is on a revocation list.
  case revoked = 7
  /// Its certificate is not for TLS, or an authority in its chain is not for issuing such certificates.
  case wrongUsage = 8
  /// A signature in its chain is wrong.
  case wrongSignature = 9
  /// A signature uses a weak algorithm or key, for example SHA-1.
  case weakAlgorithm = 10
  /// The revocation list in the anchors directory for its authority is not signed by that authority.
  case revocationListForged = 11
  /// Its chain has more certificates than are checked.
  case chainTooLong = 12
  /// It showed no certificate, or its key is not ECDSA P-256.
  case noUsableKey = 13
  /// Its key is on a deny-list.
  case denied = 14
  /// Another key is pinned under its name.
  case keyChanged = 15
  /// A file of the anchors directory is not understood, and may revoke its certificate or one above it.
  case revocationUnknown = 17
  /// A certificate of its chain has a serial number that no revocation list can name.
  case malformedSerial = 18

  /// One line: what is wrong and what to do.
  public var text: StaticString {
    switch self {
    case .expired: "its certificate, or one above it, has expired; issue a new one"
    case .notYetValid: "its certificate, or one above it, is not valid yet; is this box's clock right?"
    case .unknownIssuer: "its certificate is by none of the authorities in the anchors directory"
    case .authorityAsLeaf: "its certificate is an authority's (CA), not a node's"
    case .pathTooLong: "an authority in its chain has more authorities below it than its path length allows"
    case .issuerNotAuthority: "its certificate was issued by one that is no authority (CA)"
    case .revoked: "its certificate, or one above it, is revoked (CRL)"
    case .wrongUsage:
      """
      its certificate is not for its use; it needs digitalSignature, clientAuth, and serverAuth to be dialled; the extended \
      key usage of each authority above it must allow clientAuth
      """
    case .wrongSignature: "a signature in its chain is wrong"
    case .weakAlgorithm: "its chain is signed by a weak algorithm or key; SHA-256 and P-256 or better are needed"
    case .revocationListForged: "the revocation list (CRL) of its authority is not by that authority; replace the file"
    case .chainTooLong: "its chain is longer than 8 intermediate certificates, or has more than 256 names"
    case .noUsableKey: "it shows no certificate with an ECDSA P-256 key"
    case .denied: "its key is revoked (deny-list)"
    case .keyChanged: "another key is pinned under its name or one that looks like it; see: causeway identity alarms"
    case .malformedSerial: "a serial number in its chain is not 1 to 20 bytes in the shortest form; issue a new one"
    case .revocationUnknown: "a file in the anchors directory that may revoke it cannot be read; see: causeway doctor"
    }
  }

  /// The TLS alert for the peer (RFC 8446, section 6.2).
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

/// Decides about peers that proved their key: on links, and at the far end of an inner session.
public protocol PeerJudge: AnyObject {
  /// Nil accepts. `chain` is the peer's certificate chain, `peer` the key that it proved.
  func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal?
  /// The time that the verification of chains has taken so far, in checks of a signature over P-256.
  var checksMade: Int { get }
}

extension PeerJudge {
  public var checksMade: Int { 0 }
}
