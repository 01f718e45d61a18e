import Primitives
import Testing

@testable import Diagnostics

private func redacted(_ text: String, secrets: [String] = [], keeps: Bool = false) -> String {
  var redaction = Redaction(keepsIdentities: keeps)
  for secret in secrets { redaction.add(secret: Array(secret.utf8)) }
  return redaction.applied(to: text)
}

@Test func `a secret is masked wherever it is`() {
  #expect(redacted("a horse horses", secrets: ["horse", "horses and more"]) == "a *** ***s")
  #expect(redacted("horses and more", secrets: ["horse", "horses and more"], keeps: true) == "***")
  #expect(redacted("the ox", secrets: ["ox", ""]) == "the ox", "too short to be one")
}

@Test func `what follows the passphrase is masked up to the end of the line`() {
  #expect(redacted("2437 MHz, passphrase correct horse\nnext") == "2437 MHz, passphrase ***\nnext")
  #expect(redacted("passphrase x", keeps: true) == "passphrase ***")
}

@Test func `quoted text is masked`() {
  #expect(redacted("“carol” is “dave\nnext” x") == "“…” is “…”\nnext” x")
  #expect(redacted("“carol”", keeps: true) == "“carol”")
}

@Test func `addresses lose what tells a device from others`() {
  #expect(redacted("hci0 00:AA:01:00:00:0E, psm") == "hci0 00:AA:01:xx:xx:xx, psm")
  #expect(redacted("b8:27:eb:12:34:56: gone") == "b8:27:eb:xx:xx:xx: gone")
  #expect(redacted("[fe80::34e4:eeff:feaf:160b%eth0]:41820") == "[fe80::x%eth0]:41820")
  #expect(redacted("2001:db8:1:2:3:4:5:6") == "2001::x")
  #expect(redacted("wlx00c0ca123456 enx0123456789ab.") == "wlx00c0caxxxxxx enx012345xxxxxx.")
  #expect(redacted("00:AA:01:00:00:0E fe80::1", keeps: true) == "00:AA:01:00:00:0E fe80::1")
}

@Test func `ids are cut`() {
  #expect(redacted("box 8f45df3477210e7f197b1ece550ed714 up") == "box 8f45df34… up")
  #expect(redacted("8f45df34… and deadbeef") == "8f45df34… and deadbeef")
}

@Test func `times and numbers stay`() {
  let line =
    "2026-11-21T21:47:01.908Z notice  link 0: up over ethernet: capabilities 0x0002, 12:34:56, 192.168.49.10:57002"
  #expect(redacted(line) == line)
}

@Test func `a redacted status has no names`() throws {
  let node = FakeNode()
  node.peers = [peer(bobID, "bobby", info: ["room=attic"])]
  var status = node.controlStatus()
  status.box.name = "casa mia"
  status.box.alarms = [
    AlarmStatus(name: "bobby", pinned: bobID, offered: aliceID, offeredName: "b0bby", count: 1)
  ]
  status.bearers = [
    BearerStatus(name: "wifi-direct", state: "up", detail: "p2p0", secret: "passphrase a \"b\" c", problem: "“x”")
  ]
  let report = try StatusReport(status.toJSON(withSecrets: true))
  defer { report.release() }
  report.redact(Redaction(keepsIdentities: false))
  let json = String(decoding: report.json(), as: UTF8.self)
  for word in ["bobby", "b0bby", "attic", "casa", "\\\"b", bobID.text, "44:55"] {
    #expect(!json.contains(word), "\(word)")
  }
  #expect(json.contains("\"name\": \"peer-\(bobID.shortText)\"") && json.contains("\"room=\\u2026\""))
  #expect(json.contains("\"name\": \"wifi-direct\"") && json.contains("00:11:22:xx:xx:xx"))
}

@Test func `a status with its names has no secrets either`() throws {
  var status = FakeNode().controlStatus()
  status.bearers = [
    BearerStatus(name: "wifi-direct", state: "up", detail: "p2p0", secret: "passphrase abcd efgh", problem: "")
  ]
  let report = try StatusReport(status.toJSON(withSecrets: true))
  defer { report.release() }
  report.redact(Redaction(keepsIdentities: true))
  let json = String(decoding: report.json(), as: UTF8.self)
  #expect(json.contains("p2p0, passphrase ***\"") && json.contains("\"bob\""))
}
