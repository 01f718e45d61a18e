import Bearer
import Testing

@testable import BearerIP

@Suite struct EndpointTextTests {
  @Test(arguments: [
    (IPEndpoint(high: 0, low: 0xFFFF_C0A8_3101, port: 41_820, scope: 0), "192.168.49.1:41820"),
    (IPEndpoint(high: 0x2001_0DB8_0000_0000, low: 0xA, port: 1, scope: 0), "[2001:db8::a]:1"),
    (IPEndpoint(high: 0xFE80_0000_0000_0000, low: 1, port: 41_820, scope: 1), "[fe80::1%lo]:41820"),
  ])
  func `an endpoint is written in the usual notation`(_ endpoint: IPEndpoint, _ text: String) {
    #expect(endpoint.text == text)
  }

  @Test func `an absent interface is written as its number`() {
    let endpoint = IPEndpoint(high: 0xFE80_0000_0000_0000, low: 1, port: 1, scope: 4242)
    #expect(endpoint.isLinkLocalIPv6 && endpoint.text == "[fe80::1%4242]:1")
  }
}

@Suite struct InterfaceRulesTests {
  @Test(arguments: [
    ("eth0", "eth0", true), ("eth0", "eth*", true), ("eth", "eth*", true), ("p2p-wlan0-1", "p2p-*", true),
    ("eth0", "*", true), ("wlan0", "*0", true), ("enp1s0f1", "en*s*f*", true), ("", "*", true),
    ("eth0", "eth", false), ("eth0", "eth00", false), ("veth0", "eth*", false), ("wlan1", "*0", false),
    ("eth0", "", false), ("enp1s0", "en*f*", false), ("aab", "a*aab", false),
  ])
  func `an asterisk matches any sequence of characters`(_ name: String, _ pattern: String, _ isFit: Bool) {
    #expect(fits(name, pattern) == isFit)
  }

  @Test func `without patterns all interfaces except loopback are allowed`() {
    let rules = InterfaceRules(patterns: [], allowsLoopback: false)
    #expect(rules.allows("eth0", isLoopback: false))
    #expect(!rules.allows("lo", isLoopback: true))
  }

  @Test func `a pattern does not allow loopback`() {
    #expect(!InterfaceRules(patterns: ["*"], allowsLoopback: false).allows("lo", isLoopback: true))
    #expect(InterfaceRules(patterns: ["eth0"], allowsLoopback: true).allows("lo", isLoopback: true))
  }

  @Test func `a group's interface is recognised by its name, or because Causeway created it`() {
    var rules = InterfaceRules(patterns: [], allowsLoopback: false)
    #expect(rules.kind("p2p-wlan0-0", isLoopback: false, wireless: nil) == .wifiDirect)
    #expect(rules.kind("wlan0", isLoopback: false, wireless: .wifi) == .wifi)
    rules.wifiDirectInterface = "wlan0"
    #expect(rules.kind("wlan0", isLoopback: false, wireless: .wifi) == .wifiDirect)
    #expect(rules.kind("eth0", isLoopback: false, wireless: nil) == .ethernet)
    #expect(rules.kind("lo", isLoopback: true, wireless: nil) == .loopback)
  }

  @Test(arguments: [
    (IPEndpoint(ipv4: 0xC0A8_3109, port: 1), true), (IPEndpoint(ipv4: 0xC0A8_3009, port: 1), false),
    (IPEndpoint(high: 0x2001_0DB8_0000_0000, low: 9, port: 1, scope: 0), false),
  ])
  func `an address reaches the endpoints of its own network`(_ endpoint: IPEndpoint, _ isReached: Bool) {
    let address = InterfaceAddress(high: 0, low: 0xFFFF_C0A8_3101, prefixLength: 120)
    #expect(address.reaches(endpoint) == isReached)
  }

  @Test func `a prefix of exactly 64 bits is compared`() {
    let address = InterfaceAddress(high: 0x2001_0DB8_0000_0001, low: 1, prefixLength: 64)
    #expect(address.reaches(IPEndpoint(high: 0x2001_0DB8_0000_0001, low: 0xFFFF << 48, port: 1, scope: 0)))
    #expect(!address.reaches(IPEndpoint(high: 0x2001_0DB8_0000_0002, low: 1, port: 1, scope: 0)))
  }
}
