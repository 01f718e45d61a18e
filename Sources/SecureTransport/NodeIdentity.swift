import CMbedTLS
import CSystem
import Primitives

/// Who this node is: an ECDSA P-256 key, and the self-signed certificate that carries it into TLS.
///
/// On disk: `node.key` (PEM, mode 0600) and `node.crt` (PEM). Whoever has the key is the node: a copied card is
/// a second box with the same identity. The certificate is only a wrapper and is written anew from the key when it
/// is missing; one signed by a fleet's authority may be put in its place.
public final class NodeIdentity {
  /// The first 16 bytes of SHA-256 over the key's SubjectPublicKeyInfo.
  public let id: NodeID
  /// The public key: 0x04, then x and y (SEC 1, uncompressed).
  public let publicPoint: InlineArray<65, UInt8>

  private let key: Key
  private let certificate: Certificate
  private let signingKey: psa_key_id_t
  private var configurations: [TLSConfiguration] = []

  /// Reads the identity from `directory`, or makes and writes it at the first start. The directory is made
  /// (mode 0700) when only its last component is missing. Blocks until the kernel's generator is seeded.
  public static func loadOrCreate(directory: String) throws(IdentityError) -> NodeIdentity {
    try startLibrary()
    try IdentityFiles.prepare(directory: directory)
    let keyPath = directory + "/node.key", certificatePath = directory + "/node.crt"

    let key = Key()
    let storedCertificate = try IdentityFiles.read(certificatePath)
    if let stored = try IdentityFiles.read(keyPath, secret: true) {
      try key.parse(stored, path: keyPath)
    } else {
      if storedCertificate != nil { throw .keyMissing(certificate: certificatePath, key: keyPath) }
      try key.generate()
      try IdentityFiles.write(key.pem(), to: "node.key", in: directory, mode: 0o600)
    }

    let certificate = Certificate()
    if let storedCertificate {
      try certificate.parse(storedCertificate, path: certificatePath)
      if certificate.spki != (try key.spki()) {
        throw .certificateOfAnotherKey(certificate: certificatePath, key: keyPath)
      }
    } else {
      let spki = try key.spki()
      let id = spki.withUnsafeBytes { nodeID(ofSPKI: $0) }
      let der = try NodeCertificate.make(spki: spki, id: id) { body throws(IdentityError) in try key.signDER(body) }
      let pem = try Certificate.pem(der)
      try IdentityFiles.write(pem, to: "node.crt", in: directory, mode: 0o644)
      try certificate.parse(pem, path: certificatePath)
    }
    return try NodeIdentity(key, certificate)
  }

  private init(_ key: Key, _ certificate: Certificate) throws(IdentityError) {
    let spki = try key.spki()
    signingKey = try key.importForSigning()
    id = spki.withUnsafeBytes { NodeIdentity.nodeID(ofSPKI: $0) }
    publicPoint = InlineArray { spki[NodeCertificate.spkiPrefix.count + $0] }
    self.key = key
    self.certificate = certificate
  }

  deinit { psa_destroy_key(signingKey) }

  /// ECDSA with SHA-256 over the message: r ‖ s, 32 bytes each, big-endian. Deterministic (RFC 6979).
  public func sign(_ message: UnsafeRawBufferPointer) -> InlineArray<64, UInt8> {
    var signature = InlineArray<64, UInt8>(repeating: 0)
    var span = signature.mutableSpan
    let status = span.withUnsafeMutableBufferPointer { out in
      var count = 0
      return psa_sign_message(
        signingKey, cmbedtls_ecdsa_sha256(), message.bindMemory(to: UInt8.self).baseAddress, message.count,
        out.baseAddress, out.count, &count)
    }
    // The key was imported for exactly this; what is left is memory, and without that nothing goes on.
    precondition(status == PSA_SUCCESS, "signing failed")
    return signature
  }

  /// True when `signature` (r ‖ s, 64 bytes) over `message` was made with the key of `point` (65 bytes,
  /// uncompressed). False as well for anything malformed.
  public static func verify(
    point: UnsafeRawBufferPointer, message: UnsafeRawBufferPointer, signature: UnsafeRawBufferPointer
  ) -> Bool {
    guard point.count == NodeCertificate.pointBytes, signature.count == 64, psa_crypto_init() == PSA_SUCCESS else {
      return false
    }
    var attributes = cmbedtls_key_attributes()
    psa_set_key_type(&attributes, cmbedtls_p256_public_key())
    psa_set_key_bits(&attributes, 256)
    psa_set_key_algorithm(&attributes, cmbedtls_ecdsa_sha256())
    psa_set_key_usage_flags(&attributes, psa_key_usage_t(PSA_KEY_USAGE_VERIFY_MESSAGE))
    var key = psa_key_id_t(0)
    guard psa_import_key(&attributes, bytes(point), point.count, &key) == PSA_SUCCESS else { return false }
    defer { psa_destroy_key(key) }
    return psa_verify_message(
      key, cmbedtls_ecdsa_sha256(), bytes(message), message.count, bytes(signature), signature.count) == PSA_SUCCESS
  }

  /// The node that the key of `point` (65 bytes, uncompressed) is; `NodeID.none` for another length.
  public static func nodeID(ofPoint point: UnsafeRawBufferPointer) -> NodeID {
    guard point.count == NodeCertificate.pointBytes else { return .none }
    return withUnsafeTemporaryAllocation(byteCount: NodeCertificate.spkiBytes, alignment: 1) { spki in
      spki.copyBytes(from: NodeCertificate.spkiPrefix)
      UnsafeMutableRawBufferPointer(rebasing: spki[NodeCertificate.spkiPrefix.count...]).copyMemory(from: point)
      return nodeID(ofSPKI: UnsafeRawBufferPointer(spki))
    }
  }

  /// One configuration a role and highest version, made when first asked for and shared by every stream.
  func configuration(_ role: SecureStream.Role, _ versionMax: TLSVersion) throws(SecureStreamError)
    -> TLSConfiguration
  {
    for made in configurations where made.role == role && made.versionMax == versionMax { return made }
    let made = try TLSConfiguration(key: key, certificate: certificate, role: role, versionMax: versionMax)
    configurations.append(made)
    return made
  }

  /// Nothing may draw random numbers before the kernel's generator is seeded: wait for it, then seed mbedTLS's.
  private static func startLibrary() throws(IdentityError) {
    var probe: UInt64 = 0
    try withUnsafeMutableBytes(of: &probe) { bytes throws(IdentityError) in try secureRandom(into: bytes) }
    let status = psa_crypto_init()
    if status != PSA_SUCCESS { throw .library(code: status) }
  }

  private static func nodeID(ofSPKI spki: UnsafeRawBufferPointer) -> NodeID {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
      // Software SHA-256 over memory has no error to return.
      mbedtls_sha256(bytes(spki), spki.count, digest.bindMemory(to: UInt8.self).baseAddress!, 0)
      return NodeID(
        high: UInt64(bigEndian: digest.load(fromByteOffset: 0, as: UInt64.self)),
        low: UInt64(bigEndian: digest.load(fromByteOffset: 8, as: UInt64.self)))
    }
  }
}

private func bytes(_ buffer: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
  buffer.bindMemory(to: UInt8.self).baseAddress
}
