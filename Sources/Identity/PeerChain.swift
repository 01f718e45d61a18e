import CMbedTLS
import Primitives

/// The certificate chain that a node presents, its own certificate first. Valid while the stream or identity to which
/// it belongs exists.
public struct PeerChain {
  package let first: UnsafeMutablePointer<mbedtls_x509_crt>?

  /// The chain of an established mbedTLS session; empty if the peer presented no certificate.
  public init(_ first: UnsafePointer<mbedtls_x509_crt>?) { self.first = UnsafeMutablePointer(mutating: first) }

  /// Calls `body` with the chain of these DER certificates, the peer's own first. The chain ends before the first
  /// certificate that cannot be parsed.
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

  /// The node id of the first certificate's key; `NodeID.none` for an empty chain and for keys other than P-256.
  public var node: NodeID {
    guard let point else { return .none }
    return NodeIdentity.nodeID(ofPoint: point)
  }

  /// The uncompressed point of the first certificate's key, in the encoding from which node ids are derived.
  package var point: UnsafeRawBufferPointer? {
    guard let first else { return nil }
    let spki = UnsafeRawBufferPointer(first.pointee.pk_raw)
    let prefix = NodeCertificate.spkiPrefix
    guard spki.count == NodeCertificate.spkiBytes, spki.starts(with: prefix), spki[prefix.count] == 4 else {
      return nil
    }
    return UnsafeRawBufferPointer(rebasing: spki[prefix.count...])
  }
}
