import Testing

@testable import WiFiDirect

private func parse(_ text: String) -> SupplicantMessage? { SupplicantParser.parse(Array(text.utf8)[...]) }

/// Messages sent by wpa_supplicant 2.10 on simulated radios.
@Suite struct SupplicantParserTests {
  @Test func `a device that owns a group is found`() throws {
    let message = try #require(
      parse(
        "<3>P2P-DEVICE-FOUND 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00 pri_dev_type=1-0050F204-1 "
          + "name='Node1' config_methods=0x80 dev_capab=0x27 group_capab=0x89 new=0\n"))
    #expect(message.interface == "")
    #expect(
      message.event
        == .deviceFound(
          FoundDevice(
            address: MACAddress(0x4200_0000_0100), transmitter: MACAddress(0x4600_0000_0100), name: "Node1",
            isGroupOwner: true)))
  }

  @Test(arguments: [
    ("MESH-PEER-CONNECTED 42:00:00:00:01:00", SupplicantEvent.stationConnected(MACAddress(0x4200_0000_0100))),
    ("MESH-PEER-DISCONNECTED 42:00:00:00:01:00", .stationDisconnected(MACAddress(0x4200_0000_0100))),
    ("MESH-SAE-AUTH-FAILURE addr=42:00:00:00:01:00", .meshPeerRefused(MACAddress(0x4200_0000_0100))),
    ("mesh join error=-16", .meshRefused), ("MESH-PEER-CONNECTED 42:00:00:00:01", .other),
    ("MESH-SAE-AUTH-FAILURE addr=", .other), ("MESH-GROUP-STARTED ssid=\"MESH-PEER-CONNECTED \" id=0", .other),
  ])
  func aMeshTellsOfItsNeighbours(text: String, event: SupplicantEvent) {
    #expect(
      parse("IFNAME=mesh-wlan0 <3>\(text)") == SupplicantMessage(interface: "mesh-wlan0", event: event))
  }

  @Test func `a device without a group is not an owner`() throws {
    let message = try #require(
      parse(
        "<3>P2P-DEVICE-FOUND 42:00:00:00:00:00 p2p_dev_addr=42:00:00:00:00:00 pri_dev_type=1-0050F204-1 "
          + "name='Node0' config_methods=0x80 dev_capab=0x25 group_capab=0x8 new=1"))
    #expect(
      message.event
        == .deviceFound(
          FoundDevice(
            address: MACAddress(0x4200_0000_0000), transmitter: MACAddress(0x4200_0000_0000), name: "Node0",
            isGroupOwner: false)))
  }

  @Test func `a device name cannot forge fields`() throws {
    let message = try #require(
      parse(
        "<3>P2P-DEVICE-FOUND 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00 pri_dev_type=1-0050F204-1 "
          + "name='x' config_methods=0x1 group_capab=0x1 p2p_dev_addr=66:66:66:66:66:66' "
          + "config_methods=0x80 dev_capab=0x27 group_capab=0x0 new=1"))
    #expect(
      message.event
        == .deviceFound(
          FoundDevice(
            address: MACAddress(0x4200_0000_0100), transmitter: MACAddress(0x4600_0000_0100),
            name: "x' config_methods=0x1 group_capab=0x1 p2p_dev_addr=66:66:66:66:66:66", isGroupOwner: false)))
  }

  @Test func `an event about an owner's group contains the passphrase`() throws {
    let message = try #require(
      parse(
        #"<3>P2P-GROUP-STARTED p2p-wlan0-0 GO ssid="DIRECT-BB" freq=2462 passphrase="n6UfHMDO" "#
          + "go_dev_addr=42:00:00:00:00:00"))
    #expect(
      message.event
        == .groupStarted(
          StartedGroup(
            interface: "p2p-wlan0-0", isOwner: true, ssid: "DIRECT-BB", frequency: 2462, passphrase: "n6UfHMDO",
            address: 0, mask: 0, ownerAddress: 0)))
  }

  @Test func `an event about a client's group contains the addresses`() throws {
    let message = try #require(
      parse(
        #"<3>P2P-GROUP-STARTED p2p-wlan1-0 client ssid="DIRECT-yb" freq=2437 "#
          + "psk=8f0e8635c4ea60ee30766e30a390c0a1430f68c9a4fbf734ee0c951f4c4e2ac9 go_dev_addr=42:00:00:00:00:00 "
          + "[PERSISTENT] ip_addr=192.168.49.10 ip_mask=255.255.255.0 go_ip_addr=192.168.49.1"))
    #expect(
      message.event
        == .groupStarted(
          StartedGroup(
            interface: "p2p-wlan1-0", isOwner: false, ssid: "DIRECT-yb", frequency: 2437, passphrase: "",
            address: 0xC0A8_310A, mask: 0xFFFF_FF00, ownerAddress: 0xC0A8_3101)))
  }

  @Test func `an event about a group without assigned addresses is accepted`() throws {
    let message = try #require(
      parse(
        #"<3>P2P-GROUP-STARTED p2p-wlan1-0 client ssid="DIRECT-B7" freq=2437 psk=00 go_dev_addr=42:00:00:00:01:00"#))
    guard case .groupStarted(let group) = message.event else { throw Unexpected() }
    #expect(group.address == 0)
    #expect(group.ownerAddress == 0)
  }

  @Test func `a network name cannot forge addresses`() throws {
    let message = try #require(
      parse(
        #"<3>P2P-GROUP-STARTED p2p-wlan1-0 client ssid="a\" freq=1 go_dev_addr= ip_addr=6.6.6.6\x00\\" freq=2437 "#
          + #"passphrase="p" go_dev_addr=x ip_addr=6.6.6.6" go_dev_addr=42:00:00:00:00:00 ip_addr=192.168.49.10"#))
    guard case .groupStarted(let group) = message.event else { throw Unexpected() }
    #expect(group.ssid == "a\" freq=1 go_dev_addr= ip_addr=6.6.6.6\u{0}\\")
    #expect(group.frequency == 2437)
    #expect(group.passphrase == #"p" go_dev_addr=x ip_addr=6.6.6.6"#)
    #expect(group.address == 0xC0A8_310A)
  }

  @Test func `an event about the end of a group contains interface and reason`() throws {
    let message = try #require(parse("<3>P2P-GROUP-REMOVED p2p-wlan1-0 client reason=GO_ENDING_SESSION"))
    #expect(message.event == .groupRemoved(interface: "p2p-wlan1-0", reason: "GO_ENDING_SESSION"))
  }

  @Test func `stations join and leave on the interface of the group`() {
    let address = MACAddress(0x4600_0000_0100)
    #expect(
      parse("IFNAME=p2p-wlan0-0 <3>AP-STA-CONNECTED 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00")
        == SupplicantMessage(interface: "p2p-wlan0-0", event: .stationConnected(address)))
    #expect(
      parse("IFNAME=p2p-wlan0-0 <3>AP-STA-DISCONNECTED 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00")
        == SupplicantMessage(interface: "p2p-wlan0-0", event: .stationDisconnected(address)))
  }

  @Test(arguments: [
    ("<3>P2P-FIND-STOPPED ", SupplicantEvent.findStopped),
    ("<3>P2P-GROUP-FORMATION-FAILURE ", .formationFailed),
    ("<3>P2P-GO-NEG-FAILURE status=1", .formationFailed),
    ("<3>P2P-PROV-DISC-FAILURE p2p_dev_addr=42:00:00:00:01:00 status=3", .formationFailed),
    ("<3>WPS-PBC-DISABLE ", .pushButtonEnded),
    ("<3>WPS-TIMEOUT Requested operation timed out", .pushButtonEnded),
    ("<3>WPS-OVERLAP-DETECTED ", .pushButtonOverlap),
    ("<3>WPS-M2D dev_password_id=0 config_error=12", .pushButtonOverlap),
    ("<3>WPS-M2D dev_password_id=0 config_error=1", .other),
    ("<3>CTRL-EVENT-CONNECTED - Connection to 46:00:00:00:00:00 completed [id=0 id_str=]", .connected),
    ("<3>CTRL-EVENT-DISCONNECTED bssid=46:00:00:00:00:00 reason=3", .disconnected),
    ("<3>CTRL-EVENT-TERMINATING ", .terminating),
    ("<3>CTRL-EVENT-AUTH-REJECT 46:00:00:00:00:00 auth_type=0 auth_transaction=2 status_code=17", .full),
    ("<3>CTRL-EVENT-ASSOC-REJECT bssid=46:00:00:00:00:00 status_code=17", .full),
    ("<3>CTRL-EVENT-ASSOC-REJECT bssid=46:00:00:00:00:00 status_code=1", .other),
    ("<3>CTRL-EVENT-ASSOC-REJECT bssid=46:00:00:00:00:00", .other),
    ("<3>P2P-GROUP-FORMATION-SUCCESS ", .other),
    ("<3>WPS-PBC-ACTIVE ", .other),
    ("<3>P2P: Reject scan trigger since one is already pending", .other),
    ("<3>", .other),
  ])
  func `events without fields are recognised`(_ text: String, _ event: SupplicantEvent) {
    #expect(parse(text)?.event == event)
  }

  @Test func `a push button request contains the address of its device`() {
    let text =
      "<3>P2P-PROV-DISC-PBC-REQ 46:00:00:00:02:00 p2p_dev_addr=42:00:00:00:02:00 pri_dev_type=1-0050F204-1 "
      + "name=' p2p_dev_addr=42:00:00:00:03:00' config_methods=0x80 dev_capab=0x25 group_capab=0x0 group=p2p-wlan0-0"
    #expect(parse(text)?.event == .pushButtonRequested(MACAddress(0x4200_0000_0200)))
  }

  @Test(arguments: ["OK\n", "PONG\n", "FAIL\n", "wlan0\np2p-dev-wlan0\n", "", "<", "<12345>x", "IFNAME=wlan0"])
  func `a message that is no event is a reply`(_ text: String) {
    #expect(parse(text) == nil)
  }

  @Test(arguments: [
    "<3>P2P-DEVICE-FOUND ",
    "<3>P2P-DEVICE-FOUND 42:00 p2p_dev_addr=42:00:00:00:01 name='x' config_methods=0 group_capab=0x1",
    "<3>P2P-DEVICE-FOUND ' config_methods=name='",
    "<3>P2P-GROUP-STARTED ",
    "<3>P2P-GROUP-STARTED p2p-wlan0-0 GO ssid=\"unterminated",
    "<3>P2P-GROUP-STARTED p2p-wlan0-0 GO ssid=\"x\\",
    "<3>P2P-GROUP-STARTED p2p-wlan0-0 GO ssid=\"\\x1\" go_dev_addr=",
    "<3>P2P-GROUP-STARTED p2p-wlan0-0 king ssid=\"x\" freq=1 go_dev_addr=42:00:00:00:00:00",
    "<3>P2P-GROUP-STARTED p2p-ü GO ssid=\"x\" freq=1 go_dev_addr=42:00:00:00:00:00",
    "<3>P2P-GROUP-STARTED aninterfacename16 GO ssid=\"x\" freq=1 go_dev_addr=42:00:00:00:00:00",
    "<3>AP-STA-CONNECTED 46:00:00:00:01:0g",
    "<3>AP-STA-CONNECTED",
  ])
  func `a truncated or invalid event is ignored`(_ text: String) {
    #expect(parse(text)?.event == .other)
  }

  /// Reads every prefix and every message with one damaged byte without a trap.
  @Test func `a damaged message never traps`() {
    let golden = Array(
      (#"IFNAME=wlan0 <3>P2P-GROUP-STARTED p2p-wlan1-0 client ssid="D\x41\"" freq=2437 passphrase="p" "#
        + "go_dev_addr=42:00:00:00:00:00 ip_addr=192.168.49.10 ip_mask=255.255.255.0 go_ip_addr=192.168.49.1").utf8)
    var read = 0
    for end in golden.indices where SupplicantParser.parse(golden[..<end]) != nil { read += 1 }
    for index in golden.indices {
      for byte: UInt8 in [0, 0x20, 0x22, 0x5C, 0xFF] {
        var damaged = golden
        damaged[index] = byte
        if SupplicantParser.parse(damaged[...]) != nil { read += 1 }
      }
    }
    #expect(read > golden.count)
  }
}

