import Diagnostics
import Primitives
import Testing

/// Names, addresses and details in this status have their maximum length.
@Test func `the status fits eighty columns`() throws {
  let node = FakeNode()
  var snapshot = node.controlStatus()
  snapshot.box.refusals = [
    ("ttl-zero", 1_000_000), ("not-opened", 1_000_000), ("too-many", 1_000_000), ("loop", 1_000_000),
  ]
  snapshot.box.alarm =
    "“living room” is pinned to another key than the one of the node that now has this name: causeway identity alarms"
  snapshot.bearers = [
    BearerStatus(
      name: "wifi-direct", state: "group-owner",
      detail: "p2p-wlan0-0 DIRECT-wg-Causeway, 2437 MHz, 1 stations, passphrase Tafw6Htj",
      problem: "no wpa_supplicant at /run/wpa_supplicant/global: start it with -g /run/wpa_supplicant/global")
  ]
  snapshot.links[0].name = "the box in the living room"
  snapshot.links[0].sinceSeconds = 86_400 * 99
  snapshot.links[0].bytesReceived = 99_900_000_000
  snapshot.links[0].bytesSent = 99_900_000_000
  snapshot.links[0].remote = "[fe80::34e4:eeff:feaf:160b%eth0]:60942"
  snapshot.peers = [peer(bobID, "the box in the living room", info: ["room=kitchen", "speaks=text+files", "floor=2"])]
  let report = try StatusReport(snapshot.toJSON(withSecrets: true), columns: 80)
  defer { report.release() }
  let text = String(decoding: report.text().bytes, as: UTF8.self)
  for line in text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
  #expect(text.contains("[fe80::34e4:eeff:feaf:160b%eth0]:60942"))
}
