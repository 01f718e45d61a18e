import Bearer
import CAvahi
import Primitives
import Testing

@testable import Discovery

struct RecordTests {
  private let id = "00112233445566778899aabbccddeeff"

  @Test func `a node's instance name is the 32 digits of its id`() {
    let node = NodeID(high: 0x0011_2233_4455_6677, low: 0x8899_AABB_CCDD_EEFF)
    let settings = DiscoverySettings(node: node, port: 7777, displayName: "Kitchen")
    #expect(settings.instanceName == id)
    #expect(settings.txt.map { "\($0.key)=\($0.value)" } == ["id=\(id)", "v=1", "name=Kitchen"])
    #expect(settings.serviceType == "_causeway._tcp")
  }

  @Test(arguments: ["", " #2", " #17"]) func `the hint is read from an instance name`(suffix: String) {
    #expect(NodeHint.ofInstanceName(Array((id + suffix).utf8)) == 0x0011_2233_4455_6677)
    #expect(NodeHint.ofInstanceName(Array((id.uppercased() + suffix).utf8)) == 0x0011_2233_4455_6677)
  }

  @Test(arguments: [
    "", "Kitchen", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeefg",
    "00112233445566778899aabbccddeeff0", "00112233445566778899aabbccddeeff #",
    "00112233445566778899aabbccddeeff #x", "00112233445566778899aabbccddeeff2", "0x112233445566778899aabbccddeeff",
  ]) func `a name of another form yields no hint`(name: String) {
    #expect(NodeHint.ofInstanceName(Array(name.utf8)) == nil)
  }

  @Test func `the hint is read from the TXT record, whatever the case of its key`() {
    for key in ["id", "ID", "iD"] {
      let hint = withStringList([("v", "1"), (key, id), ("id", String(id.reversed()))]) { NodeRecord($0).hint }
      #expect(hint == 0x0011_2233_4455_6677)
    }
  }

  @Test(arguments: [
    "id", "id=", "id=0011", "ix=00112233445566778899aabbccddeeff", "id=00112233445566778899aabbccddeefg",
  ])
  func `a TXT string of another form yields no hint`(string: String) {
    #expect(NodeHint.ofTXTString(Array(string.utf8)) == nil)
  }

  @Test func `an absent TXT record yields no hint and means a relay`() {
    #expect(NodeRecord(nil) == NodeRecord(hint: nil))
    #expect(NodeRecord(nil).relays)
  }

  @Test func `a node that does not forward announces it`() {
    let node = NodeID(high: 1, low: 2)
    let leaf = DiscoverySettings(node: node, port: 7777, displayName: "Lamp", relays: false)
    #expect(leaf.txt.map(\.key) == ["id", "v", "name", "relay"])
    #expect(!withStringList(leaf.txt) { NodeRecord($0).relays })
  }

  @Test(arguments: [("relay", "no"), ("Relay", "no"), ("RELAY", "no")])
  func `the TXT key of a leaf is case-insensitive`(
    pair: (String, String)
  ) {
    #expect(!withStringList([(pair.0, pair.1), ("relay", "yes")]) { NodeRecord($0).relays })
  }

  @Test(arguments: [
    ("relay", "yes"), ("relay", "NO"), ("relay", ""), ("relay", "nope"), ("relays", "no"), ("rela", "no"),
  ])
  func `any other TXT record means a relay`(pair: (String, String)) {
    #expect(withStringList([(pair.0, pair.1), ("v", "1")]) { NodeRecord($0).relays })
  }

  @Test func `a value that is too long for its TXT string is truncated between characters`() {
    let value = String(repeating: "é", count: 200)
    let string = txtString(key: "name", value: value)
    #expect(string.count == 255)
    #expect(String(validating: string, as: UTF8.self) == "name=" + String(repeating: "é", count: 125))
    #expect(txtString(key: "nam", value: value).count == 254)
  }

  @Test(arguments: ["", "a=b", "naïve", "new\nline", String(repeating: "k", count: 255)])
  func `a string with a key that DNS-SD forbids is omitted`(key: String) {
    #expect(txtString(key: key, value: "x").isEmpty)
  }

  @Test func `a name in use is followed by numbered ones, at most eight until a pause`() {
    var name = ClaimedName(id, .service)
    var tried: [String] = []
    while name.lost(now: .zero) { tried.append(name.current) }
    #expect(tried == (2...9).map { "\(id) #\($0)" })
  }

  private func parsed(_ text: String, port: UInt16 = 7777) -> IPEndpoint? {
    var address = AvahiAddress()
    #expect(avahi_address_parse(text, AvahiProtocol(AVAHI_PROTO_UNSPEC), &address) != nil)
    return endpoint(&address, port, on: 3)
  }

  @Test func `addresses become endpoints, link-local ones with their interface`() {
    #expect(parsed("10.1.2.3") == IPEndpoint(high: 0, low: 0xFFFF_0A01_0203, port: 7777, scope: 0))
    #expect(parsed("169.254.2.3") == IPEndpoint(high: 0, low: 0xFFFF_A9FE_0203, port: 7777, scope: 3))
    #expect(parsed("fe80::1:2") == IPEndpoint(high: 0xFE80 << 48, low: 0x1_0002, port: 7777, scope: 3))
    #expect(parsed("fd00::1") == IPEndpoint(high: 0xFD00 << 48, low: 1, port: 7777, scope: 0))
    #expect(parsed("::1")?.isLoopback == true)
    #expect(parsed("127.0.0.1")?.isLoopback == true)
  }

  @Test(arguments: ["0.0.0.0", "0.1.2.3", "224.0.0.251", "255.255.255.255", "::", "ff02::fb"])
  func `addresses that cannot be dialled are refused`(text: String) {
    #expect(parsed(text) == nil)
  }

  @Test func `port 0 is refused`() {
    #expect(parsed("10.1.2.3", port: 0) == nil)
  }
}
