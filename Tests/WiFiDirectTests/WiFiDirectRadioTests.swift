import Bearer
import BearerIP
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import WiFiDirect

private let ownerFound =
  "<3>P2P-DEVICE-FOUND 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00 pri_dev_type=6-0050F204-1 "
  + "name='Causeway-0123456789abcdef' config_methods=0x80 dev_capab=0x27 group_capab=0x89 new=1"
private let clientStarted =
  #"<3>P2P-GROUP-STARTED p2p-cwtest-0 client ssid="DIRECT-B7" freq=2437 psk=00 go_dev_addr=42:00:00:00:01:00 "#
  + "ip_addr=192.168.49.10 ip_mask=255.255.255.0 go_ip_addr=192.168.49.1"
let ownerStarted =
  #"<3>P2P-GROUP-STARTED p2p-cwtest-0 GO ssid="DIRECT-BB" freq=2437 passphrase="n6UfHMDO" "#
  + "go_dev_addr=42:00:00:00:00:00"

@Suite struct WiFiDirectRadioTests {
  let scratch: Scratch
  let loop: EventLoop
  let recorder = Recorder()
  let air = Air()

  /// The obstacle that the radio meets, such as an rfkill block. Nil if nothing blocks the radio.
  final class Air {
    var obstacle: RadioObstacle?
  }

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop()
  }

  /// A wpa_supplicant with the interface `cwtest`, which has a P2P device.
  func makeSupplicant(_ socket: String = "global") throws -> FakeSupplicant {
    let supplicant = try FakeSupplicant(loop, "\(scratch.path)/\(socket)")
    supplicant.answer = { command in
      if command == "INTERFACES" { return "p2p-dev-cwtest\ncwtest" }
      if command.hasSuffix("ADD_NETWORK") { return "3" }
      if command.contains(" BSS ") { return "" }
      return command.hasSuffix("STATUS") ? "p2p_device_address=42:00:00:00:00:00\nmode=P2P GO" : "OK"
    }
    return supplicant
  }

  func makeRadio(_ change: (inout WiFiDirectOptions) -> Void = { _ in }) -> WiFiDirectRadio {
    var options = WiFiDirectOptions()
    options.interface = "cwtest"
    options.controlSocket = scratch.path + "/global"
    options.clientDirectory = scratch.path
    options.passphraseOfNode = "abcdefgh23456789"
    change(&options)
    let air = air
    return WiFiDirectRadio(loop, options, hint: 0xFEDC, recorder) { _ in air.obstacle }
  }

  // MARK: - Group owner

  /// Starts the radio, and reports to it that the requested group was created with the radio as its owner.
  func own(_ radio: WiFiDirectRadio, _ supplicant: FakeSupplicant) {
    radio.start()
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    supplicant.say(ownerStarted)
  }

  @Test func `an owner is configured before its group is created`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    #expect(supplicant.commands.contains("IFNAME=p2p-dev-cwtest SET device_name Causeway-000000000000fedc"))
    #expect(supplicant.commands.contains("IFNAME=p2p-dev-cwtest SET ip_addr_go 192.168.49.1"))
    #expect(supplicant.commands.contains("IFNAME=p2p-dev-cwtest SET max_num_sta 7"))
    #expect(supplicant.commands.last == "IFNAME=p2p-dev-cwtest P2P_GROUP_ADD persistent=3 freq=2")
    #expect(radio.snapshot.state == .creatingGroup)
  }

  @Test func `an owner's group is reported, and push button is activated`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    var interfaces: [String?] = []
    radio.groupInterfaceChanged = { interfaces.append($0) }
    defer { radio.stop() }
    own(radio, supplicant)
    supplicant.say("IFNAME=p2p-cwtest-0 <3>AP-STA-CONNECTED 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00")
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 1 && !radio.snapshot.stations.isEmpty }
    #expect(radio.snapshot.state == .groupOwner)
    #expect(radio.snapshot.groupInterface == "p2p-cwtest-0")
    #expect(radio.snapshot.ssid == "DIRECT-BB")
    #expect(radio.snapshot.passphrase == "n6UfHMDO")
    #expect(radio.snapshot.frequency == 2437)
    #expect(radio.snapshot.stations == [MACAddress(0x4600_0000_0100)])
    #expect(interfaces == ["p2p-cwtest-0"])
    supplicant.say("IFNAME=p2p-cwtest-0 <3>AP-STA-DISCONNECTED 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00")
    serve(loop) { radio.snapshot.stations.isEmpty }
    #expect(radio.snapshot.stations.isEmpty)
  }

  @Test func `a group whose handshakes a bridge would intercept stays outside the bridge and works`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    supplicant.answer = { $0.hasSuffix("DRIVER_FLAGS2") ? "0:" : usual($0) }
    let radio = makeRadio { $0.isBridged = true }
    var interfaces: [String?] = []
    radio.groupInterfaceChanged = { interfaces.append($0) }
    defer { radio.stop() }
    own(radio, supplicant)
    serve(loop) { !interfaces.isEmpty }
    #expect(interfaces == ["p2p-cwtest-0"] && radio.snapshot.state == .groupOwner)
    #expect(
      recorder.reports.contains {
        $0.isFault && $0.text == "the group is not in the bridge of [bluetooth] nap: Operation not supported"
      })
  }

  @Test func `a radio that is fixed to another band gets its group there`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    supplicant.answer = { $0.hasSuffix("freq=2") ? "FAIL" : usual($0) }
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 2 }
    #expect(supplicant.commands.last == "IFNAME=p2p-dev-cwtest P2P_GROUP_ADD persistent=3")
    #expect(recorder.reports.isEmpty)
  }

  @Test func `a configured name and passphrase create a persistent group`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio {
      $0.ssid = "living"
      $0.passphrase = "correct \"horse\""
      $0.frequency = 2437
    }
    radio.start()
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    #expect(supplicant.commands.contains("IFNAME=p2p-dev-cwtest SET_NETWORK 3 ssid 4449524543542d63772d6c6976696e67"))
    #expect(supplicant.commands.contains("IFNAME=p2p-dev-cwtest SET_NETWORK 3 psk \"correct \"horse\"\""))
    #expect(supplicant.commands.last == "IFNAME=p2p-dev-cwtest P2P_GROUP_ADD persistent=3 freq=2437")
    radio.stop()
    serve(loop) { supplicant.commands.last == "IFNAME=p2p-dev-cwtest REMOVE_NETWORK 3" }
    #expect(supplicant.commands.last == "IFNAME=p2p-dev-cwtest REMOVE_NETWORK 3")
  }

  @Test func `a removed group is reported and created again after a pause`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    var interfaces: [String?] = []
    radio.groupInterfaceChanged = { interfaces.append($0) }
    defer { radio.stop() }
    own(radio, supplicant)
    serve(loop) { radio.snapshot.state == .groupOwner }
    supplicant.say("<3>P2P-GROUP-REMOVED p2p-cwtest-0 GO reason=UNAVAILABLE")
    serve(loop) { radio.snapshot.state == .creatingGroup }
    #expect(recorder.reports.last?.text == "the group was removed: UNAVAILABLE")
    #expect(recorder.reports.last?.isFault == true)
    #expect(interfaces == ["p2p-cwtest-0", nil])
    #expect(radio.snapshot.ssid == "")
    #expect(supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1, "not at once")
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 2 }
    #expect(supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 2)
  }

  @Test func `the group of another program is left alone`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    defer { radio.stop() }
    own(radio, supplicant)
    serve(loop) { radio.snapshot.state == .groupOwner }
    supplicant.say("<3>P2P-GROUP-REMOVED p2p-other-0 GO reason=REQUESTED")
    loop.turn(waitMilliseconds: 20)
    #expect(radio.snapshot.state == .groupOwner)
  }

  @Test func `a group left by an earlier run is removed first`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    supplicant.answer = { $0 == "INTERFACES" ? "p2p-cwtest-4\np2p-other-0\ncwtest" : usual($0) }
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    // If the interface has no P2P device, the commands of Wi-Fi Direct are sent to the interface itself.
    serve(loop) { supplicant.count("IFNAME=cwtest P2P_GROUP_ADD") == 1 }
    #expect(supplicant.commands.filter { $0.hasPrefix("P2P_GROUP_REMOVE") } == ["P2P_GROUP_REMOVE p2p-cwtest-4"])
  }

  @Test func `stop removes the group`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    radio.start()
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    supplicant.say(ownerStarted)
    serve(loop) { radio.snapshot.state == .groupOwner }
    radio.stop()
    serve(loop) { supplicant.count("P2P_GROUP_REMOVE p2p-cwtest-0") == 1 }
    #expect(supplicant.count("P2P_GROUP_REMOVE p2p-cwtest-0") == 1)
    #expect(radio.snapshot.state == .off)
  }

  // MARK: - Client

  @Test func `a client joins a node's group and reports its owner`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_FIND") == 1 }
    supplicant.say(ownerFound)
    serve(loop) { supplicant.count("P2P_CONNECT") == 1 }
    #expect(supplicant.commands.last == "P2P_CONNECT 42:00:00:00:01:00 pbc join")
    supplicant.say(clientStarted)
    serve(loop) { !recorder.found.isEmpty }
    let candidate = Candidate(
      bearer: .wifiDirect, address: .ip(IPEndpoint(ipv4: 0xC0A8_3101, port: 41_820)), hint: 0x0123_4567_89AB_CDEF)
    #expect(recorder.found == [candidate])
    #expect(radio.snapshot.state == .member)
    #expect(radio.snapshot.owner == MACAddress(0x4200_0000_0100))
    supplicant.say("<3>P2P-GROUP-REMOVED p2p-cwtest-0 client reason=GO_ENDING_SESSION")
    serve(loop) { !recorder.lost.isEmpty }
    #expect(recorder.lost == [candidate])
    #expect(radio.snapshot.state == .searching)
  }

  @Test func `a client states the frequency of the owner if it is known`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    supplicant.answer = { command in
      command == "IFNAME=p2p-dev-cwtest BSS 46:00:00:00:01:00" ? "id=4\nfreq=2462\nlevel=-50" : usual(command)
    }
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_FIND") == 1 }
    supplicant.say(ownerFound)
    serve(loop) { supplicant.count("P2P_CONNECT") == 1 }
    #expect(supplicant.commands.last == "P2P_CONNECT 42:00:00:00:01:00 pbc join freq=2462")
  }

  @Test func `a client ignores devices that are not nodes or own no group`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_FIND") == 1 }
    supplicant.say(
      "<3>P2P-DEVICE-FOUND 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00 pri_dev_type=6-0050F204-1 "
        + "name='Printer' config_methods=0x80 dev_capab=0x27 group_capab=0x89 new=1")
    supplicant.say(
      "<3>P2P-DEVICE-FOUND 42:00:00:00:02:00 p2p_dev_addr=42:00:00:00:02:00 pri_dev_type=6-0050F204-1 "
        + "name='Causeway-0123456789abcdef' config_methods=0x80 dev_capab=0x25 group_capab=0x0 new=1")
    loop.turn(waitMilliseconds: 20)
    #expect(supplicant.count("P2P_CONNECT") == 0)
    #expect(radio.snapshot.state == .searching)
  }

  @Test func `a client with a configured peer joins only that peer`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio {
      $0.role = .client
      $0.peer = MACAddress(0x4200_0000_0200)
    }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_FIND") == 1 }
    supplicant.say(ownerFound)
    loop.turn(waitMilliseconds: 20)
    #expect(supplicant.count("P2P_CONNECT") == 0)
    supplicant.say(
      "<3>P2P-DEVICE-FOUND 46:00:00:00:02:00 p2p_dev_addr=42:00:00:00:02:00 pri_dev_type=6-0050F204-1 "
        + "name='Any' config_methods=0x80 dev_capab=0x27 group_capab=0x89 new=1")
    serve(loop) { supplicant.count("P2P_CONNECT") == 1 }
    #expect(supplicant.commands.last == "P2P_CONNECT 42:00:00:00:02:00 pbc join")
  }

  @Test func `a refused join is reported, abandoned and followed by a pause`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_FIND") == 1 }
    supplicant.say(ownerFound)
    serve(loop) { radio.snapshot.state == .joining }
    supplicant.say("<3>P2P-GROUP-FORMATION-FAILURE ")
    serve(loop) { supplicant.count("P2P_CANCEL") == 1 }
    #expect(recorder.reports.map(\.text) == ["the group owner refused this node"])
    #expect(supplicant.count("P2P_FIND") == 1, "the radio rests first")
    #expect(radio.snapshot.owner == nil)
    serve(loop) { supplicant.count("P2P_FIND") == 2 }
    #expect(supplicant.count("P2P_FIND") == 2)
  }

  @Test func `a client reports that the owner admits another device`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_FIND") == 1 }
    supplicant.say(ownerFound)
    serve(loop) { radio.snapshot.state == .joining }
    supplicant.say("<3>WPS-M2D dev_password_id=0 config_error=12")
    serve(loop) { !recorder.reports.isEmpty }
    #expect(recorder.reports.map(\.text) == ["the group owner refused this node, because another device is joining"])
  }

  /// Any device can own a group whose name looks like that of a node, and then admit no station.
  @Test func `an owner that refused this node is tried after other owners`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    let other = ownerFound.replacing("42:00:00:00:01:00", with: "42:00:00:00:02:00")
    func search(_ number: Int, finding owners: [String], joins address: UInt64) {
      serve(loop) { supplicant.count("P2P_FIND") == number }
      for owner in owners { supplicant.say(owner) }
      supplicant.say("<3>P2P-FIND-STOPPED ")
      serve(loop) { radio.snapshot.state == .joining }
      #expect(radio.snapshot.owner == MACAddress(address))
      supplicant.say("<3>P2P-GROUP-FORMATION-FAILURE ")
      serve(loop) { supplicant.count("P2P_CANCEL") == number }
    }
    search(1, finding: [ownerFound], joins: 0x4200_0000_0100)
    search(2, finding: [ownerFound, other], joins: 0x4200_0000_0200)
    search(3, finding: [other, ownerFound], joins: 0x4200_0000_0100)
    search(4, finding: [other], joins: 0x4200_0000_0200)
  }

  @Test func `a join to a full group is abandoned at once`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_FIND") == 1 }
    supplicant.say(ownerFound)
    serve(loop) { radio.snapshot.state == .joining }
    supplicant.say(
      "IFNAME=p2p-cwtest-0 <3>CTRL-EVENT-AUTH-REJECT 46:00:00:00:01:00 auth_type=0 auth_transaction=2 status_code=17")
    serve(loop) { supplicant.count("P2P_CANCEL") == 1 }
    #expect(recorder.reports.map(\.text) == ["the group is full: its owner accepts no more stations"])
  }

  @Test func `a client with a passphrase joins as an ordinary station`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio {
      $0.role = .client
      $0.ssid = "DIRECT-B7"
      $0.passphrase = "ancV3ix8"
    }
    radio.start()
    serve(loop) { supplicant.count("IFNAME=cwtest ENABLE_NETWORK 3") == 1 }
    #expect(supplicant.commands.contains("IFNAME=cwtest SET_NETWORK 3 ssid 4449524543542d4237"))
    #expect(supplicant.commands.contains("IFNAME=cwtest SET_NETWORK 3 psk \"ancV3ix8\""))
    supplicant.say("IFNAME=cwtest <3>CTRL-EVENT-CONNECTED - Connection to 46:00:00:00:00:00 completed [id=0 id_str=]")
    serve(loop) { radio.snapshot.state == .member }
    #expect(radio.snapshot.groupInterface == "cwtest")
    supplicant.say("IFNAME=cwtest <3>CTRL-EVENT-DISCONNECTED bssid=46:00:00:00:00:00 reason=3")
    serve(loop) { radio.snapshot.state == .joining }
    #expect(radio.snapshot.state == .joining)
    radio.stop()
    serve(loop) { supplicant.count("IFNAME=cwtest REMOVE_NETWORK 3") == 1 }
    #expect(supplicant.count("IFNAME=cwtest REMOVE_NETWORK 3") == 1)
  }

  // MARK: - wpa_supplicant

  @Test func `a missing wpa_supplicant is reported once with a remedy, and used when it appears`() throws {
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    #expect(radio.snapshot.state == .waitingForSupplicant)
    let supplicant = try makeSupplicant()
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    #expect(radio.snapshot.state == .creatingGroup)
    let path = scratch.path + "/global"
    #expect(recorder.reports.map(\.text) == ["no wpa_supplicant at \(path): start it with -g \(path)"])
  }

  @Test func `the end of wpa_supplicant ends the group and the candidate`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_FIND") == 1 }
    supplicant.say(ownerFound)
    serve(loop) { radio.snapshot.state == .joining }
    supplicant.say(clientStarted)
    serve(loop) { radio.snapshot.state == .member }
    supplicant.say("<3>CTRL-EVENT-TERMINATING ")
    serve(loop) { radio.snapshot.state == .waitingForSupplicant }
    #expect(recorder.lost.count == 1)
    #expect(recorder.reports.last?.text == "wpa_supplicant has stopped")
    #expect(radio.snapshot.groupInterface == "")
  }

  @Test func `without a global socket the P2P device's own socket is used`() throws {
    let supplicant = try makeSupplicant("p2p-dev-cwtest")
    let group = try FakeSupplicant(loop, scratch.path + "/p2p-cwtest-0")
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("P2P_GROUP_ADD") == 1 }
    #expect(supplicant.commands.contains("SET ip_addr_go 192.168.49.1"))
    supplicant.say(ownerStarted)
    serve(loop) { group.count("WPS_PBC") == 1 }
    #expect(group.commands == ["ATTACH", "WPS_PBC"])
    supplicant.say("<3>AP-STA-CONNECTED 46:00:00:00:01:00 p2p_dev_addr=42:00:00:00:01:00")
    serve(loop) { !radio.snapshot.stations.isEmpty }
    #expect(radio.snapshot.stations.count == 1)
  }

  @Test func `an interface that wpa_supplicant does not manage is added`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    var isAdded = false
    supplicant.answer = { command in
      if command.hasPrefix("INTERFACE_ADD") { isAdded = true }
      return command == "INTERFACES" && !isAdded ? "" : usual(command)
    }
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    #expect(supplicant.commands.contains { $0.hasPrefix("INTERFACE_ADD cwtest\t\tnl80211\t") })
  }

  @Test func `a missing interface is reported as a fault`() throws {
    let supplicant = try makeSupplicant()
    supplicant.answer = { $0.hasPrefix("INTERFACE_ADD") ? "FAIL" : $0 == "INTERFACES" ? "" : "OK" }
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { radio.snapshot.state == .unavailable }
    #expect(recorder.reports.count == 1)
    #expect(recorder.reports.first?.text.contains("cannot use cwtest") == true)
  }

  @Test func `a wpa_supplicant without Wi-Fi Direct is a fault for a client`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    supplicant.answer = { $0.hasSuffix("STATUS") ? "wpa_state=DISCONNECTED" : usual($0) }
    let radio = makeRadio { $0.role = .client }
    radio.start()
    defer { radio.stop() }
    serve(loop) { radio.snapshot.state == .unavailable }
    #expect(recorder.reports.first?.text.contains("does not support Wi-Fi Direct") == true)
  }

  @Test func `invalid options leave the radio off`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.passphrase = "short" }
    radio.start()
    loop.turn(waitMilliseconds: 20)
    #expect(radio.snapshot.state == .off)
    #expect(recorder.reports.map(\.text) == ["the passphrase must have 8 to 63 printable ASCII characters"])
    #expect(supplicant.commands.isEmpty)
  }
}
