import FileSupport
@testable import Identity
import SecureTransport
import Testing

@testable import Trust

/// Authorities above and below a trust anchor: their revocation lists, and the certificates that they may issue. Also
/// tests the comparison of names and of serial numbers.
struct AuthorityTests {
  let scratch = Scratch()
  private let june = TrustTime(kept: 0, wall: 1_811_808_000, isSynchronised: true)  // June 2027

  init() throws { try scratch.certificate("root", extensions: Scratch.authority) }

  private func anchors(_ files: [String]) throws -> TrustAnchors {
    let anchors = TrustAnchors()
    for file in files { #expect(anchors.add(try #require(scratch.bytes(file)), path: file)) }
    return anchors
  }

  /// The decision on the certificate chain in these files. The first file is the node's certificate.
  private func verdict(_ files: [String], _ anchors: TrustAnchors) throws -> ChainVerdict {
    let chain = Certificate()
    for file in files { try chain.parse(try #require(scratch.bytes(file)), path: file) }
    return withExtendedLifetime(chain) { PeerChain(chain.context).evaluate(anchors, june) }
  }

  private func verdict(_ files: [String], anchors names: [String]) throws -> ChainVerdict {
    try verdict(files, try anchors(names))
  }

  /// Creates `delta.crl`, a delta list of `issuer`. Delta lists are not supported.
  private func deltaList(by issuer: String) throws {
    try scratch.revocationList("plain", by: issuer, revoking: [])
    let text = String(decoding: try #require(scratch.bytes("ca.conf")), as: UTF8.self)
    try scratch.write("delta.conf", text + "[delta]\n2.5.29.27=critical,DER:02:01:01\n")
    try scratch.openssl(
      "ca -gencrl -config delta.conf -crlexts delta -cert \(issuer).pem -keyfile \(issuer).pem.key -out delta.crl")
  }

  // MARK: Authorities above an anchor

  /// Creates the certificates of a chain: root → first → second → leaf.
  private func makeLine() throws {
    try scratch.certificate("first", by: "root", extensions: Scratch.authority)
    try scratch.certificate("second", by: "first", extensions: Scratch.authority)
    try scratch.certificate("leaf", by: "second", extensions: Scratch.node)
  }

  @Test func `a revocation any number of steps above an anchor is applied`() throws {
    try makeLine()
    try scratch.revocationList("above", by: "root", revoking: ["first"])
    let all = ["root.pem", "first.pem", "second.pem"]
    #expect(try verdict(["leaf.pem"], anchors: all) == .trusted)
    #expect(try verdict(["leaf.pem"], anchors: all + ["above.crl"]) == .refused(.revoked))
    #expect(try verdict(["leaf.pem"], anchors: ["above.crl"] + all.reversed()) == .refused(.revoked))
    // The intermediate between the two anchors is not an anchor, and the peer sends it.
    let ends = ["root.pem", "second.pem", "above.crl"]
    #expect(try verdict(["leaf.pem", "first.pem"], anchors: ends) == .refused(.revoked))
    #expect(try verdict(["leaf.pem", "second.pem", "first.pem", "root.pem"], anchors: ends) == .refused(.revoked))
  }

  @Test func `a list that is not understood excludes certificates any number of steps below`() throws {
    try makeLine()
    try deltaList(by: "root")
    let trusted = try anchors(["root.pem", "first.pem", "second.pem"])
    #expect(!trusted.add(try #require(scratch.bytes("delta.crl"))))
    #expect(try verdict(["leaf.pem"], trusted) == .refused(.revocationUnknown))
  }

  @Test func `a second evaluation yields the same result`() throws {
    try makeLine()
    try scratch.revocationList("above", by: "root", revoking: ["first"])
    try scratch.certificate("sound", by: "root", extensions: Scratch.node)
    let trusted = try anchors(["root.pem", "first.pem", "second.pem", "above.crl"])
    for _ in 0..<2 {
      #expect(try verdict(["leaf.pem"], trusted) == .refused(.revoked))
      #expect(try verdict(["sound.pem"], trusted) == .trusted)
    }
  }

  @Test func `a revoked authority does not affect one of the same name with another key`() throws {
    for key in ["old", "fresh"] {
      try scratch.certificate(key, by: "root", extensions: Scratch.authority, subject: "middle")
      try scratch.certificate("below-\(key)", by: key, extensions: Scratch.authority)
      try scratch.certificate("node-\(key)", by: "below-\(key)", extensions: Scratch.node)
    }
    try scratch.revocationList("above", by: "root", revoking: ["old"])
    let all = ["root.pem", "old.pem", "fresh.pem", "below-old.pem", "below-fresh.pem", "above.crl"]
    #expect(try verdict(["node-fresh.pem"], anchors: all) == .trusted)
    #expect(try verdict(["node-old.pem"], anchors: all) == .refused(.revoked))
  }

  @Test func `authorities that certify each other cause no endless search`() throws {
    try scratch.certificate("east", extensions: Scratch.authority)
    try scratch.certificate("west", extensions: Scratch.authority)
    for (name, issuer) in [("east", "west"), ("west", "east")] {
      try scratch.certificate(
        "cross-\(name)", by: issuer, extensions: Scratch.authority, subject: name, key: "\(name).pem.key")
    }
    try scratch.certificate("leaf", by: "east", extensions: Scratch.node)
    #expect(try verdict(["leaf.pem"], anchors: ["cross-east.pem", "cross-west.pem"]) == .trusted)
    try scratch.revocationList("list", by: "east", revoking: ["cross-west"])
    #expect(try verdict(["leaf.pem"], anchors: ["cross-east.pem", "cross-west.pem", "list.crl"]) == .refused(.revoked))
  }

  @Test func `an authority with a new key is revoked by the list of its old one`() throws {
    // The certificate has the root's name as subject and as issuer, but another key. So the certificate is not
    // self-signed.
    try scratch.certificate("fresh", by: "root", extensions: Scratch.authority, subject: "root")
    try scratch.certificate("leaf", by: "fresh", extensions: Scratch.node)
    try scratch.certificate("old", by: "root", extensions: Scratch.node)
    try scratch.revocationList("list", by: "root", revoking: ["fresh"])
    let all = ["root.pem", "fresh.pem"]
    #expect(try verdict(["leaf.pem"], anchors: all) == .trusted)
    #expect(try verdict(["leaf.pem"], anchors: all + ["list.crl"]) == .refused(.revoked))
    #expect(try verdict(["leaf.pem"], anchors: ["fresh.pem", "root.pem", "list.crl"]) == .refused(.revoked))
    #expect(try verdict(["old.pem"], anchors: all + ["list.crl"]) == .trusted)
  }

  // MARK: Lists that cannot be verified

  @Test func `a list of an anchor's absent issuer excludes all certificates below that anchor`() throws {
    try makeLine()
    try scratch.revocationList("above", by: "root", revoking: ["first"])
    #expect(try verdict(["leaf.pem", "second.pem"], anchors: ["first.pem"]) == .trusted)
    for revoked in [["first"], []] {
      try scratch.revocationList("above", by: "root", revoking: revoked)
      #expect(
        try verdict(["leaf.pem", "second.pem"], anchors: ["first.pem", "above.crl"]) == .refused(.revocationUnknown))
    }
    // The list can be verified when the certificate of its authority is also an anchor.
    #expect(try verdict(["leaf.pem", "second.pem"], anchors: ["first.pem", "above.crl", "root.pem"]) == .trusted)
    try deltaList(by: "root")
    let trusted = try anchors(["first.pem"])
    #expect(!trusted.add(try #require(scratch.bytes("delta.crl"))))
    #expect(try verdict(["leaf.pem", "second.pem"], trusted) == .refused(.revocationUnknown))
  }

  @Test func `a list that cannot be verified is a fault`() throws {
    try makeLine()
    try scratch.revocationList("above", by: "root", revoking: [])
    let directory = scratch.file("anchors")
    #expect(shell("cd \(scratch.path) && mkdir anchors && cp above.crl first.pem anchors").status == 0)
    let fault = try #require(TrustAnchors(directory: directory).faults.first)
    #expect(fault.text.contains("the revocation list of CN=root, which issued an anchor, cannot be verified"))
    #expect(fault.isClosing && fault.effect.description.contains("no certificate below that authority"))
    #expect(shell("cd \(scratch.path) && cp root.pem anchors").status == 0)
    #expect(TrustAnchors(directory: directory).faults.map(\.text) == [])
  }

  /// The anchors in a directory with these files.
  private func directory(_ files: String) -> TrustAnchors {
    #expect(shell("cd \(scratch.path) && rm -rf anchors && mkdir anchors && cp \(files) anchors").status == 0)
    return TrustAnchors(directory: scratch.file("anchors"))
  }

  @Test func `a list with a wrong signature is a fault, and is checked once`() throws {
    try makeLine()
    try scratch.certificate("other", by: "root", extensions: Scratch.node)
    try scratch.certificate("false", extensions: Scratch.authority, subject: "first")
    try scratch.revocationList("list", by: "false", revoking: [])
    let trusted = directory("root.pem first.pem list.crl")
    let fault = try #require(trusted.faults.first)
    #expect(trusted.faults.count == 1 && fault.isClosing)
    #expect(
      fault.text.contains("anchors/list.crl:1: the revocation list of CN=first is not signed by that authority"),
      "\(fault.text)")
    #expect(fault.effect.description.contains("no certificate below that authority"))
    #expect(try verdict(["leaf.pem", "second.pem"], trusted) == .refused(.revocationListForged))
    #expect(try verdict(["other.pem"], trusted) == .trusted)
    // Only the three signatures of the chain and of the anchors are checked again.
    let again = checksMade { _ = try? verdict(["leaf.pem", "second.pem"], trusted) }
    let plain = directory("root.pem first.pem")
    _ = try verdict(["leaf.pem", "second.pem"], plain)
    #expect(again == checksMade { _ = try? verdict(["leaf.pem", "second.pem"], plain) })
  }

  @Test func `a list is checked when it is read, and not in the handshake`() throws {
    try makeLine()
    // Two anchors have the name of the list's issuer. Only the second signed the list.
    try scratch.certificate("fresh", by: "root", extensions: Scratch.authority, subject: "first")
    try scratch.revocationList("list", by: "fresh", revoking: [])
    let trusted = directory("root.pem first.pem fresh.pem list.crl"), plain = directory("root.pem first.pem fresh.pem")
    #expect(trusted.faults.map(\.text) == [])
    for anchors in [trusted, plain] { #expect(try verdict(["leaf.pem", "second.pem"], anchors) == .trusted) }
    let cost = checksMade { _ = try? verdict(["leaf.pem", "second.pem"], trusted) }
    #expect(cost == checksMade { _ = try? verdict(["leaf.pem", "second.pem"], plain) })
  }

  @Test func `a list of an authority that may not sign lists is a fault`() throws {
    try scratch.certificate(
      "mute", by: "root", extensions: "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign")
    try scratch.certificate("leaf", by: "mute", extensions: Scratch.node)
    try scratch.revocationList("list", by: "mute", revoking: [])
    let trusted = directory("root.pem mute.pem list.crl")
    #expect(
      trusted.faults.first?.text.contains("anchors/list.crl:1: the revocation list of CN=mute is not valid") == true)
    #expect(trusted.faults.first?.text.contains("lacks cRLSign") == true)
    #expect(try verdict(["leaf.pem"], trusted) == .refused(.revocationListForged))
  }

  @Test func `the checks of signatures at the start have a time limit`() throws {
    try scratch.certificate("slow", extensions: Scratch.authority, algorithm: "P-521")
    try scratch.revocationList("list", by: "slow", revoking: [])
    let list = try #require(scratch.bytes("list.crl"))
    _ = directory("root.pem slow.pem")
    try scratch.write("anchors/lists.pem", [[UInt8]](repeating: list, count: 15).flatMap { $0 })
    var trusted: TrustAnchors?
    let checks = checksMade { trusted = TrustAnchors(directory: scratch.file("anchors")) }
    #expect(checks == 520)  // 13 checks with P-521
    #expect(trusted?.faults.count == 2)
    #expect(trusted?.faults.first?.text.contains("is not verified, because there are too many lists") == true)
  }

  @Test func `a list of an absent authority is reported until a peer presents that authority`() throws {
    try makeLine()
    for name in ["root", "second"] { try scratch.revocationList(name, by: name, revoking: []) }
    let trusted = try anchors(["root.pem", "root.crl", "second.crl"])
    #expect(trusted.unmatched == ["the revocation list of CN=second belongs to no authority in the anchors directory"])
    #expect(trusted.faults.map(\.text) == [])
    #expect(try verdict(["leaf.pem", "second.pem", "first.pem"], trusted) == .trusted)
    #expect(trusted.unmatched == [])
  }

  // MARK: The certificates that an authority may issue

  @Test(arguments: [
    ("critical,emailProtection", ChainVerdict.refused(.wrongUsage)), ("serverAuth", .refused(.wrongUsage)),
    ("critical,codeSigning,serverAuth", .refused(.wrongUsage)), ("clientAuth", .trusted),
    ("critical,clientAuth,serverAuth", .trusted), ("anyExtendedKeyUsage", .trusted),
  ])
  func `an authority for other uses cannot issue node certificates`(usage: String, expected: ChainVerdict) throws {
    let extensions = Scratch.authority + "\nextendedKeyUsage=\(usage)"
    try scratch.certificate("limited", by: "root", extensions: extensions)
    try scratch.certificate("sub", by: "limited", extensions: Scratch.authority)
    try scratch.certificate("leaf", by: "limited", extensions: Scratch.node)
    try scratch.certificate("deep", by: "sub", extensions: Scratch.node)
    #expect(try verdict(["leaf.pem", "limited.pem"], anchors: ["root.pem"]) == expected)
    #expect(try verdict(["deep.pem", "sub.pem", "limited.pem"], anchors: ["root.pem"]) == expected)
    // The limits in a certificate also apply to an anchor, as in `openssl verify -purpose sslclient`.
    #expect(try verdict(["leaf.pem"], anchors: ["limited.pem"]) == expected)
  }

  // MARK: Comparison of names

  @Test func `an anchor's issuer is recognised despite another spelling of the name`() throws {
    // The root's name as stated in the intermediate, but in another string type and in upper case.
    try scratch.write("printable.conf", "[req]\nstring_mask=nombstr\ndistinguished_name=dn\n[dn]\n")
    try scratch.openssl("pkey -in root.pem.key -out spelled.pem.key")
    try scratch.openssl(
      "req -new -x509 -config printable.conf -key root.pem.key -subj '/CN=ROOT' -days 3650 -set_serial 5 -out spelled.pem"
    )
    try scratch.certificate("first", by: "spelled", extensions: Scratch.authority)
    try scratch.certificate("leaf", by: "first", extensions: Scratch.node)
    try scratch.revocationList("list", by: "root", revoking: ["first"])
    #expect(try verdict(["leaf.pem"], anchors: ["root.pem", "first.pem"]) == .trusted)
    #expect(try verdict(["leaf.pem"], anchors: ["root.pem", "first.pem", "list.crl"]) == .refused(.revoked))
  }

  @Test func `names are compared as text, whatever the type of their strings`() throws {
    let utf8 = ListIssuer(name: name(0x0C, Array("Zoë 😀".utf8))[...])
    let utf16: [UInt8] = [0, 0x5A, 0, 0x6F, 0, 0xEB, 0, 0x20, 0xD8, 0x3D, 0xDE, 0x00]
    let utf32: [UInt8] = [0, 0, 0, 0x5A, 0, 0, 0, 0x6F, 0, 0, 0, 0xEB, 0, 0, 0, 0x20, 0, 1, 0xF6, 0]
    #expect(utf8 != nil)
    #expect(ListIssuer(name: name(0x1E, utf16)[...]) == utf8)
    #expect(ListIssuer(name: name(0x1C, utf32)[...]) == utf8)
    #expect(
      ListIssuer(name: name(0x14, [0x7A, 0x4F, 0xEB])[...]) == ListIssuer(name: name(0x0C, Array("Zoë".utf8))[...]))
    #expect(ListIssuer(name: name(0x1E, [0, 0x5A, 0, 0x6F, 0, 0xEA])[...]) != utf8)
    // Names that end within a character, or that contain an illegal one.
    for (kind, bytes) in [
      (0x1E, [0x5A]), (0x1E, [0xD8, 0x3D]), (0x1E, [0xD8, 0x3D, 0, 0x5A]), (0x1E, [0xDE, 0]), (0x1C, [0, 0, 0x5A]),
      (0x1C, [0, 0, 0xD8, 0x3D]), (0x1C, [0, 0x11, 0, 0]),
    ] as [(UInt8, [UInt8])] {
      #expect(ListIssuer(name: name(kind, bytes)[...]) == nil, "\(kind) \(bytes)")
    }
  }

  /// A Name in DER whose only attribute is a common name of this string type.
  private func name(_ kind: UInt8, _ text: [UInt8]) -> [UInt8] {
    der(0x30, der(0x31, der(0x30, [0x06, 3, 0x55, 4, 3] + der(kind, text))))
  }

  // MARK: Comparison of serial numbers

  @Test func `a serial number has exactly one encoding`() {
    let usual: [[UInt8]] = [[0], [0x64], [0xFF], [0, 0x80], [0xFF, 0x7F], [UInt8](repeating: 1, count: 20)]
    for bytes in usual { #expect(isSerialNumber(bytes), "\(bytes)") }
    let others: [[UInt8]] = [[], [0, 0], [0, 0x64], [0xFF, 0x80], [UInt8](repeating: 1, count: 21)]
    for bytes in others { #expect(!isSerialNumber(bytes), "\(bytes)") }
  }

  @Test func `a serial number that no list can contain is refused`() throws {
    try scratch.certificate("other", by: "root", extensions: Scratch.node)
    let trusted = try anchors(["root.pem"])
    for (serial, expected) in [
      ([0x02, 1, 0x64], ChainVerdict.trusted), ([0x02, 2, 0, 0x64], .refused(.malformedSerial)),
      ([0x02, 21] + [UInt8](repeating: 1, count: 21), .refused(.malformedSerial)),
      ([0x82, 1, 0x64], .refused(.malformedSerial)),
    ] as [([UInt8], ChainVerdict)] {
      var verdict: ChainVerdict?
      PeerChain.withDER([try reissued("other", by: "root", serial: serial)]) { verdict = $0.evaluate(trusted, june) }
      #expect(verdict == expected, "\(serial)")
    }
  }

  /// A certificate in DER whose serial number is replaced by the element `serial`. The issuer's key signs the
  /// certificate again.
  private func reissued(_ name: String, by issuer: String, serial: [UInt8]) throws -> [UInt8] {
    let certificate = Certificate()
    try certificate.parse(try #require(scratch.bytes("\(name).pem")), path: name)
    var whole = DERReader(Array(UnsafeRawBufferPointer(certificate.context.pointee.tbs))[...])
    var body = try whole.enter(DERReader.sequence)
    let version = try body.takeAny().whole
    _ = try body.takeAny()
    let changed = der(0x30, Array(version) + serial + Array(body.rest))
    try scratch.write("body.der", changed)
    try scratch.openssl("dgst -sha256 -sign \(issuer).pem.key -out signature.der body.der")
    let signature = try #require(scratch.bytes("signature.der"))
    let algorithm = der(0x30, der(0x06, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02]))
    return der(0x30, changed + algorithm + der(0x03, [0] + signature))
  }

  private func der(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    let count = contents.count
    let head: [UInt8] = count < 0x80 ? [UInt8(count)] : [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
    return [tag] + head + contents
  }
}
