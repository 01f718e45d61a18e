import Bearer
import Testing

@testable import BearerIP

@Suite struct EndpointTextTests {
  @Test func anIPv4AddressIsReadAndWrittenAlike() throws {
    let endpoint = try IPEndpoint(parsing: "192.168.49.1:41820")
    #expect(endpoint == IPEndpoint(high: 0, low: 0xFFFF_C0A8_3101, port: 41_820, scope: 0))
    #expect(endpoint.text == "192.168.49.1:41820")
  }

  @Test func anIPv6AddressIsReadAndWrittenAlike() throws {
    let endpoint = try IPEndpoint(parsing: "[2001:db8::a]:1")
    #expect(endpoint == IPEndpoint(high: 0x2001_0DB8_0000_0000, low: 0xA, port: 1, scope: 0))
    #expect(endpoint.text == "[2001:db8::a]:1")
  }

  @Test func aLinkLocalAddressCarriesItsInterface() throws {
    let endpoint = try IPEndpoint(parsing: "[fe80::1%lo]:41820")
    #expect(endpoint == IPEndpoint(high: 0xFE80_0000_0000_0000, low: 1, port: 41_820, scope: 1))
    #expect(endpoint.isLinkLocalIPv6)
    #expect(endpoint.text == "[fe80::1%lo]:41820")
  }

  @Test func anInterfaceThatDoesNotExistIsItsOwnError() {
    #expect(throws: EndpointTextError.unknownInterface) { try IPEndpoint(parsing: "[fe80::1%cwnone0]:41820") }
  }

  @Test(arguments: [
    "", ":", ":1", "1.2.3.4", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3:1", "1.2.3.4.5:1",
    "box.local:41820", "2001:db8::1:41820", "[2001:db8::1]", "[]:1", "[fe80::1%]:1", "[1.2.3.4]:1",
    "[fe80::1%interfacename-16]:1", "1.2.3.4:99999999999999999999", "[2001:db8::1]x:1",
    "1111111111111111111111111111111111111111111111111111111111111111:1",
  ])
  func whatIsNoAddressIsMalformed(_ text: String) {
    #expect(throws: EndpointTextError.malformed) { try IPEndpoint(parsing: text) }
  }
}

@Suite struct InterfaceRulesTests {
  @Test(arguments: [
    ("eth0", "eth0", true), ("eth0", "eth*", true), ("eth", "eth*", true), ("p2p-wlan0-1", "p2p-*", true),
    ("eth0", "*", true), ("wlan0", "*0", true), ("enp1s0f1", "en*s*f*", true), ("", "*", true),
    ("eth0", "eth", false), ("eth0", "eth00", false), ("veth0", "eth*", false), ("wlan1", "*0", false),
    ("eth0", "", false), ("enp1s0", "en*f*", false), ("aab", "a*aab", false),
  ])
  func aStarStandsForAnyRun(_ name: String, _ pattern: String, _ isFit: Bool) {
    #expect(fits(name, pattern) == isFit)
  }

  @Test func withoutPatternsEverythingButLoopbackIsAllowed() {
    let rules = InterfaceRules(patterns: [], allowsLoopback: false)
    #expect(rules.allows("eth0", isLoopback: false))
    #expect(!rules.allows("lo", isLoopback: true))
  }

  @Test func aPatternDoesNotOpenLoopback() {
    #expect(!InterfaceRules(patterns: ["*"], allowsLoopback: false).allows("lo", isLoopback: true))
    #expect(InterfaceRules(patterns: ["eth0"], allowsLoopback: true).allows("lo", isLoopback: true))
  }

  @Test func aGroupsInterfaceIsKnownByItsNameOrByWhoMadeIt() {
    var rules = InterfaceRules(patterns: [], allowsLoopback: false)
    #expect(rules.kind("p2p-wlan0-0", isLoopback: false, wireless: nil) == .wifiDirect)
    #expect(rules.kind("wlan0", isLoopback: false, wireless: .wifi) == .wifi)
    rules.wifiDirectInterface = "wlan0"
    #expect(rules.kind("wlan0", isLoopback: false, wireless: .wifi) == .wifiDirect)
    #expect(rules.kind("eth0", isLoopback: false, wireless: nil) == .ethernet)
    #expect(rules.kind("lo", isLoopback: true, wireless: nil) == .loopback)
  }

  @Test(arguments: [
    ("192.168.49.9:1", true), ("192.168.48.9:1", false), ("[2001:db8::9]:1", false),
  ])
  func anAddressReachesItsOwnNetwork(_ text: String, _ isReached: Bool) throws {
    let address = InterfaceAddress(high: 0, low: 0xFFFF_C0A8_3101, prefixLength: 120)
    #expect(address.reaches(try IPEndpoint(parsing: text)) == isReached)
  }

  @Test func aPrefixOfExactlyHalfTheBitsIsCompared() throws {
    let address = InterfaceAddress(high: 0x2001_0DB8_0000_0001, low: 1, prefixLength: 64)
    #expect(address.reaches(try IPEndpoint(parsing: "[2001:db8:0:1:ffff::]:1")))
    #expect(!address.reaches(try IPEndpoint(parsing: "[2001:db8:0:2::1]:1")))
  }
}
