import Primitives

/// The self-signed X.509 v3 certificate of a node (RFC 5280). The certificate is encoded here, because everything
/// except key, name and signature is constant. mbedTLS's writer is not used, because it violates section 4.1.2.5: it
/// encodes years before 2000 as GeneralizedTime.
///
/// The certificate is valid from 1970 to 9999 ("no well-defined expiration", section 4.1.2.5). So the certificate is
/// valid by every clock, even by a clock that was never set.
package enum NodeCertificate {
  /// Returns the DER of the certificate for `spki`. `sign` returns a DER ECDSA-Sig-Value over SHA-256.
  static func make(
    spki: [UInt8], id: NodeID, sign: ([UInt8]) throws(IdentityError) -> [UInt8]
  ) throws(IdentityError) -> [UInt8] {
    let name = sequence(set(sequence(commonName + tagged(0x0C, hexadecimal(id)))))
    let version3: [UInt8] = [0xA0, 0x03, 0x02, 0x01, 0x02]
    // A serial number must be unique among the certificates of an issuer. This issuer issues only one certificate.
    let serial: [UInt8] = [0x02, 0x01, 0x01]
    let body = sequence(version3 + serial + ecdsaWithSHA256 + name + validity + name + spki)
    let signature = try sign(body)
    return sequence(body + ecdsaWithSHA256 + tagged(0x03, [0x00] + signature))
  }

  /// The bytes of a P-256 key's SubjectPublicKeyInfo (RFC 5480) that precede the uncompressed point.
  package static let spkiPrefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13,
    0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,  // id-ecPublicKey
    0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07,  // prime256v1
    0x03, 0x42, 0x00,
  ]
  package static let pointBytes = 65
  /// The first byte of an uncompressed point (SEC 1, section 2.3.3).
  static let uncompressed: UInt8 = 0x04
  package static let spkiBytes = 26 + pointBytes

  static func hexadecimal(_ id: NodeID) -> [UInt8] {
    var text: [UInt8] = []
    for index in 0..<NodeID.byteCount {
      for digit in [id.byte(index) >> 4, id.byte(index) & 15] { text.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
    }
    return text
  }

  private static let commonName: [UInt8] = [0x06, 0x03, 0x55, 0x04, 0x03]
  private static let ecdsaWithSHA256 = sequence([0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02])
  private static let validity = sequence(
    tagged(0x17, Array("700101000000Z".utf8)) + tagged(0x18, Array("99991231235959Z".utf8)))

  private static func sequence(_ contents: [UInt8]) -> [UInt8] { tagged(0x30, contents) }
  private static func set(_ contents: [UInt8]) -> [UInt8] { tagged(0x31, contents) }

  /// Encodes one DER element. No element of a node certificate reaches 64 KiB.
  private static func tagged(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    let count = contents.count
    if count < 0x80 { return [tag, UInt8(count)] + contents }
    if count < 0x100 { return [tag, 0x81, UInt8(count)] + contents }
    return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + contents
  }
}
