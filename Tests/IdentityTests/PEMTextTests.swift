import FileSupport
import Testing

@testable import Identity

/// The text of PEM files outside of the blocks. Text of known forms is accepted, and any other line is a fault, because
/// it may be a block in another form.
struct PEMTextTests {
  let scratch = Scratch()
  private let list: String
  private let certificate: String
  private var base64: [Substring] { list.split(separator: "\n").dropFirst().dropLast() }

  init() throws {
    try scratch.certificate(
      "root",
      extensions: Scratch.authority
        + "\ncrlDistributionPoints=URI:http://crl3.example.com/DigiCertGlobalG2TLSRSASHA2562020CA1-1.crl"
        + "\nsubjectAltName=IP:fd00:1234:5678:9abc:def0:1234:5678:9abc,DNS:a.example\n1.2.3.4=DER:30:03:02:01:05",
      subject: "f00dfacef00dfacef00dfacef00dface")
    try scratch.revocationList("list", by: "root", revoking: ["root"])
    list = String(decoding: try #require(scratch.bytes("list.crl")), as: UTF8.self)
    certificate = String(decoding: try #require(scratch.bytes("root.pem")), as: UTF8.self)
  }

  /// The faults of a file that has this text behind a certificate. Lines are counted from the end of the certificate.
  private func faults(_ text: String) -> [(line: Int, text: String)] {
    let before = certificate.split(separator: "\n").count
    return PEMFile(Array((certificate + text).utf8)).faults.map { ($0.line - before, "\($0.text)") }
  }

  private func output(_ command: String) throws -> String {
    let (status, output) = shell("cd \(scratch.path) && \(command)")
    try #require(status == 0 && !output.isEmpty, "\(command)")
    return output
  }

  @Test func `text of OpenSSL beside blocks is accepted`() throws {
    try scratch.openssl("genrsa -out rsa.key 3072")
    try scratch.openssl("req -new -x509 -key rsa.key -subj /CN=x -out rsa.pem")
    try scratch.openssl("pkcs12 -export -inkey root.pem.key -in root.pem -name '{0F54-1}' -passout pass:x -out a.p12")
    for command in [
      "x509 -in root.pem -text -fingerprint -sha256 -serial -subject -issuer -dates -purpose -ocspid",
      "x509 -in root.pem -text -certopt ext_dump", "x509 -in rsa.pem -text -modulus", "ec -in root.pem.key -text",
      "rsa -in rsa.key -text", "crl -in list.crl -text -fingerprint -crlnumber -hash",
      "crl2pkcs7 -in list.crl -certfile root.pem | openssl pkcs7 -print_certs -text",
      "pkcs12 -in a.p12 -nodes -passin pass:x -info",
    ] {
      // The modulus is one line of hexadecimal digits, which openssl writes only on demand.
      let text = try output("openssl \(command) 2>&1 | grep -v ^Modulus=")
      #expect(faults(text).map(\.text) == [], "\(command)\n\(text)")
      #expect(faults(text.replacing("\n", with: "\r\n")).map(\.text) == [], "\(command)")
    }
  }

  @Test(arguments: [
    // The bundle of Mozilla's authorities, as curl, certifi and NSS write it.
    "##\n## Bundle of CA Root Certificates\n## SHA256: " + String(repeating: "36105b0163", count: 6) + "01cf\n##\n",
    "NetLock Arany (Class Gold) Főtanúsítvány\n" + String(repeating: "=", count: 40) + "\n",
    "Autoridad de Certificacion Firmaprofesional CIF A62634068\n", "COMODO ECC Certification Authority\n",
    "# Issuer: CN=AAA Certificate Services O=Comodo CA Limited\n# Label: \"Comodo\"\n# Serial: "
      + String(repeating: "1234567", count: 7)
      + "\n# SHA1 Fingerprint: b1:bc:96:8b:d4:f4:9d:62:2a:a8:9a:81:f2:15:01:52\n",
    "subject=C = US, O = Let's Encrypt, CN = R10\n\nR10 — issued by ISRG Root X1, for alice\n 0 s:CN = x\n   i:CN = y\n",
    // certtool indents by tabulators, and writes identifiers without colons.
    "X.509 Certificate Information:\n\tSerial Number (hex): 1b7d05f3a2\n\t\tSubject Key Identifier (not critical):\n"
      + "\t\t\t" + String(repeating: "5ea1", count: 10) + "\n\tSignature:\n\t\t" + String(repeating: "30:45:", count: 8)
      + "\nOther Information:\n\tFingerprint:\n\t\tsha256:" + String(repeating: "5ea1", count: 16)
      + "\n\tPublic Key PIN:\n\t\tpin-sha256:5mMYxLkGE1RHqpTTQvpEBuQFyT3TbuB3c0QcDvx9tAw=\n",
    "Bag Attributes\n    localKeyID: " + String(repeating: "5E A1 ", count: 20) + "\n    friendlyName: {0F54-1}\n"
      + "Key Attributes: <No Attributes>\n",
  ])
  func `text of other programs beside blocks is accepted`(text: String) {
    #expect(faults(text).map(\.text) == [])
  }

  @Test func `a revocation list in another form is a fault with its line`() throws {
    let json = list.replacing("\n", with: "\\n")
    let short = Array(base64.joined()).enumerated().map { ($0 % 30 == 29 ? "\($1)\n" : "\($1)") }.joined()
    for text in [
      "{\"crl\": \"\(json)\"}\n", "{\n  \"crl\": \"\(json)\"\n}\n",
      "<p>" + list.replacing("\n", with: "<br>") + "</p>\n",
      "crl=" + list.replacing("-", with: "%2D").replacing("\n", with: "%0A").replacing(" ", with: "%20") + "\n",
      list.replacing("-", with: "\\u002d").replacing("\n", with: "\\u000a").replacing(" ", with: "\\u0020") + "\n",
      "list: " + list.replacing("\n", with: "\u{2028}") + " end\n", list.replacing("\n", with: "\u{85}") + "x\n",
      "\u{2014}\u{2014}-BEGIN X509 CRL\u{2014}\u{2014}\n\(short)\n",
      "> \u{2014} BEGIN X509 CRL\u{2014}\n" + quoted("> "),
      quoted("> "), quoted("# "), quoted("    "), "crl: \(base64.joined())\n", short + "\n",
      list.lowercased(), try output("openssl crl -in list.crl -outform DER | openssl base64 | openssl base64"),
      try output("openssl crl -in list.crl -text -noout"),
      "X.509 Certificate Revocation List Information:\n\tVersion: 2\n",
    ] { #expect(faults(text).first.map { (1...3).contains($0.line) } == true, "\(faults(text)): \(text)") }
  }

  /// The list's base64, each line behind a mark.
  private func quoted(_ mark: String) -> String { base64.map { mark + $0 + "\n" }.joined() }

  @Test(arguments: [
    "od -t x1", "od -x", "od -A n -t x1", "od -A n -t x1 -w20 | tr -d ' '", "od -A n -t x1 -v | tr -s ' \\n' '::'",
    "openssl asn1parse -inform DER -dump",
  ])
  func `a hexadecimal dump of a revocation list is a fault`(command: String) throws {
    let text = try output("openssl crl -in list.crl -outform DER | \(command)")
    #expect(!faults(text).isEmpty, "\(text)")
  }

  @Test(arguments: [
    ("<p>-----BEGIN X509 CRL-----<br>", "BEGIN or END"), ("x -----end%20x509%20crl----- x", "BEGIN or END"),
    ("%2D%2DBEGIN+CERTIFICATE%2D%2D", "BEGIN or END"), ("=2DBEGIN=20PKCS7=2D", "BEGIN or END"),
    ("\u{2014}\u{2014} June", "neither a BEGIN line"), ("see below \u{FF0D}-", "neither a BEGIN line"),
    ("# MIIBIjANBgkqhkiG9w0BAQEFAAOC", "base64"), ("see MIIBIjANBgkqhkiG9w0B", "base64"),
    ("http://a/" + String(repeating: "a1", count: 32), "base64"),
    ("30 81 d6 30 7e 02 01 01 30 0a 06 08", "a hexadecimal dump"),
    ("00000000: 3081 d630 7e02 0101 300a 0608 2a86 48ce  0..0~...0...*.H.", "a hexadecimal dump"),
    ("  0x30, 0x81, 0xd6, 0x30, 0x7e, 0x02, 0x01, 0x01, 0x30, 0x0a, 0x06, 0x08,", "a hexadecimal dump"),
    ("30:81:d6:30:7e:02:01:01:30:0a:06:08", "a hexadecimal dump"),
    ("\\x30\\x81\\xd6\\x30\\x7e\\x02\\x01\\x01\\x30\\x0a\\x06\\x08", "a hexadecimal dump"),
    ("one\u{2028}two", "a Unicode line separator"), ("one\u{85}two", "a Unicode line separator"),
    ("{", "neither a block nor text"), ("<p>", "neither a block nor text"),
    (String(repeating: "a b ", count: 257), "a line of more than 1024 bytes"),
  ])
  func `a line that is no text has its reason`(line: String, reason: String) {
    let fault = faults("a name\n\n" + line + "\n").first
    #expect(fault?.line == 3 && fault?.text.hasPrefix(reason) == true, "\(fault?.text ?? "accepted")")
  }

  @Test func `text that is not UTF-8 is a fault`() {
    #expect(
      PEMFile(Array(certificate.utf8) + [0x66, 0xF6, 0x0A]).faults.map { "\($0.text)" } == ["text that is not UTF-8"])
  }

  @Test func `words of sentences are no boundary`() {
    for text in ["the list begins in June", "# end of the chain", "Vendor CRL", "the weekend crl", "a = b"] {
      #expect(faults(text + "\n").map(\.text) == [])
    }
  }
}
