import CSystem
import FileSupport
import Testing

@testable import Identity

/// The import of PEM files. A file is either understood completely, or no part of the file is imported.
struct ImportTests {
  let scratch = Scratch()
  private let key: String
  private let leaf: String

  init() throws {
    try scratch.makeFleet()
    key = String(decoding: try #require(scratch.bytes("node.pem.key")), as: UTF8.self)
    leaf = String(decoding: try #require(scratch.bytes("node.pem")), as: UTF8.self)
  }

  private func text(_ file: String) throws -> String {
    String(decoding: try #require(scratch.bytes(file)), as: UTF8.self)
  }

  private func importing(_ bytes: [UInt8], at time: Int64 = Scratch.june) throws(IdentityError) -> NodeIdentity {
    try NodeIdentity.importing(
      bytes, path: "node.pem", password: [], at: time, into: StateDirectory(scratch.file("state")))
  }

  /// The subjects of the certificates in the imported identity, as printed by openssl.
  private func subjects(_ text: String, at time: Int64 = Scratch.june) throws -> [String] {
    let identity = try importing(Array(text.utf8), at: time)
    try scratch.write("out.pem", identity.pem(withKey: false))
    let shown = try scratch.openssl("crl2pkcs7 -nocrl -certfile out.pem | openssl pkcs7 -print_certs -noout")
    return shown.split(separator: "\n").filter { $0.hasPrefix("subject") }.map(String.init)
  }

  /// The error of the import. Nil if the import succeeds.
  private func refusal(_ bytes: [UInt8], at time: Int64 = Scratch.june) -> IdentityError? {
    do throws(IdentityError) {
      _ = try importing(bytes, at: time)
      return nil
    } catch {
      return error
    }
  }

  @Test func `an unreadable certificate is refused and not skipped`() throws {
    let count = key.split(separator: "\n").count
    func labelled(_ label: String) -> String { leaf.replacing("CERTIFICATE", with: label) }
    // The text behind the key in the file, and the line that the error names. Lines are counted from the last line of
    // the key.
    let damages: [(text: String, line: Int)] = [
      (labelled("TRUSTED CERTIFICATE"), 1), (labelled("X509 CERTIFICATE"), 1), (labelled("certificate"), 1),
      (labelled("PKCS7"), 1), (labelled("X509 CRL"), 1), (leaf.replacing("-----BEGIN", with: "----BEGIN"), 1),
      (leaf.replacing("-----BEGIN CERTIFICATE-----\n", with: ""), 1),
      (leaf.replacing("-----BEGIN", with: "-----begin"), 1),
      ("-----BEGIN CE", 1), (String(leaf.prefix(200)), 1), (leaf.replacing("\n", with: "\r"), 1),
      ("see below\n" + leaf.replacing("-----BEGIN CERTIFICATE-----", with: "BEGIN CERTIFICATE"), 2),
      ("{\"ca\": \"" + leaf.replacing("\n", with: "\\n") + "\"}\n", 1),
    ]
    for (text, line) in damages {
      guard case .malformedPEM("node.pem", count + line, _) = refusal(Array((key + text).utf8)) else {
        Issue.record("\(refusal(Array((key + text).utf8))?.text ?? "imported"): \(text)")
        continue
      }
    }
    // The certificate in this file is encoded as UTF-16.
    guard case .malformedPEM("node.pem", count + 1, _) = refusal(Array(key.utf8) + leaf.utf8.flatMap { [$0, 0] }) else {
      Issue.record("UTF-16 was taken")
      return
    }
    #expect(scratch.bytes("state/node.key") == nil)
  }

  @Test func `a certificate with trailing bytes is refused`() throws {
    try scratch.openssl("x509 -in node.pem -outform DER -out node.der")
    try scratch.write("two.der", try #require(scratch.bytes("node.der")) + [0x05, 0x00])
    try scratch.openssl("base64 -in two.der -out two.base64")
    let file = key + "-----BEGIN CERTIFICATE-----\n" + (try text("two.base64")) + "-----END CERTIFICATE-----\n"
    #expect(refusal(Array(file.utf8)) == .unreadableCertificate(path: "node.pem"))
  }

  @Test func `text that OpenSSL writes beside the blocks is ignored`() throws {
    let dump = try scratch.openssl("x509 -in node.pem -text") + (try scratch.openssl("x509 -in intermediate.pem -text"))
    #expect(try subjects(key + "\n# the chain\n" + dump).count == 2)
    try scratch.openssl(
      "pkcs12 -export -inkey node.pem.key -in node.pem -certfile chain.pem -out a.p12 -passout pass:secret")
    try scratch.openssl("pkcs12 -in a.p12 -nodes -passin pass:secret -out bags.pem")
    let bags = try text("bags.pem")
    try #require(bags.contains("Bag Attributes"))
    #expect(try subjects(bags).count == 3)
    #expect(try subjects(bags.replacing("\n", with: "\r\n")).count == 3)
    try scratch.openssl("ecparam -name prime256v1 -genkey -out with-parameters.key")
    let withParameters = try text("with-parameters.key")
    try #require(withParameters.contains("EC PARAMETERS"))
    #expect(refusal(Array(withParameters.utf8)) == nil)
  }

  @Test func `a second key is refused`() throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out other.key")
    let other = try text("other.key")
    for file in [key + other, other + key + leaf, key + leaf + other] {
      guard case .malformedPEM(_, _, let reason)? = refusal(Array(file.utf8)) else {
        Issue.record("taken: \(file)")
        continue
      }
      #expect(reason.hasPrefix("a second private key"))
    }
  }

  @Test func `an expired certificate is refused, and a valid one of the same key is accepted`() throws {
    try scratch.certificate(
      "old", by: "intermediate", extensions: Scratch.node, key: "node.pem.key", to: "20260201000000Z")
    let old = try text("old.pem")
    let error = refusal(Array((key + old).utf8))
    #expect(error == .expired(path: "node.pem", date: "2026-02-01"))
    #expect(error?.text.contains("expired on 2026-02-01; have a new one issued") == true)
    for file in [key + old + leaf, key + leaf + old] {
      #expect(try subjects(file).first?.hasSuffix("node") == true)
    }
    // In January 2026 the old certificate was valid, so that certificate is imported.
    #expect(try subjects(key + old, at: 1_768_000_000).first?.hasSuffix("old") == true)
    // A certificate that becomes valid in the future is preferred to an expired one.
    try scratch.certificate(
      "next", by: "intermediate", extensions: Scratch.node, key: "node.pem.key", from: "20280101000000Z")
    #expect(try subjects(key + old + text("next.pem")).first?.hasSuffix("next") == true)
    #expect(try subjects(key + text("next.pem") + leaf).first?.hasSuffix("node") == true)
  }

  // MARK: Files that exist already

  @Test func `the error of a key with an unusable chain contains no advice to remove the key`() throws {
    try scratch.certificate(
      "limited", extensions: Scratch.authority + "\nnameConstraints=critical,permitted;DNS:a.example")
    _ = shell("mkdir -m 700 \(scratch.file("state"))")
    for (chain, reason) in [
      (leaf + (try text("limited.pem")), "critical extension 2.5.29.30 (nameConstraints)"),
      (leaf + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "malformed"),
      (try text("root.pem"), "for another key"),
    ] {
      try scratch.write("state/node.key", key + chain)
      try scratch.chmod("state/node.key", 0o600)
      do throws(IdentityError) {
        _ = try NodeIdentity.loadOrCreate(directory: scratch.file("state"))
        Issue.record("taken: \(reason)")
      } catch {
        #expect(error.text.contains(reason) && !error.text.contains("remove"), "\(error.text)")
        #expect(error.text.contains("keep the file, it holds the box's key"), "\(error.text)")
      }
    }
  }

  @Test(arguments: ["node.key", "state", "state.old", "node.key.old"])
  func `a dead symbolic link does not count as an absent file`(name: String) throws {
    _ = shell("mkdir -m 700 \(scratch.file("state")); ln -s /nonexistent/x \(scratch.file("state"))/\(name)")
    #expect(throws: IdentityError.self) { try NodeIdentity.loadOrCreate(directory: scratch.file("state")) }
    let state = try StateDirectory(scratch.file("state"))
    #expect(state.has(name) && state.readChecked(name, bytesMax: 100) == .lost)
    #expect(throws: IdentityError.deadLink(path: scratch.file("state/\(name)"))) {
      try state.read(name, bytesMax: 100)
    }
    #expect(shell("ls -A \(scratch.file("state"))").output == "\(name)\n")
  }
}
