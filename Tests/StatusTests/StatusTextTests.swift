import JSON
import Primitives
import Status
import Testing
import Text

@Test func `a status as JSON is printable ASCII`() throws {
  let json = status(peers: [peer(bobID, "b\u{202E}\u{9B}\u{7F}ö", info: ["k=\u{1B}[2J"])]).toJSON(withSecrets: true)
  #expect(json.allSatisfy { $0 == 0x0A || (0x20...0x7E).contains($0) })
  let view = try #require(JSONView(parsing: json))
  defer { view.release() }
  var names: [String] = []
  view["peers"].forEach { names.append($0["name"].string) }
  #expect(names == ["b\u{202E}\u{9B}\u{7F}ö"])
}

@Test func `a passphrase is shown only to the operator`() throws {
  var snapshot = status()
  snapshot.bearers = [
    BearerStatus(name: "wifi-direct", state: "group-owner", detail: "2437 MHz", secret: "passphrase abc", problem: "")
  ]
  func detail(_ json: [UInt8]) throws -> String {
    let view = try #require(JSONView(parsing: json))
    defer { view.release() }
    var detail = ""
    view["bearers"].forEach { detail = $0["detail"].string }
    return detail
  }
  #expect(try detail(snapshot.toJSON(withSecrets: true)) == "2437 MHz, passphrase abc")
  #expect(try detail(snapshot.toJSON(withSecrets: false)) == "2437 MHz")
}

@Test func `a part of the status is an object with one member`() throws {
  let report = try StatusReport(status().toJSON(withSecrets: true))
  defer { report.release() }
  let view = try #require(JSONView(parsing: report.json(of: "links")))
  defer { view.release() }
  #expect(view["links"].exists && !view["box"].exists)
}

@Test func `each node that a word may mean is shown with its address and state`() throws {
  let carolID = NodeID(high: 0xCA20_0000_0000_0003, low: 3)
  var snapshot = status(peers: [peer(bobID, "bob"), peer(carolID, "carol", hops: 2), peer(aliceID, "alice")])
  snapshot.peers[1].via = bobID
  snapshot.box.strangers = [StrangerStatus(id: carolID, name: "", reason: "its key is revoked", count: 2)]
  snapshot.box.alarms = [AlarmStatus(name: "bo“b", pinned: bobID, offered: carolID, offeredName: "bob", count: 1)]
  let report = try StatusReport(snapshot.toJSON(withSecrets: true))
  defer { report.release() }
  #expect(
    report.candidates().map { "\($0.id.prefix(4)) \($0.name): \($0.source)" } == [
      "b0b0 bob: linked over bluetooth-le, 00:11:22:33:44:55", "ca20 carol: 2 hops away, through bob",
      "a11c alice: a neighbour over wifi-direct", "ca20 : refused: its key is revoked",
      "ca20 bob: refused: it used the name “bo'b”, which is pinned to \(bobID.text)", "b0b0 bo“b: pinned",
    ])
}

@Test func `each radio is shown with its share of time spent scanning and dialling`() throws {
  var snapshot = status()
  var radio = BearerStatus(name: "bluetooth-le", state: "up", detail: "hci0", problem: "")
  radio.use = RadioUse(slotsUsed: 1, slotsMax: 7, scanning: .milliseconds(18_000), dialling: .milliseconds(750))
  snapshot.bearers.append(radio)
  let report = try StatusReport(snapshot.toJSON(withSecrets: true))
  defer { report.release() }
  // The shares of scanning and dialling are computed over an uptime of 75 seconds.
  #expect(
    String(decoding: report.bearersText().bytes, as: UTF8.self) == """
      BEARER        STATE  SCAN  DIAL  DETAIL
      ethernet      up     –     –     eth0
      bluetooth-le  up     24 %  1 %   hci0

      """)
}

@Test func `a status is shown as tables`() throws {
  var peers = [peer(bobID, "b\u{1B}ob", info: ["room=kitchen"]), peer(aliceID, "alice")]
  peers[1].via = bobID
  let report = try StatusReport(status(peers: peers).toJSON(withSecrets: true))
  defer { report.release() }
  let text = String(decoding: report.text().bytes, as: UTF8.self)
  #expect(
    text == """
      box  a11ce000000000010000000000000001
      causeway 1, up 1 min 15 s, epoch 7, 4.2 MB resident, relays, service “causeway”
      forwarded 0 frames, 0 B; refused ttl-zero 2

      BEARER    STATE  DETAIL
      ethernet  up     eth0

      LINK  NEIGHBOUR  BEARER        STATE  SINCE  RTT     RECEIVED  SENT    QUEUED  ADDRESS
      3     bob        bluetooth-le  up     5 s    1.5 ms  1 B       2.0 kB  0 B     00:11:22:33:44:55 (inbound)

      PEER   ID        HOPS  BEARER       VIA   INFO
      b?ob   b0b00000  1     wifi-direct  –     room=kitchen
      alice  a11ce000  1     wifi-direct  b?ob

      """)
}

@Test func `an answer that is not JSON is refused`() {
  for text in ["", "[]", "{", "hello"] {
    #expect(throws: AccessError.self) { try StatusReport(Array(text.utf8)) }
  }
}

/// Names, addresses and details in this status have their maximum length.
@Test func `a status with the longest texts fits eighty columns`() throws {
  var snapshot = status()
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