struct Unexpected: Error {}

@Suite struct NameTests {
  @Test func `a hardware address is decoded as it is encoded`() {
    #expect(MACAddress(parsing: "42:0a:00:FF:01:00".utf8)?.text == "42:0a:00:ff:01:00")
    for wrong in ["", "42:0a:00:ff:01", "42:0a:00:ff:01:000", "42-0a-00-ff-01-00", "4:20a:00:ff:01:00"] {
      #expect(MACAddress(parsing: wrong.utf8) == nil)
    }
  }

  @Test func `a device name contains the hint`() {
    let name = DeviceName.make(prefix: "Causeway", hint: 0x0123_4567_89AB_CDEF)
    #expect(name == "Causeway-0123456789abcdef")
    #expect(DeviceName.hint(of: name) == 0x0123_4567_89AB_CDEF)
    #expect(DeviceName.hint(of: "Causeway") == 0)
    #expect(DeviceName.hint(of: "Causeway-0123456789abcdeg") == 0)
    #expect(DeviceName.hint(of: "Causeway+0123456789abcdef") == 0)
  }

  @Test func `the longest prefix still yields a valid device name`() {
    let prefix = String(repeating: "x", count: DeviceName.prefixBytesMax)
    #expect(DeviceName.make(prefix: prefix, hint: 0).utf8.count == DeviceName.bytesMax)
  }

