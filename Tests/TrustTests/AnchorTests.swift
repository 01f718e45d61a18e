import CSystem
import FileSupport
@testable import Identity
import SecureTransport
import Testing

@testable import Trust

/// The extension “issuing distribution point” with these fields, as `DER:` in the syntax of `openssl`.
private func point(_ fields: String) -> String {
  let count = fields.split(separator: ":").count
  return "2.5.29.28=critical,DER:30:" + hex([UInt8(count)]) + (count == 0 ? "" : ":" + fields)
}

/// Directories of trust anchors with invalid files. If an invalid file could revoke a peer, the peer is refused.
struct AnchorTests {
  let scratch = Scratch()
  private let june = TrustTime(kept: 0, wall: 1_811_808_000, isSynchronised: true)  // June 2027

  init() throws {
    try scratch.makeFleet()
    try scratch.certificate("other", by: "root", extensions: Scratch.node)
    #expect(
      shell("mkdir \(scratch.file("anchors")) && cp \(scratch.file("root.pem")) \(scratch.file("anchors"))").status == 0
    )
  }

  private var anchors: TrustAnchors { TrustAnchors(directory: scratch.file("anchors")) }

  /// The decision on the certificate chain in these files. The first file is the node's certificate.
  private func verdict(_ files: [String] = ["node.pem", "intermediate.pem"]) throws -> ChainVerdict {
    let chain = Certificate()
    for file in files { try chain.parse(try #require(scratch.bytes(file)), path: file) }
    return withExtendedLifetime(chain) { PeerChain(chain.context).evaluate(anchors, june) }
  }

  /// Creates a revocation list that the intermediate signs and that revokes `names`. `extensions` has the syntax of
  /// ca.conf.
  private func list(_ extensions: String, revoking names: [String] = ["node"], in file: String = "list.pem") throws {
    try scratch.revocationList("plain", by: "intermediate", revoking: names)
    let text = String(decoding: try #require(scratch.bytes("ca.conf")), as: UTF8.self)
    try scratch.write(
      "lists.conf", text + "[lists]\n\(extensions)\n[point]\nfullname = URI:http://ca.example/list.crl\n")
    try scratch.openssl(
      "ca -gencrl -config lists.conf -crlexts lists -cert intermediate.pem -keyfile intermediate.pem.key -out anchors/\(file)"
    )
  }

  @Test(arguments: ["2.5.29.20=DER:02:01:07", "2.5.29.20=critical,DER:02:01:07", "authorityKeyIdentifier=keyid,issuer"])
  func `a revocation list with understood extensions revokes`(extensions: String) throws {
    try list(extensions)
    #expect(try verdict() == .refused(.revoked))
    #expect(anchors.faults.isEmpty)
  }

  @Test(arguments: [
    "issuingDistributionPoint=critical,@point", "issuingDistributionPoint=@point", point(""),
    point("81:01:FF"), point("82:01:FF"), point("84:01:00"), point("85:01:00"),
  ])
  func `a revocation list of a distribution point revokes its entries`(extensions: String) throws {
    try list(extensions)
    #expect(try verdict() == .refused(.revoked))
    #expect(anchors.faults.isEmpty)
    #expect(try verdict(["other.pem"]) == .trusted)
  }

  @Test(arguments: [
    point("83:02:01:40"),  // onlySomeReasons
    point("85:01:FF"),  // onlyContainsAttributeCerts
    "2.5.29.27=critical,DER:02:01:01", "2.5.29.27=DER:02:01:01",  // a delta list
    "2.5.29.60=critical,DER:05:00", "1.2.3.4=critical,DER:05:00", "issuerAltName=critical,DNS:ca.example",
  ])
  func `a revocation list that is not understood excludes only certificates of its authority`(extensions: String) throws
  {
    // The list names no certificate. The list's extension is not understood, so the list could revoke any certificate
    // of its authority.
    try list(extensions, revoking: [])
    #expect(try verdict() == .refused(.revocationUnknown))
    #expect(try verdict(["other.pem"]) == .trusted)
    let fault = try #require(anchors.faults.first)
    #expect(fault.text.contains("anchors/list.pem:1: an unusable revocation list: "), "\(fault.text)")
    #expect(fault.isClosing && fault.effect.description.contains("no certificate below that authority"))
  }

  @Test(arguments: [point("84:01:FF"), point("86:01:FF"), "2.5.29.28=critical,DER:05:00"])
  func `a revocation list that may apply to any authority excludes every certificate`(extensions: String) throws {
    try list(extensions, revoking: [])
    #expect(try verdict() == .refused(.revocationUnknown))
    #expect(try verdict(["other.pem"]) == .refused(.revocationUnknown))
  }

  @Test func `one unusable list among good ones suffices to exclude certificates`() throws {
    try list("2.5.29.20=DER:02:01:07", revoking: [], in: "a.pem")
    #expect(try verdict() == .trusted)
    try list("1.2.3.4=critical,DER:05:00", revoking: [], in: "b.pem")
    #expect(try verdict() == .refused(.revocationUnknown))
    // A valid list of the same authority revokes the certificate, which is the more exact reason.
    try list("2.5.29.20=DER:02:01:07", in: "a.pem")
    #expect(try verdict() == .refused(.revoked))
  }

  @Test func `a revocation list is assigned to its authority despite another spelling of the name`() throws {
    try scratch.write("utf8.conf", "[req]\nstring_mask=utf8only\ndistinguished_name=dn\n[dn]\n")
    try scratch.openssl(
      "req -new -x509 -config utf8.conf -utf8 -key root.pem.key -subj '/CN=ROOT' -days 3650 -set_serial 5 -out spelled.pem"
    )
    try scratch.revocationList("spelled", by: "spelled", revoking: ["other"], signedBy: "root")
    #expect(shell("cp \(scratch.file("spelled.crl")) \(scratch.file("anchors"))").status == 0)
    #expect(try verdict(["other.pem"]) == .refused(.revoked))
  }

  // MARK: Entries of a list

  @Test func `extensions of list entries are evaluated`() throws {
    // The list has an entry with serial number 0x1002 and one extension. The extension is a harmless hold instruction,
    // a certificate issuer, or an unknown one.
    for (name, value, isCritical, expected) in [
      ([0x55, 0x1D, 21], [0x0A, 1, 8], false, ChainVerdict.refused(.revoked)),  // removeFromCRL
      ([0x55, 0x1D, 23], [0x06, 1, 42], true, .refused(.revoked)),
      ([0x2A, 3], [5, 0], false, .refused(.revoked)),
      ([0x2A, 3], [5, 0], true, .refused(.revocationUnknown)),
      ([0x55, 0x1D, 29], [0x30, 0], true, .refused(.revocationUnknown)),
    ] as [([UInt8], [UInt8], Bool, ChainVerdict)] {
      let ext = der(0x30, der(0x06, name) + (isCritical ? [1, 1, 0xFF] : []) + der(0x04, value))
      try writeList(entries: [der(0x30, serial("other") + time("270101000000Z") + der(0x30, ext))])
      #expect(try verdict(["other.pem"]) == expected, "\(name)")
    }
  }

  @Test func `a list with an ambiguous serial number is not understood`() throws {
    let entry = der(0x30, try serial("other") + time("270101000000Z"))
    let number = Array(try serial("other").dropFirst(2))
    // mbedTLS compares serial numbers byte by byte, and ends its search at an empty one. So a malformed number could
    // hide a revocation.
    for malformed in [[], [0] + number, [UInt8](repeating: 1, count: 21)] {
      try writeList(entries: [der(0x30, der(0x02, malformed) + time("270101000000Z")), entry])
      #expect(try verdict(["other.pem"]) == .refused(.revocationUnknown), "\(malformed)")
      #expect(anchors.faults.first?.text.contains("a serial number that is not 1 to 20 bytes") == true)
    }
    try writeList(entries: [der(0x30, der(0x02, [UInt8](repeating: 1, count: 20)) + time("270101000000Z")), entry])
    #expect(try verdict(["other.pem"]) == .refused(.revoked))
  }

  /// Writes a list of the root in DER with these entries, signed with the root's key.
  private func writeList(entries: [[UInt8]], extensions: [UInt8] = []) throws {
    let algorithm = der(0x30, der(0x06, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02]))
    let subject = try #require(scratch.bytes("root.pem"))
    let root = Certificate()
    try root.parse(subject, path: "root.pem")
    let name = Array(UnsafeRawBufferPointer(root.context.pointee.subject_raw))
    let body = der(
      0x30,
      der(0x02, [1]) + algorithm + name + time("270101000000Z") + time("460101000000Z")
        + der(0x30, entries.flatMap { $0 }) + extensions)
    try scratch.write("body.der", body)
    try scratch.openssl("dgst -sha256 -sign root.pem.key -out signature.der body.der")
    let signature = try #require(scratch.bytes("signature.der"))
    try scratch.write("anchors/list.der", der(0x30, body + algorithm + der(0x03, [0] + signature)))
  }

  private func serial(_ name: String) throws -> [UInt8] {
    let certificate = Certificate()
    try certificate.parse(try #require(scratch.bytes("\(name).pem")), path: name)
    return der(0x02, Array(UnsafeRawBufferPointer(certificate.context.pointee.serial)))
  }

  private func time(_ text: String) -> [UInt8] { der(0x17, Array(text.utf8)) }

  private func der(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    let count = contents.count
    let head: [UInt8] = count < 0x80 ? [UInt8(count)] : [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
    return [tag] + head + contents
  }

  @Test func `a truncated revocation list is not used`() throws {
    try writeList(entries: [der(0x30, serial("other") + time("270101000000Z"))])
    let list = try #require(scratch.bytes("anchors/list.der"))
    #expect(try verdict(["other.pem"]) == .refused(.revoked))
    for count in 1..<list.count {
      try scratch.write("anchors/list.der", Array(list[..<count]))
      guard case .refused = try verdict(["other.pem"]) else {
        Issue.record("trusted with the first \(count) bytes")
        continue
      }
    }
    for changed in [list + [0], [0] + list] {
      try scratch.write("anchors/list.der", changed)
      #expect(try verdict(["other.pem"]) == .refused(.revocationUnknown))
    }
  }

  @Test func `a revocation list with any byte changed never admits a revoked certificate`() throws {
    try writeList(entries: [der(0x30, serial("other") + time("270101000000Z"))])
    let list = try #require(scratch.bytes("anchors/list.der"))
    let root = Certificate()
    try root.parse(try #require(scratch.bytes("root.pem")), path: "root.pem")
    for index in list.indices {
      for mask in [0x01, 0x20, 0x80] as [UInt8] {
        var changed = list
        changed[index] ^= mask
        try scratch.write("anchors/list.der", changed)
        // A change of the issuer's name makes the list irrelevant to this authority. After any other change the peer
        // must be refused.
        let reading = RevocationList.read(changed)
        if case .list(let other) = reading, !other.issuer.isNamed(by: root.context) { continue }
        if case .refused(_, let issuer?) = reading, !issuer.isNamed(by: root.context) { continue }
        guard case .refused = try verdict(["other.pem"]) else {
          Issue.record("trusted with byte \(index) ^ \(mask)")
          continue
        }
      }
    }
  }

  // MARK: Files

  private func text(_ file: String) throws -> String {
    String(decoding: try #require(scratch.bytes(file)), as: UTF8.self)
  }

  @Test func `text between PEM blocks is ignored`() throws {
    try list("2.5.29.20=DER:02:01:07")
    let block = try text("anchors/list.pem")
    let dump = try scratch.openssl("crl -in anchors/list.pem -text")
    var wholes = ["# the list of June\n\n" + block + "\nsubject=CN = x\n", dump]
    wholes += [block.replacing("\n", with: "\r\n"), "\u{FEFF}" + block]
    for whole in wholes {
      try scratch.write("anchors/list.pem", whole)
      #expect(try verdict() == .refused(.revoked))
      #expect(anchors.faults.map(\.text) == [])
    }
  }

  /// A damaged file, and the line that the fault must name. Nil if the fault may name any line.
  private struct Damage {
    let text: String
    let line: Int?
    init(_ text: String, _ line: Int? = nil) {
      self.text = text
      self.line = line
    }
  }

  @Test func `a damaged block excludes every certificate and is reported with its line`() throws {
    try list("2.5.29.20=DER:02:01:07")
    let block = try text("anchors/list.pem")
    let authority = try text("root.pem")
    let begin = "-----BEGIN X509 CRL-----"
    let end = "-----END X509 CRL-----"
    func with(_ old: String, _ new: String) -> String { block.replacing(old, with: new) }
    var damages: [Damage] = []
    damages.append(Damage(with(begin, "-----BEGIN X509 CRL----"), 1))
    damages.append(Damage(with(begin, "BEGIN X509 CRL"), 1))
    damages.append(Damage(with(begin, " "), 2))
    damages.append(Damage(with(end, ""), 1))
    damages.append(Damage(with(end, "-----END X509 CRL"), 1))
    damages.append(Damage(with(end, "-----END CERTIFICATE-----")))
    damages.append(Damage(String(block.prefix(120)), 1))
    damages.append(Damage(with("X509 CRL", "CRL"), 1))
    damages.append(Damage(with("\n", "\r"), 1))
    damages.append(Damage(with("M", "\0")))
    damages.append(Damage("\u{1}\u{2}\n" + block, 1))
    damages.append(Damage(with("\nM", "\nDEK-Info: x\n\nM")))
    damages.append(Damage(begin + "\n" + end + "\n", 1))
    damages.append(Damage(begin + "\nAAAA\n" + end + "\n", 1))
    damages.append(Damage("{\"crl\": \"" + with("\n", "\\n") + "\"}\n", 1))
    damages.append(Damage("<p>" + with("\n", "<br>") + "</p>\n", 1))
    let shift = authority.split(separator: "\n").count
    for damage in damages {
      for isBehind in [false, true] {
        try scratch.write("anchors/list.pem", isBehind ? authority + damage.text : damage.text)
        #expect(try verdict() == .refused(.revocationUnknown), "\(damage.text)")
        guard let line = damage.line, let fault = anchors.faults.first?.text else { continue }
        #expect(fault.contains("list.pem:\(isBehind ? line + shift : line): "), "\(fault): \(damage.text)")
      }
    }
    for nothing in ["", "see elsewhere\n"] {
      try scratch.write("anchors/list.pem", nothing)
      #expect(try verdict() == .refused(.revocationUnknown))
    }
  }

  @Test func `a valid certificate that cannot be an anchor is reported and excludes no other`() throws {
    try scratch.certificate(
      "limited", extensions: Scratch.authority + "\nnameConstraints=critical,permitted;DNS:a.example")
    try scratch.openssl("x509 -in limited.pem -outform DER -out limited.der")
    for (name, location) in [("limited.pem", "limited.pem:1: "), ("limited.der", "limited.der: ")] {
      try scratch.write("anchors/\(name)", try #require(scratch.bytes(name)))
      #expect(try verdict() == .trusted)
      let fault = try #require(anchors.faults.first)
      #expect(!fault.isClosing && fault.text.contains(location), "\(fault.text)")
      #expect(fault.text.contains("2.5.29.30 (nameConstraints) is not supported"), "\(fault.text)")
      try scratch.remove("anchors/\(name)")
    }
  }

  @Test func `a certificate of a node below an authority is reported and is no anchor`() throws {
    try scratch.openssl("x509 -in other.pem -outform DER -out other.der")
    for (name, prefix) in [("other.pem", "other.pem:1: "), ("other.der", "other.der: ")] {
      try scratch.write("anchors/\(name)", try #require(scratch.bytes(name)))
      #expect(try verdict() == .trusted)
      let set = anchors, fault = try #require(set.faults.first)
      #expect(set.certificateCount == 1 && set.faults.count == 1 && !fault.isClosing)
      #expect(
        fault.text.contains("\(prefix)not an authority's certificate: no node is accepted by it"), "\(fault.text)")
      try scratch.remove("anchors/\(name)")
    }
  }

  @Test func `a file of another format excludes every certificate and is not called a list`() throws {
    try scratch.openssl("pkcs12 -export -in other.pem -inkey other.pem.key -passout pass: -out anchors/other.p12")
    #expect(try verdict() == .refused(.revocationUnknown))
    let text = try #require(anchors.faults.first).text
    #expect(text.contains("other.p12: neither a complete certificate nor a complete CRL; copy it again, or remove it"))
  }

  /// A list that follows a damaged certificate in the file cannot be read. A list that cannot be read could revoke any
  /// peer, so every peer is refused.
  @Test func `a list after a damaged certificate may be unreadable, so every certificate is excluded`() throws {
    try list("2.5.29.20=DER:02:01:07")
    let revocations = try text("anchors/list.pem"), root = try text("root.pem")
    let lines = revocations.split(separator: "\n")
    let cut = String(root.prefix(200))
    let open = root.replacing("-----END CERTIFICATE-----\n", with: "")
    try scratch.openssl("x509 -in root.pem -outform DER -out root.der")
    try scratch.openssl("crl -in anchors/list.pem -outform DER -out list.der")
    let both = try #require(scratch.bytes("root.der")) + #require(scratch.bytes("list.der"))
    try scratch.write("both.der", both)
    try scratch.openssl("base64 -in both.der -out both.base64")
    let labelled = "-----BEGIN CERTIFICATE-----\n" + (try text("both.base64")) + "-----END CERTIFICATE-----\n"
    for file in [
      cut, root + cut, open + lines.dropFirst().joined(separator: "\n"),
      root + (root + revocations).replacing("\n", with: "\r"),
      "-----BEGIN CERTIFICATE-----\n" + String((root + revocations).dropFirst(28)).replacing("\n", with: "\r"),
      "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", labelled,
      revocations.replacing("X509 CRL", with: "CERTIFICATE"),
    ] as [String] {
      try scratch.write("anchors/list.pem", file)
      #expect(try verdict() == .refused(.revocationUnknown), "\(file)")
      #expect(anchors.faults.first?.effect.description == "no certificate is accepted", "\(file)")
      #expect(anchors.faults.first?.text.contains("anchors/list.pem:") == true, "\(file)")
    }
    try scratch.write("anchors/list.pem", both)
    #expect(try verdict() == .refused(.revocationUnknown))
  }

  @Test func `an unreadable file excludes every certificate`() throws {
    for make in [
      "mkdir x", "mkfifo x", "ln -s nowhere x", "ln -s /dev/zero x", "head -c 300000 /dev/zero > x", "printf 0 > x",
    ] {
      #expect(shell("cd \(scratch.file("anchors")) && \(make)").status == 0)
      #expect(try verdict() == .refused(.revocationUnknown), "\(make)")
      #expect(anchors.faults.first?.text.contains("anchors/x: ") == true, "\(make)")
      #expect(shell("rm -rf \(scratch.file("anchors/x"))").status == 0)
    }
    #expect(try verdict() == .trusted)
    for number in 0..<TrustAnchors.filesMax { try scratch.write("anchors/n\(number)", try text("root.pem")) }
    #expect(try verdict() == .refused(.revocationUnknown))
    #expect(anchors.faults.first?.text.contains("more than 64 files") == true)
  }

  @Test func `an unreadable file excludes also a node whose own certificate is an anchor`() throws {
    try scratch.certificate("lone", extensions: Scratch.node)
    try scratch.write("anchors/lone.pem", try text("lone.pem"))
    #expect(try verdict(["lone.pem"]) == .trusted)
    try scratch.write("anchors/README", "The anchors of the fleet.\n")
    #expect(try verdict(["lone.pem"]) == .refused(.revocationUnknown))
  }

  @Test func `a directory that cannot be read completely is a fault`() throws {
    let stream = try #require(opendir(scratch.file("anchors")))
    defer { closedir(stream) }
    #expect(TrustAnchors.names(in: stream).code == 0)
    rewinddir(stream)
    // The descriptor of the directory stream now refers to a file, so readdir fails.
    let file = try #require(fopen(scratch.file("root.pem"), "r"))
    defer { fclose(file) }
    try #require(dup2(fileno(file), dirfd(stream)) >= 0)
    #expect(TrustAnchors.names(in: stream).code == ENOTDIR)
  }

  @Test func `a revocation list that is overdue for replacement is reported`() throws {
    try scratch.revocationList("list", by: "root", revoking: [])
    #expect(shell("cp \(scratch.file("list.crl")) \(scratch.file("anchors"))").status == 0)
    let late = TrustTime(kept: 0, wall: 2_000_000_000, isSynchronised: true)
    #expect(
      anchors.outdated(at: late).first?.hasPrefix("the revocation list of CN=root was due for replacement on 20")
        == true)
    #expect(anchors.outdated(at: TrustTime(kept: 0, wall: 0, isSynchronised: false)) == [])
  }
}
