import FileSupport
import Testing

@testable import Identity

/// Chains that peers with the policy `ca` refuse whatever their anchors are. Such a chain is not imported, and is a
/// fault of a box that has it already.
struct ChainPathTests {
  let scratch = Scratch()

  init() throws { try scratch.makeFleet() }

  private func bytes(_ files: [String]) throws -> [UInt8] { try files.flatMap { try #require(scratch.bytes($0)) } }

  private func importing(_ files: [String]) throws(IdentityError) -> NodeIdentity {
    let file = files.flatMap { scratch.bytes($0) ?? [] }
    return try NodeIdentity.importing(
      file, path: "node.pem", password: [], at: Scratch.june, into: StateDirectory(scratch.file("imported")))
  }

  /// The reason for which the key of `node.pem` and these files are not imported. Nil if they are imported.
  private func reason(_ files: [String]) -> String? {
    do throws(IdentityError) {
      _ = try importing(["node.pem.key"] + files)
      return nil
    } catch {
      guard case .unusableChain(_, let reason) = error else { return error.text }
      return reason
    }
  }

  /// The node with the key of `node.pem` and these files, as a daemon loads it.
  private func installed(_ files: [String]) throws -> NodeIdentity {
    _ = shell("mkdir -p -m 700 \(scratch.file("state"))")
    try scratch.write("state/node.key", bytes(["node.pem.key"] + files))
    try scratch.chmod("state/node.key", 0o600)
    return try NodeIdentity.loadOrCreate(directory: scratch.file("state"))
  }

  /// Expects that these files are neither imported nor accepted when they are installed.
  private func expectRefusal(_ files: [String], _ text: String) throws {
    #expect(reason(files)?.contains(text) == true, "\(files): \(reason(files) ?? "imported")")
    #expect(reason(files)?.hasSuffix("peers with policy ca refuse it") == true)
    #expect(scratch.bytes("imported/node.key") == nil)
    let fault = try installed(files).chainFault
    #expect(fault?.contains(text) == true && fault?.hasPrefix("this box's certificates: ") == true, "\(files)")
    #expect(try installed(files).chainNotes(at: Scratch.june) == [])
  }

  private func leaf(_ name: String, by issuer: String, _ extensions: String = Scratch.node) throws {
    try scratch.certificate(name, by: issuer, extensions: extensions, key: "node.pem.key")
  }

  @Test func `a complete chain is imported in any order`() throws {
    for files in [
      ["node.pem", "intermediate.pem"], ["node.pem", "intermediate.pem", "root.pem"],
      ["root.pem", "intermediate.pem", "node.pem"], ["node.pem", "intermediate.pem", "intermediate.pem"],
    ] {
      let node = try importing(["node.pem.key"] + files)
      #expect(node.chainFault == nil && node.chainNotes(at: Scratch.june) == [], "\(files)")
      #expect(node.certificate.ders.count == Set(files).count)
    }
  }

  @Test func `a certificate with a wrong signature is refused`() throws {
    for name in ["node", "intermediate"] {
      try scratch.openssl("x509 -in \(name).pem -outform DER -out \(name).der")
      var der = try bytes(["\(name).der"])
      der[der.count - 3] ^= 1
      try scratch.write("bad.der", der)
      try scratch.openssl("x509 -inform DER -in bad.der -out bad-\(name).pem")
    }
    try expectRefusal(["bad-node.pem", "intermediate.pem"], "the signature of a certificate is wrong")
    try expectRefusal(["node.pem", "bad-intermediate.pem", "root.pem"], "the signature of a certificate is wrong")
    // The issuer has the right name, and another key.
    try scratch.certificate("false", by: "root", extensions: Scratch.authority, subject: "intermediate")
    try expectRefusal(["node.pem", "false.pem"], "the signature of a certificate is wrong")
    #expect(reason(["node.pem", "false.pem", "intermediate.pem"]) == nil)
    #expect(try installed(["node.pem", "false.pem", "intermediate.pem"]).chainFault == nil)
  }

  @Test func `an authority's certificate as that of the node is refused`() throws {
    try leaf("ca-leaf", by: "intermediate", Scratch.authority + ",digitalSignature")
    try expectRefusal(["ca-leaf.pem", "intermediate.pem"], "the node's own certificate is an authority's (CA)")
    try expectRefusal(["ca-leaf.pem"], "the node's own certificate is an authority's (CA)")
    // Networks with another policy accept a self-signed certificate of any kind.
    try scratch.certificate("self", extensions: Scratch.authority + ",digitalSignature", key: "node.pem.key")
    #expect(reason(["self.pem"]) == nil)
    let node = try installed(["self.pem"])
    #expect(node.chainFault == nil)
    #expect(
      node.chainNotes(at: Scratch.june).first?.contains("is an authority's (CA): peers with policy ca refuse") == true)
  }

  @Test func `an issuer that is no authority is refused`() throws {
    for (number, extensions) in [
      "", "keyUsage=keyCertSign,cRLSign", "basicConstraints=CA:FALSE",
      "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,cRLSign",
    ].enumerated() {
      try scratch.certificate("i\(number)", by: "root", extensions: extensions)
      try leaf("l\(number)", by: "i\(number)")
      try expectRefusal(
        ["l\(number).pem", "i\(number).pem"], "is not an authority's; it needs the CA bit and keyCertSign")
    }
  }

  @Test func `an authority for another use is refused`() throws {
    try scratch.certificate("mail", by: "root", extensions: Scratch.authority + "\nextendedKeyUsage=emailProtection")
    try leaf("leaf", by: "mail")
    try expectRefusal(["leaf.pem", "mail.pem", "root.pem"], "its extended key usage must contain clientAuth")
  }

  @Test func `more authorities in a row than one of them allows are refused`() throws {
    for limit in 0...1 {
      let extensions = "basicConstraints=critical,CA:TRUE,pathlen:\(limit)\nkeyUsage=critical,keyCertSign"
      try scratch.certificate("top\(limit)", by: "root", extensions: extensions)
      try scratch.certificate("low\(limit)", by: "top\(limit)", extensions: Scratch.authority)
      try leaf("leaf\(limit)", by: "low\(limit)")
    }
    try expectRefusal(["leaf0.pem", "low0.pem", "top0.pem", "root.pem"], "(pathlen)")
    #expect(reason(["leaf1.pem", "low1.pem", "top1.pem", "root.pem"]) == nil)
  }

  @Test func `a serial number that no list can contain is refused`() throws {
    try scratch.openssl("req -new -key node.pem.key -subj /CN=node -out node.csr")
    for (digits, isRefused) in [(21, true), (20, false)] {
      let serial = "0x" + String(repeating: "11", count: digits)
      try scratch.openssl(
        "x509 -req -in node.csr -CA intermediate.pem -CAkey intermediate.pem.key -set_serial \(serial) -days 9000 -out s.pem"
      )
      if isRefused {
        try expectRefusal(["s.pem", "intermediate.pem"], "a serial number is not 1 to 20 bytes")
      } else {
        #expect(reason(["s.pem", "intermediate.pem"]) == nil)
      }
    }
  }

  @Test func `signatures that take too long are refused`() throws {
    try scratch.openssl("genrsa -primes 4 -out rsa.pem.key 4608")
    try scratch.openssl(
      "req -new -x509 -key rsa.pem.key -subj /CN=rsa -days 9000 -addext keyUsage=keyCertSign,cRLSign -out rsa.pem")
    try leaf("long", by: "rsa")
    try expectRefusal(["long.pem", "rsa.pem"], "its signatures take too long to check: RSA above 4096 bits")
    try expectRefusal(["long.pem"], "its signatures take too long to check: RSA above 4096 bits")
    try scratch.certificate("p2", extensions: Scratch.authority, algorithm: "P-521")
    try scratch.certificate("p1", by: "p2", extensions: Scratch.authority, algorithm: "P-521")
    try scratch.certificate("p0", by: "p1", extensions: Scratch.authority, algorithm: "P-521")
    try leaf("slow", by: "p0")
    try expectRefusal(["slow.pem", "p0.pem", "p1.pem", "p2.pem"], "its signatures take too long to check")
    #expect(reason(["slow.pem", "p0.pem", "p1.pem"]) == nil)
  }

  @Test func `a validity that ends before it begins is refused`() throws {
    try scratch.certificate(
      "never", by: "intermediate", extensions: Scratch.node, key: "node.pem.key", from: "20340101000000Z",
      to: "20330101000000Z")
    try expectRefusal(["never.pem", "intermediate.pem"], "a certificate ends before it begins")
  }

  @Test func `a certificate that is no part of the chain is refused by name`() throws {
    try scratch.certificate("stranger", by: "root", extensions: Scratch.node)
    #expect(
      reason(["node.pem", "intermediate.pem", "stranger.pem"])?.hasPrefix("CN=stranger is no part of it") == true)
    try scratch.certificate("else", by: "root", extensions: Scratch.authority)
    #expect(reason(["node.pem", "else.pem"])?.hasPrefix("CN=else is no part of it") == true)
    #expect(scratch.bytes("imported/node.key") == nil)
    // Two authorities certify the issuer, so both are above the node.
    try scratch.certificate("east", extensions: Scratch.authority)
    try scratch.certificate(
      "cross", by: "east", extensions: Scratch.authority, subject: "intermediate", key: "intermediate.pem.key")
    #expect(reason(["node.pem", "intermediate.pem", "cross.pem", "east.pem"]) == nil)
  }

  @Test func `an authority that is absent or has expired is noted`() throws {
    let alone = try importing(["node.pem.key", "node.pem"])
    #expect(alone.chainFault == nil)
    #expect(
      alone.chainNotes(at: Scratch.june) == [
        "this box's chain lacks its issuer, CN=intermediate: peers with policy ca accept this box only if they have the "
          + "issuer's certificate as an anchor"
      ])
    try scratch.certificate(
      "old", by: "root", extensions: Scratch.authority, subject: "intermediate", key: "intermediate.pem.key",
      to: "20270101000000Z")
    let expired = try importing(["node.pem.key", "node.pem", "old.pem"])
    #expect(expired.chainFault == nil)
    #expect(
      expired.chainNotes(at: Scratch.june) == [
        "the certificate of CN=intermediate in this box's chain expired on 2027-01-01: peers with policy ca refuse this box"
      ])
    #expect(expired.chainNotes(at: Scratch.june - 20_000_000) == [])
    #expect(try importing(["node.pem.key"]).chainNotes(at: Scratch.june) == [])
  }
}
