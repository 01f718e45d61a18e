import CMbedTLS
import FileSupport
@testable import Identity
import SecureTransport
import Testing

@testable import Trust

/// Certificate chains that the openssl command creates. The tests set the time at which each chain is evaluated.
struct ChainEvaluationTests {
  let scratch = Scratch()

  init() throws { try scratch.makeFleet() }

  private static let now = TrustTime(kept: 0, wall: seconds(2027, 6), isSynchronised: true)
  private static func seconds(_ year: Int32, _ month: Int32 = 1) -> Int64 {
    Validity.seconds(mbedtls_x509_time(year: year, mon: month, day: 1, hour: 0, min: 0, sec: 0))
  }

  /// The decision on the certificate chain in these files. The first file is the node's certificate.
  private func verdict(
    _ files: [String], anchors: [String] = ["root.pem"], _ time: TrustTime = ChainEvaluationTests.now
  ) throws -> ChainVerdict {
    let chain = Certificate()
    for file in files { try chain.parse(try #require(scratch.bytes(file)), path: file) }
    let trusted = TrustAnchors()
    for file in anchors { #expect(trusted.add(try #require(scratch.bytes(file)))) }
    return withExtendedLifetime(chain) { PeerChain(chain.context).evaluate(trusted, time) }
  }

  @Test func `a chain with an intermediate leads to its anchor`() throws {
    #expect(try verdict(["node.pem", "intermediate.pem"]) == .trusted)
    #expect(try verdict(["node.pem", "intermediate.pem", "root.pem"]) == .trusted)
    #expect(try verdict(["node.pem"], anchors: ["intermediate.pem"]) == .trusted)
  }

  @Test func `few signatures are checked for a short chain`() {
    var found: ChainVerdict?
    let count = checksMade { found = try? verdict(["node.pem", "intermediate.pem"]) }
    #expect(found == .trusted && (2...4).contains(count))
  }

  @Test func `no signature of a key that no anchor certified is checked`() throws {
    try scratch.certificate("strangerRoot", extensions: Scratch.authority, algorithm: "P-521")
    try scratch.certificate("stranger", by: "strangerRoot", extensions: Scratch.authority, algorithm: "P-521")
    try scratch.certificate("guest", by: "stranger", extensions: Scratch.node)
    var found: ChainVerdict?
    let count = checksMade { found = try? verdict(["guest.pem", "stranger.pem", "strangerRoot.pem"]) }
    #expect(found == .refused(.unknownIssuer) && count == 0)
  }

  @Test func `at most two wrong signatures of a chain are checked`() throws {
    try scratch.certificate("strangerRoot", extensions: Scratch.authority, subject: "root", algorithm: "P-521")
    for name in ["one", "two", "three", "four"] {
      try scratch.certificate(
        name, by: "strangerRoot", extensions: Scratch.authority, subject: "below", algorithm: "P-521")
    }
    try scratch.certificate("guest", by: "four", extensions: Scratch.node)
    var found: ChainVerdict?
    let files = ["guest", "one", "two", "three", "four", "strangerRoot"].map { $0 + ".pem" }
    let count = checksMade { found = try? verdict(files) }
    #expect(found == .refused(.wrongSignature) && count == 2)
  }

  @Test func `the anchor whose key the certificate names is tried first among anchors of one name`() throws {
    for name in ["first", "second", "third", "fourth"] {
      try scratch.certificate(name, extensions: Scratch.authority + "\nsubjectKeyIdentifier=hash", subject: "same")
    }
    try scratch.certificate(
      "named", by: "fourth", extensions: Scratch.node + "\nauthorityKeyIdentifier=keyid:always")
    let anchors = ["first.pem", "second.pem", "third.pem", "fourth.pem"]
    // After two wrong signatures no more would be checked.
    #expect(try verdict(["named.pem"], anchors: anchors) == .trusted)
  }

  @Test func `a self-signed node certificate is an anchor only for itself`() throws {
    try scratch.certificate("lone", extensions: Scratch.node)
    #expect(try verdict(["lone.pem"], anchors: ["lone.pem"]) == .trusted)
    #expect(try verdict(["lone.pem"]) == .refused(.unknownIssuer))
    #expect(try verdict(["node.pem", "intermediate.pem"], anchors: ["lone.pem"]) == .refused(.unknownIssuer))
  }

  @Test func `a missing intermediate counts as an unknown issuer`() throws {
    #expect(try verdict(["node.pem"]) == .refused(.unknownIssuer))
    #expect(try verdict(["node.pem", "intermediate.pem"], anchors: []) == .refused(.unknownIssuer))
  }

  @Test func `an authority with the anchor's name and another key is not the anchor`() throws {
    try scratch.certificate("false", extensions: Scratch.authority, subject: "root")
    try scratch.certificate("forged", by: "false", extensions: Scratch.node)
    #expect(try verdict(["forged.pem"]) == .refused(.wrongSignature))
    #expect(try verdict(["forged.pem", "false.pem"]) == .refused(.wrongSignature))
  }

  @Test func `every certificate of a chain must be within its dates`() throws {
    try scratch.certificate("old", by: "intermediate", extensions: Scratch.node, to: "20270501000000Z")
    try scratch.certificate("young", by: "intermediate", extensions: Scratch.node, from: "20270701000000Z")
    try scratch.certificate("oldCA", by: "root", extensions: Scratch.authority, to: "20270501000000Z")
    try scratch.certificate("below", by: "oldCA", extensions: Scratch.node)
    #expect(try verdict(["old.pem", "intermediate.pem"]) == .refused(.expired))
    #expect(try verdict(["young.pem", "intermediate.pem"]) == .refused(.notYetValid))
    #expect(try verdict(["below.pem", "oldCA.pem"]) == .refused(.expired))
  }

  @Test func `the certificate of an authority is refused as that of a node`() throws {
    #expect(try verdict(["intermediate.pem"]) == .refused(.authorityAsLeaf))
    #expect(try verdict(["root.pem"]) == .refused(.authorityAsLeaf))
  }

  @Test func `path length constraints are enforced`() throws {
    try scratch.certificate("short", extensions: "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=keyCertSign")
    try scratch.certificate("direct", by: "short", extensions: Scratch.node)
    try scratch.certificate("sub", by: "short", extensions: Scratch.authority)
    try scratch.certificate("deep", by: "sub", extensions: Scratch.node)
    #expect(try verdict(["direct.pem"], anchors: ["short.pem"]) == .trusted)
    #expect(try verdict(["deep.pem", "sub.pem"], anchors: ["short.pem"]) == .refused(.pathTooLong))
  }

  @Test func `a node certificate cannot issue certificates`() throws {
    try scratch.certificate("child", by: "node", extensions: Scratch.node)
    #expect(try verdict(["child.pem", "node.pem", "intermediate.pem"]) == .refused(.issuerNotAuthority))
    try scratch.certificate("mute", by: "root", extensions: "basicConstraints=CA:TRUE\nkeyUsage=cRLSign")
    try scratch.certificate("spoken", by: "mute", extensions: Scratch.node)
    #expect(try verdict(["spoken.pem", "mute.pem"]) == .refused(.issuerNotAuthority))
  }

  @Test func `the key usage must allow TLS`() throws {
    for (extensions, expected) in [
      ("keyUsage=keyAgreement", ChainVerdict.refused(.wrongUsage)),
      ("extendedKeyUsage=codeSigning", .refused(.wrongUsage)),
      ("extendedKeyUsage=clientAuth", .trusted), ("extendedKeyUsage=clientAuth,codeSigning", .trusted),
      ("extendedKeyUsage=serverAuth", .refused(.wrongUsage)),
      ("extendedKeyUsage=serverAuth,codeSigning", .refused(.wrongUsage)),
      ("extendedKeyUsage=anyExtendedKeyUsage", .trusted),
      ("keyUsage=keyAgreement\nextendedKeyUsage=clientAuth", .refused(.wrongUsage)),
      ("keyUsage=digitalSignature", .trusted), ("subjectAltName=DNS:anything", .trusted),
    ] {
      try scratch.certificate("used", by: "intermediate", extensions: extensions)
      #expect(try verdict(["used.pem", "intermediate.pem"]) == expected, "\(extensions)")
    }
  }

  @Test func `a signature over a weak hash is refused`() throws {
    try scratch.certificate("weak", by: "intermediate", extensions: Scratch.node, digest: "sha1")
    #expect(try verdict(["weak.pem", "intermediate.pem"]) == .refused(.weakAlgorithm))
  }

  @Test func `a revoked certificate is refused, and others are accepted`() throws {
    try scratch.certificate("other", by: "intermediate", extensions: Scratch.node)
    try scratch.revocationList("list", by: "intermediate", revoking: ["node"])
    let anchors = ["root.pem", "list.crl"]
    #expect(try verdict(["node.pem", "intermediate.pem"], anchors: anchors) == .refused(.revoked))
    #expect(try verdict(["other.pem", "intermediate.pem"], anchors: anchors) == .trusted)
    // The intermediate is revoked by a list of its own issuer, the root.
    try scratch.revocationList("above", by: "root", revoking: ["intermediate"])
    #expect(try verdict(["other.pem", "intermediate.pem"], anchors: ["root.pem", "above.crl"]) == .refused(.revoked))
  }

  @Test func `an expired revocation list still revokes, but refuses no other certificate`() throws {
    try scratch.certificate("other", by: "intermediate", extensions: Scratch.node)
    try scratch.revocationList("list", by: "intermediate", revoking: ["node"])
    let later = TrustTime(kept: 0, wall: Self.seconds(2035), isSynchronised: true)
    let anchors = ["root.pem", "list.crl"]
    #expect(try verdict(["node.pem", "intermediate.pem"], anchors: anchors, later) == .refused(.revoked))
    #expect(try verdict(["other.pem", "intermediate.pem"], anchors: anchors, later) == .trusted)
  }

  @Test func `a revocation list signed by another key is refused as forged`() throws {
    try scratch.certificate("false", extensions: Scratch.authority, subject: "intermediate")
    try scratch.revocationList("list", by: "false", revoking: [])
    #expect(
      try verdict(["node.pem", "intermediate.pem"], anchors: ["root.pem", "list.crl"])
        == .refused(.revocationListForged))
  }

  @Test func `a revoked anchor is not trusted`() throws {
    try scratch.revocationList("above", by: "root", revoking: ["intermediate"])
    #expect(try verdict(["node.pem"], anchors: ["intermediate.pem", "root.pem"]) == .trusted)
    #expect(try verdict(["node.pem"], anchors: ["intermediate.pem", "root.pem", "above.crl"]) == .refused(.revoked))
  }

  @Test func `an authority with a new key may sign lists for the old one`() throws {
    try scratch.certificate("fresh", extensions: Scratch.authority, subject: "root")
    try scratch.revocationList("list", by: "fresh", revoking: ["intermediate"])
    let files = ["node.pem", "intermediate.pem"]
    #expect(try verdict(files, anchors: ["root.pem", "fresh.pem", "list.crl"]) == .refused(.revoked))
    #expect(try verdict(files, anchors: ["root.pem", "list.crl"]) == .refused(.revocationListForged))
  }

  @Test func `an anchor of X.509 version 1 issues nothing`() throws {
    // A self-signed certificate without extensions is an anchor for its own node, but not an authority for others.
    try scratch.openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out first.pem.key")
    try scratch.openssl("req -new -key first.pem.key -subj /CN=first -out first.csr")
    try scratch.openssl("x509 -req -in first.csr -signkey first.pem.key -days 3650 -out first.pem")
    try #require(try scratch.openssl("x509 -in first.pem -noout -text").contains("Version: 1"))
    try scratch.certificate("child", by: "first", extensions: Scratch.node)
    #expect(try verdict(["first.pem"], anchors: ["first.pem"]) == .trusted)
    #expect(try verdict(["child.pem"], anchors: ["first.pem"]) == .refused(.issuerNotAuthority))
  }

  @Test func `a critical Netscape type without TLS client use is refused`() throws {
    try scratch.certificate("typed", by: "intermediate", extensions: Scratch.node + "\nnsCertType=critical,email")
    #expect(try verdict(["typed.pem", "intermediate.pem"]) == .refused(.wrongUsage))
  }

  @Test func `a key on another curve is refused`() throws {
    try scratch.certificate("large", by: "intermediate", extensions: Scratch.node, algorithm: "P-384")
    #expect(try verdict(["large.pem", "intermediate.pem"]) == .refused(.noUsableKey))
  }

  @Test func `the length of a chain is limited`() throws {
    var files: [String] = []
    var issuer = "root"
    for depth in 0..<9 {
      try scratch.certificate("ca\(depth)", by: issuer, extensions: Scratch.authority)
      issuer = "ca\(depth)"
      files.insert("\(issuer).pem", at: 0)
      try scratch.certificate("leaf\(depth)", by: issuer, extensions: Scratch.node)
      let chain = ["leaf\(depth).pem"] + files
      #expect(try verdict(chain) == (depth < 8 ? .trusted : .refused(.chainTooLong)), "depth \(depth)")
    }
  }

  // MARK: Time without a clock

  /// The certificate is valid from 2026-12-15 to 2028. The box's earliest possible time is the release date,
  /// 2026-11-21. The first argument is the last certain time on disk, in days after the release; 0 means none. The
  /// second argument is the clock, in days after the release; 0 means 1970. The third argument is whether the clock is
  /// synchronised.
  @Test(arguments: [
    (Int64(0), 0, false, ChainVerdict.trustedForNow),  // the clock shows 1970, as after a boot
    (0, 20 * 365, false, .trustedForNow),  // an unsynchronised clock 20 years ahead proves nothing
    (0, -1, false, .trustedForNow),  // a day before the earliest possible time
    (0, -1, true, .refused(.notYetValid)),  // a synchronised clock proves that the certificate is not yet valid
    (0, 30, true, .trusted),  // synchronised in January 2027
    (0, 20 * 365, true, .refused(.expired)),  // synchronised in 2046
    (400, 0, false, .trusted),  // the clock was once certain of December 2027
    (1200, 0, false, .refused(.expired)),  // the clock was once certain of 2030: expired whatever it shows
    (1200, 30, true, .refused(.expired)),  // the clock shows a time before that certain time, which does not help
  ])
  func `dates are checked by the latest time that is certain`(
    keptDays: Int64, wallDays: Int, isSynchronised: Bool, expected: ChainVerdict
  ) throws {
    try scratch.certificate(
      "dated", by: "intermediate", extensions: Scratch.node, from: "20261215000000Z", to: "20280101000000Z")
    let day: Int64 = 86_400, release = TrustTime.releaseSeconds
    let wall = wallDays == 0 ? 0 : release + Int64(wallDays) * day
    let kept = keptDays == 0 ? 0 : release + keptDays * day
    let time = TrustTime(kept: kept, wall: wall, isSynchronised: isSynchronised)
    #expect(try verdict(["dated.pem", "intermediate.pem"], time) == expected)
  }

  @Test func `dates are counted from 1970`() {
    for (year, month, day, expected) in [
      (1970, 1, 1, 0), (2000, 2, 29, 951_782_400), (2026, 11, 21, 1_795_219_200), (9999, 12, 31, 253_402_214_400),
    ] as [(Int32, Int32, Int32, Int64)] {
      #expect(
        Validity.seconds(mbedtls_x509_time(year: year, mon: month, day: day, hour: 0, min: 0, sec: 0)) == expected)
    }
  }
}
