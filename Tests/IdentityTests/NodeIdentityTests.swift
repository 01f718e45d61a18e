import CSystem
import FileSupport
import Primitives
import Testing

@testable import Identity

struct NodeIdentityTests {
  let scratch = Scratch()

  private func load() throws(IdentityError) -> NodeIdentity { try NodeIdentity.loadOrCreate(directory: scratch.path) }

  /// The error of loading the identity. Nil if loading succeeds.
  private func refusal() -> IdentityError? {
    do throws(IdentityError) {
      _ = try load()
      return nil
    } catch {
      return error
    }
  }

  @Test func `a node has the same identity after a restart`() throws {
    let first = try load()
    let file = scratch.bytes("node.key")
    let second = try load()
    #expect(first.id == second.id)
    #expect(array(first.publicPoint) == array(second.publicPoint))
    #expect(file == scratch.bytes("node.key"))
  }

  @Test func `a node derives the same passphrase at each start, and a different one for another purpose`() throws {
    let first = try load().passphrase(for: "one")
    #expect(first.utf8.count == 16)
    #expect(try load().passphrase(for: "one") == first)
    #expect(try load().passphrase(for: "two") != first)
    #expect(try makeIdentity().passphrase(for: "one") != first)
  }

  @Test func `two nodes have different ids`() throws {
    #expect(try makeIdentity().id != makeIdentity().id)
  }

  @Test func `the key file is readable only by its owner, and no other file is left`() throws {
    _ = try load()
    #expect(try scratch.mode("node.key") == 0o600)
    #expect(shell("ls -A \(scratch.path)").output == "node.key\n")
  }

  @Test func `OpenSSL reads the certificate and computes the same node id`() throws {
    let identity = try load()
    let text = try scratch.openssl("x509 -in node.key -noout -subject -dates -ext basicConstraints")
    #expect(text.contains("CN = \(hex(identity.id))"))
    #expect(text.contains("notBefore=Jan  1 00:00:00 1970 GMT"))
    #expect(text.contains("notAfter=Dec 31 23:59:59 9999 GMT"))
    #expect(try scratch.openssl("verify -CAfile node.key node.key").contains("node.key: OK"))
    #expect(try scratch.openssl("pkey -in node.key -pubout -outform DER -out spki.der").isEmpty)
    let digest = try scratch.openssl("dgst -sha256 -r spki.der")
    #expect(digest.hasPrefix(hex(identity.id)))
    #expect(Array(try #require(scratch.bytes("spki.der")).suffix(65)) == array(identity.publicPoint))
  }

  @Test func `the node id of a public point is that of its key`() throws {
    let identity = try load()
    let point = array(identity.publicPoint)
    #expect(point.withUnsafeBytes { NodeIdentity.nodeID(ofPoint: $0) } == identity.id)
    #expect(point.dropLast().withUnsafeBytes { NodeIdentity.nodeID(ofPoint: $0) } == .none)
  }

