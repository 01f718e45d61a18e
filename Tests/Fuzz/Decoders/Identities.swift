import CMbedTLS
@testable import Identity
import FuzzSupport
import Trust

/// Decodes any bytes as a PKCS #12 file, and as trusted certificates and revocation lists. Also decodes the input as
/// the contents of a PKCS #12 file with a correct MAC. So changes of the input reach the code behind the MAC check.
func fuzzIdentities(_ input: UnsafeRawBufferPointer) {
  let bytes = Array(input)
  open(bytes)
  open(file(bytes))
  _ = TrustAnchors().add(bytes)
}

private let password = Array("secret".utf8)

private func open(_ file: [UInt8]) {
  guard let contents = try? PKCS12.open(file, password: password) else { return }
  expect(contents.certificates.count <= PKCS12.partsMax, "\(contents.certificates.count) certificates")
}

/// A PFX (RFC 7292, section 4) with `safes` as its contents. The MAC of the PFX is by SHA-256 with one iteration.
private func file(_ safes: [UInt8]) -> [UInt8] {
  let sha256: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]
  let data: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01]
  guard let wide = PKCS12Key.bmpString(password), let hash = try? PKCS12Key.hash(of: sha256[...]) else {
    fatalError("no hash")
  }
  let salt: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
  let key = PKCS12Key.derive(.mac, hash, wide, salt, 1, byteCount: hash.byteCount)
  var mac = [UInt8](repeating: 0, count: hash.byteCount)
  mbedtls_md_hmac(mbedtls_md_info_from_type(hash.type), key, key.count, safes, safes.count, &mac)
  let digest = der(0x30, der(0x30, der(0x06, sha256) + der(0x05, [])) + der(0x04, mac))
  return der(
    0x30,
    der(0x02, [3]) + der(0x30, der(0x06, data) + der(0xA0, der(0x04, safes)))
      + der(0x30, digest + der(0x04, salt) + der(0x02, [1])))
}

private func der(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
  let count = contents.count
  let length: [UInt8] =
    count < 0x80 ? [UInt8(count)] : [0x82, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
  return [tag] + length + contents
}
