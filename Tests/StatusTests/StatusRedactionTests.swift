import Primitives
import Status
import Testing
import Text

@Test func `a redacted status contains no names`() throws {
  var snapshot = status(peers: [peer(bobID, "bobby", info: ["room=attic"])])
  snapshot.box.name = "casa mia"
  snapshot.box.alarms = [
    AlarmStatus(name: "bobby", pinned: bobID, offered: aliceID, offeredName: "b0bby", count: 1)
  ]
  snapshot.bearers = [
    BearerStatus(name: "wifi-direct", state: "up", detail: "p2p0", secret: "passphrase a \"b\" c", problem: "“x”")
  ]
  let report = try StatusReport(snapshot.toJSON(withSecrets: true))
  defer { report.release() }
  report.redact(Redaction(keepsIdentities: false))
  let json = String(decoding: report.json(), as: UTF8.self)
  for word in ["bobby", "b0bby", "attic", "casa", "\\\"b", bobID.text, "44:55"] {
    #expect(!json.contains(word), "\(word)")
  }
  #expect(json.contains("\"name\": \"peer-\(bobID.shortText)\"") && json.contains("\"room=\\u2026\""))
  #expect(json.contains("\"name\": \"wifi-direct\"") && json.contains("00:11:22:xx:xx:xx"))
}

@Test func `a status with names contains no secrets`() throws {
  var snapshot = status()
  snapshot.bearers = [
    BearerStatus(name: "wifi-direct", state: "up", detail: "p2p0", secret: "passphrase abcd efgh", problem: "")
  ]
  let report = try StatusReport(snapshot.toJSON(withSecrets: true))
  defer { report.release() }
  report.redact(Redaction(keepsIdentities: true))
  let json = String(decoding: report.json(), as: UTF8.self)
  #expect(json.contains("p2p0, passphrase ***\"") && json.contains("\"bob\""))
}