  @Test func `a key that OpenSSL created is accepted`() throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out node.key")
    try scratch.openssl("pkey -in node.key -pubout -outform DER -out spki.der")
    let id = try load().id
    #expect(try scratch.openssl("dgst -sha256 -r spki.der").hasPrefix(hex(id)))
  }

  @Test func `a PKCS 8 key is accepted`() throws {
    try scratch.openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out node.key")
    #expect(refusal() == nil)
  }

  @Test func `a key without a certificate gets the same certificate again`() throws {
    let first = try load()
    try scratch.openssl("ec -in node.key -out alone.key")
    try scratch.openssl("x509 -in node.key -outform DER -out first.der")
    try scratch.write("node.key", String(decoding: try #require(scratch.bytes("alone.key")), as: UTF8.self))
    #expect(try load().id == first.id)
    let again = try load()
    withExtendedLifetime(again) {
      #expect(Array(UnsafeRawBufferPointer(again.chain.first!.pointee.raw)) == scratch.bytes("first.der"))
    }
  }

  @Test func `a lost key whose certificate exists is not replaced`() throws {
    _ = try load()
    try scratch.openssl("x509 -in node.key -out node.crt")
    try scratch.remove("node.key")
    #expect(refusal() == .keyMissing(certificate: scratch.file("node.crt"), key: scratch.file("node.key")))
    #expect(scratch.bytes("node.key") == nil)
  }

  @Test(arguments: ["node.key.old", "state", "state.old"])
  func `a lost key is not replaced while other files show that it existed`(trace: String) throws {
    _ = try load()
    try scratch.remove("node.key")
    try scratch.write(trace, "something")
    #expect(refusal() == .keyLost(key: scratch.file("node.key"), left: scratch.file(trace)))
    #expect(scratch.bytes("node.key") == nil)
    // Only an explicit command makes a new identity in place of a lost one.
    _ = try NodeIdentity.create(StateDirectory(scratch.path))
    #expect(refusal() == nil)
  }

  @Test(arguments: [0o640, 0o604, 0o660] as [UInt32])
  func `a key that other users may read is refused with the command that protects it`(mode: UInt32) throws {
    _ = try load()
    try scratch.chmod("node.key", mode)
    let error = try #require(refusal())
    #expect(error == .keyOpenToOthers(path: scratch.file("node.key"), mode: mode))
    #expect(error.text.hasSuffix("run: chmod 600 \(scratch.path)/node.key"))
  }

  @Test func `a key of another curve is refused`() throws {
    try scratch.openssl("ecparam -name secp384r1 -genkey -noout -out node.key")
    #expect(refusal() == .notP256(path: scratch.file("node.key")))
  }

  @Test func `an RSA key is refused`() throws {
    try scratch.openssl("genrsa -out node.key 2048")
    #expect(refusal() == .notP256(path: scratch.file("node.key")))
  }

  @Test(arguments: ["", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n", "\u{0}\u{1}"])
  func `a file without a key is refused`(text: String) throws {
    try scratch.write("node.key", text)
    try scratch.chmod("node.key", 0o600)
    #expect(refusal() == .notAPrivateKey(path: scratch.file("node.key")))
  }

  @Test func `an oversized key file is refused`() throws {
    try scratch.write("node.key", String(repeating: "A", count: 16385))
    try scratch.chmod("node.key", 0o600)
    #expect(refusal() == .tooLarge(path: scratch.file("node.key"), bytesMax: 16384))
  }

  @Test func `a certificate of another key is refused`() throws {
    _ = try load()
    try scratch.openssl("x509 -in node.key -out node.crt")
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out node.key")
    #expect(
      refusal() == .certificateOfAnotherKey(certificate: scratch.file("node.crt"), key: scratch.file("node.key")))
  }

  @Test func `a file without a certificate is refused`() throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out node.key")
    try scratch.write("node.crt", "nonsense")
    #expect(refusal() == .notACertificate(path: scratch.file("node.crt")))
  }

  @Test(arguments: [
    ("----BEGIN CERTIFICATE-----", "neither a BEGIN line, an END line nor text"),
    ("-----BEGIN TRUSTED CERTIFICATE-----", "the END line belongs to another block"),
  ])
  func `a stored file is refused if one of its blocks would be skipped`(begin: String, reason: String) throws {
    _ = try load()
    let file = String(decoding: try #require(scratch.bytes("node.key")), as: UTF8.self)
    let lines = file.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let index = try #require(lines.firstIndex(of: "-----BEGIN CERTIFICATE-----"))
    try scratch.write("node.key", lines.map { $0.contains("BEGIN CERTIFICATE") ? begin : $0 }.joined(separator: "\n"))
    var found = ""
    if case .unusableCertificate(_, let reason) = refusal() { found = reason }
    #expect(found.hasPrefix("line \(index + 1): ") || found.hasSuffix(reason), "\(found)")
  }

  @Test func `a damaged key is replaced by the previous one, and the fallback is reported`() throws {
    let old = try load().id
    let new = try NodeIdentity.create(StateDirectory(scratch.path)).id
    #expect(old != new)
    #expect(try load().id == new)
    try scratch.write("node.key", "torn")
    try scratch.chmod("node.key", 0o600)
    let fallen = try load()
    #expect(fallen.id == old)
    #expect(fallen.notice?.hasSuffix("node.key.old, is used") == true)
  }

  @Test func `a directory that cannot be created is an error`() {
    #expect(throws: IdentityError.directory(path: "/proc/none/deeper", code: ENOENT)) {
      try NodeIdentity.loadOrCreate(directory: "/proc/none/deeper")
    }
  }

  @Test func `a signature is valid only for its key and its message`() throws {
    let identity = try load()
    let message = Array("advertisement".utf8)
    let signature = array(message.withUnsafeBytes { identity.sign($0) })
    let point = array(identity.publicPoint)
    func verify(_ point: [UInt8], _ message: [UInt8], _ signature: [UInt8]) -> Bool {
      NodeIdentity.verify(signature.span.bytes, over: message.span.bytes, by: point.span.bytes)
    }
    #expect(verify(point, message, signature))
    #expect(!verify(point, message + [0], signature))
    #expect(!verify(array(try makeIdentity().publicPoint), message, signature))
    #expect(!verify(point, message, Array(signature.dropLast())))
    #expect(!verify(Array(point.dropLast()), message, signature))
    #expect(!verify(point, message, [UInt8](repeating: 0, count: 64)))
    #expect(!verify([4] + [UInt8](repeating: 1, count: 64), message, signature))
    var altered = signature
    altered[63] ^= 1
    #expect(!verify(point, message, altered))
  }

  @Test func `signing is deterministic`() throws {
    let identity = try load()
    let message = Array("same".utf8)
    #expect(
      array(message.withUnsafeBytes { identity.sign($0) }) == array(message.withUnsafeBytes { identity.sign($0) }))
  }

  @Test func `random bytes fill the whole buffer`() throws {
    var bytes = [UInt8](repeating: 0, count: 4096)
    try bytes.withUnsafeMutableBytes { try secureRandom(into: $0) }
    #expect(Set(bytes).count > 200)
    #expect(Set(bytes.suffix(64)).count > 10)
  }
}