  @Test func `the P2P device name of a long interface name is truncated as in the kernel`() {
    #expect(p2pDeviceInterface("wlan0") == "p2p-dev-wlan0")
    #expect(p2pDeviceInterface("wlx00c0ca123456") == "p2p-dev-wlx00c0")
  }
}

@Suite struct OptionsTests {
  private func problem(_ change: (inout WiFiDirectOptions) -> Void) -> String? {
    var options = WiFiDirectOptions()
    change(&options)
    return options.problem
  }

  @Test func `the default options have no problem`() { #expect(problem { _ in } == nil) }

  @Test func `options that would break a command are refused`() {
    #expect(problem { $0.interface = "wlan0 P2P_FIND" } != nil)
    #expect(problem { $0.interface = "" } != nil)
    #expect(problem { $0.deviceNamePrefix = "Cause\nway" } != nil)
    #expect(problem { $0.deviceNamePrefix = "SixteenCharacter" } != nil)
    #expect(problem { $0.passphrase = "sevench" } != nil)
    #expect(problem { $0.passphrase = "with a\nnewline" } != nil)
    #expect(problem { $0.passphrase = String(repeating: "x", count: 64) } != nil)
    #expect(problem { $0.ssid = String(repeating: "x", count: 33) } != nil)
  }

  @Test func `a client with a passphrase also needs a network name`() {
    #expect(
      problem {
        $0.role = .client; $0.passphrase = "correct horse"
      } != nil)
    #expect(
      problem {
        $0.role = .client; $0.passphrase = "correct horse"; $0.ssid = "DIRECT-cw"
      } == nil)
  }
}
