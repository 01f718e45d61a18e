import CMbedTLS
import Primitives

/// The certificate chain that a node presents. The first certificate is the node's own. The value is valid only while
/// the stream or identity to which the chain belongs exists.
public struct PeerChain {
  package let first: UnsafeMutablePointer<mbedtls_x509_crt>?

  /// Creates the chain of an established mbedTLS session. `first` is nil if the peer presented no certificate, and the
  /// chain is then empty.
  public init(_ first: UnsafePointer<mbedtls_x509_crt>?) { self.first = UnsafeMutablePointer(mutating: first) }

  /// Calls `body` with the chain of these certificates in DER. The peer's own certificate is the first. The chain ends
  /// before the first certificate that cannot be parsed.
  public static func withDER(_ certificates: [[UInt8]], _ body: (PeerChain) -> Void) {
    let context = UnsafeMutablePointer<mbedtls_x509_crt>.allocate(capacity: 1)
    mbedtls_x509_crt_init(context)
    defer {
      mbedtls_x509_crt_free(context)
      context.deallocate()
    }
    for der in certificates {
      if mbedtls_x509_crt_parse_der(context, der, der.count) != 0 { break }
    }
    body(PeerChain(context.pointee.raw.p == nil ? nil : UnsafePointer(context)))
  }

  /// The node id of the first certificate's key. The value is `NodeID.none` for an empty chain and for a key that is
  /// not P-256.
  public var node: NodeID {
    guard let point else { return .none }
    return NodeIdentity.nodeID(ofPoint: point)
  }

  /// The uncompressed point of the first certificate's key. The point has the encoding from which node ids are derived.
  /// The value is nil for an empty chain and for a key that is not P-256.
  package var point: UnsafeRawBufferPointer? {
    guard let first else { return nil }
    let spki = UnsafeRawBufferPointer(first.pointee.pk_raw)
    let prefix = NodeCertificate.spkiPrefix
    guard spki.count == NodeCertificate.spkiBytes, spki.starts(with: prefix), spki[prefix.count] == 4 else {
      return nil
    }
    return UnsafeRawBufferPointer(rebasing: spki[prefix.count...])
  }

  /// A distinguished name as text. mbedTLS escapes unprintable characters (RFC 4514).
  package static func text(_ name: inout mbedtls_x509_name) -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    return mbedtls_x509_dn_gets(&buffer, buffer.count, &name) > 0
      ? String(cString: buffer) : "a name longer than 255 bytes"
  }
}
