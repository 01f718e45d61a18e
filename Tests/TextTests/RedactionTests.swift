import Testing
import Text

private func redacted(_ text: String, secrets: [String] = [], keeps: Bool = false) -> String {
  var redaction = Redaction(keepsIdentities: keeps)
  for secret in secrets { redaction.add(secret: Array(secret.utf8)) }
  return redaction.applied(to: text)
}

@Test func `a secret is masked wherever it occurs`() {
  #expect(redacted("a horse horses", secrets: ["horse", "horses and more"]) == "a *** ***s")
  #expect(redacted("horses and more", secrets: ["horse", "horses and more"], keeps: true) == "***")
  #expect(redacted("the ox", secrets: ["ox", ""]) == "the ox", "too short to be one")
}

@Test func `the text after a passphrase keyword is masked up to the end of the line`() {
  #expect(redacted("2437 MHz, passphrase correct horse\nnext") == "2437 MHz, passphrase ***\nnext")
  #expect(redacted("passphrase x", keeps: true) == "passphrase ***")
}

@Test func `quoted text is masked`() {
  #expect(redacted("“carol” is “dave\nnext” x") == "“…” is “…”\nnext” x")
  #expect(redacted("“carol”", keeps: true) == "“carol”")
}

@Test func `the part of an address that identifies the device is masked`() {
  #expect(redacted("hci0 00:AA:01:00:00:0E, psm") == "hci0 00:AA:01:xx:xx:xx, psm")
  #expect(redacted("b8:27:eb:12:34:56: gone") == "b8:27:eb:xx:xx:xx: gone")
  #expect(redacted("[fe80::34e4:eeff:feaf:160b%eth0]:41820") == "[fe80::x%eth0]:41820")
  #expect(redacted("2001:db8:1:2:3:4:5:6") == "2001::x")
  #expect(redacted("wlx00c0ca123456 enx0123456789ab.") == "wlx00c0caxxxxxx enx012345xxxxxx.")
  #expect(redacted("00:AA:01:00:00:0E fe80::1", keeps: true) == "00:AA:01:00:00:0E fe80::1")
}

@Test func `ids are truncated`() {
  #expect(redacted("box 8f45df3477210e7f197b1ece550ed714 up") == "box 8f45df34… up")
  #expect(redacted("8f45df34… and deadbeef") == "8f45df34… and deadbeef")
}

@Test func `times and numbers are kept`() {
  let line =
    "2026-11-21T21:47:01.908Z notice  link 0: up over ethernet: capabilities 0x0002, 12:34:56, 192.168.49.10:57002"
  #expect(redacted(line) == line)
}
