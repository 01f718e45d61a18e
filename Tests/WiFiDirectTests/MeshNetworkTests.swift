import BearerIP
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import WiFiDirect

/// A Wi-Fi radio that is part of an 802.11s mesh.
@Suite struct MeshNetworkTests {
  let scratch: Scratch
  let loop: EventLoop
  let recorder = Recorder()
  private let supplicant: FakeSupplicant
  private let isThere = Switch()

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop()
    supplicant = try Self.makeSupplicant(loop, scratch, isThere)
  }

  private static func makeSupplicant(_ loop: EventLoop, _ scratch: Scratch, _ isThere: Switch) throws -> FakeSupplicant
  {
    let supplicant = try FakeSupplicant(loop, "\(scratch.path)/global")
    supplicant.answer = { command in
      if command == "INTERFACES" { return "p2p-cwtest-0\np2p-dev-cwtest\ncwtest" }
      if command.hasSuffix("MESH_INTERFACE_ADD ifname=mesh-cwtest") { return "mesh-cwtest" }
      if command.hasSuffix("ADD_NETWORK") { return "0" }
      if command.hasSuffix("LIST_NETWORKS") { return "network id / ssid / bssid / flags" }
      if command.hasSuffix("STATUS") { return isThere.isOn ? "mode=mesh\nwpa_state=COMPLETED" : "wpa_state=SCANNING" }
      return "OK"
    }
    return supplicant
  }

  private func makeRadio(
    isForwarding: Bool = true, isBesideGroup: Bool = false, ssid: String = "backbone"
  ) -> WiFiDirectRadio {
    var options = WiFiDirectOptions()
    options.interface = "cwtest"
    options.controlSocket = scratch.path + "/global"
    options.clientDirectory = scratch.path
    options.ssid = ssid
    options.passphrase = "correct horse"
    options.frequency = 2462
    options.mesh = MeshOptions(isForwarding: isForwarding, isBesideGroup: isBesideGroup)
    return WiFiDirectRadio(loop, options, hint: 0xFEDC, recorder) { _ in nil }
  }

  @Test func `a mesh runs on its own interface with SAE`() throws {
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=mesh-cwtest SELECT_NETWORK 0") == 1 }
    #expect(supplicant.commands.contains("IFNAME=cwtest MESH_INTERFACE_ADD ifname=mesh-cwtest"))
    for setting in [
      "ssid \(hexadecimal(Array("backbone".utf8)))", "sae_password \"correct horse\"", "mode 5", "key_mgmt SAE",
      "ieee80211w 2", "beacon_int 100", "mesh_fwding 1", "frequency 2462", "scan_freq 2462",
    ] { #expect(supplicant.commands.contains("IFNAME=mesh-cwtest SET_NETWORK 0 \(setting)"), "\(setting)") }
    #expect(supplicant.commands.contains("IFNAME=mesh-cwtest SET max_peer_links 32"))
    #expect(radio.snapshot.state == .joining)
    isThere.isOn = true
    serve(loop) { radio.snapshot.state == .member }
    #expect(radio.snapshot.groupInterface == "mesh-cwtest" && radio.snapshot.ssid == "backbone")
    #expect(radio.snapshot.frequency == 2462)
    #expect(recorder.reports.map(\.text) == ["mesh “backbone” on mesh-cwtest, 2462 MHz"])
  }

  @Test func `without forwarding wpa_supplicant is configured not to forward`() throws {
    let radio = makeRadio(isForwarding: false)
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=mesh-cwtest SELECT_NETWORK 0") == 1 }
    #expect(supplicant.commands.contains("IFNAME=mesh-cwtest SET_NETWORK 0 mesh_fwding 0"))
  }

  @Test func `a mesh leaves the group on the same radio unchanged`() throws {
    isThere.isOn = true
    let radio = makeRadio(isBesideGroup: true)
    radio.start()
    defer { radio.stop() }
    serve(loop) { radio.snapshot.state == .member }
    #expect(!supplicant.commands.contains { $0.contains("P2P_GROUP_REMOVE") || $0.contains("SET device_name") })
  }

  @Test func `the neighbours of a mesh are tracked`() throws {
    isThere.isOn = true
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { radio.snapshot.state == .member }
    supplicant.say("IFNAME=mesh-cwtest <3>MESH-PEER-CONNECTED 46:00:00:00:01:00")
    supplicant.say("IFNAME=mesh-other <3>MESH-PEER-CONNECTED 46:00:00:00:01:01")
    serve(loop) { !radio.snapshot.stations.isEmpty }
    serve(loop, for: .milliseconds(20))
    #expect(radio.snapshot.stations == [MACAddress(0x4600_0000_0100)])
    supplicant.say("IFNAME=mesh-cwtest <3>MESH-PEER-DISCONNECTED 46:00:00:00:01:00")
    serve(loop) { radio.snapshot.stations.isEmpty }
    let told = recorder.reports.map(\.text).dropFirst()
    #expect(told == ["mesh “backbone”: 1 mesh peers", "mesh “backbone”: 0 mesh peers"])
  }

  @Test func `a neighbour with another passphrase is reported`() throws {
    isThere.isOn = true
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { radio.snapshot.state == .member }
    supplicant.say("IFNAME=mesh-cwtest <3>MESH-SAE-AUTH-FAILURE addr=46:00:00:00:01:00")
    serve(loop) { recorder.reports.contains { $0.isFault } }
    #expect(
      recorder.reports.last?.text == "46:00:00:00:01:00 does not join “backbone”: does it have the same passphrase?")
  }

  @Test func `beside a group the mesh does not use the radio's own interface`() throws {
    let usual = supplicant.answer
    supplicant.answer = { $0.contains("MESH_INTERFACE_ADD") ? "FAIL" : usual($0) }
    let radio = makeRadio(isBesideGroup: true)
    radio.start()
    defer { radio.stop() }
    serve(loop) { recorder.reports.contains { $0.isFault } }
    #expect(
      recorder.reports.first?.text == "cwtest supports no mesh beside the group: its driver has no second interface")
    #expect(supplicant.count("IFNAME=cwtest ADD_NETWORK") == 0)
  }

  @Test func `without a group the mesh uses the only interface of the driver`() throws {
    isThere.isOn = true
    let usual = supplicant.answer
    supplicant.answer = { $0.contains("MESH_INTERFACE_ADD") ? "FAIL" : usual($0) }
    let radio = makeRadio()
    radio.start()
    serve(loop) { radio.snapshot.groupInterface == "cwtest" }
    #expect(radio.snapshot.groupInterface == "cwtest")
    radio.stop()
    serve(loop) { supplicant.commands.last == "IFNAME=cwtest REMOVE_NETWORK 0" }
    #expect(supplicant.commands.last == "IFNAME=cwtest REMOVE_NETWORK 0")
  }

  @Test func `a driver that cannot start the mesh is reported at once`() throws {
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=mesh-cwtest SELECT_NETWORK 0") == 1 }
    supplicant.say("IFNAME=mesh-cwtest <5>mesh join error=-16")
    serve(loop, atMost: .seconds(2)) { recorder.reports.contains { $0.isFault } }
    #expect(
      recorder.reports.first?.text
        == "the driver cannot start a mesh on 2462 MHz: is the channel allowed, and free for this radio?")
  }

  @Test func `the mesh is created again after wpa_supplicant was killed`() throws {
    isThere.isOn = true
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { radio.snapshot.state == .member }
    supplicant.die()
    serve(loop) { radio.snapshot.state == .waitingForSupplicant }
    #expect(radio.snapshot.stations.isEmpty && radio.snapshot.groupInterface.isEmpty)
    let next = try Self.makeSupplicant(loop, scratch, isThere)
    serve(loop) { radio.snapshot.state == .member }
    #expect(next.count("IFNAME=mesh-cwtest SELECT_NETWORK 0") == 1)
  }

  @Test func `the mesh ends with the daemon`() throws {
    isThere.isOn = true
    let radio = makeRadio()
    radio.start()
    serve(loop) { radio.snapshot.state == .member }
    radio.stop()
    serve(loop) { supplicant.commands.last == "INTERFACE_REMOVE mesh-cwtest" }
    #expect(supplicant.commands.last == "INTERFACE_REMOVE mesh-cwtest")
  }

  @Test func `a mesh without a name is not started`() throws {
    let radio = makeRadio(ssid: "")
    radio.start()
    #expect(recorder.reports.map(\.text) == ["a mesh needs an SSID and a passphrase: set both"])
    #expect(radio.snapshot.state == .off && supplicant.commands.isEmpty)
  }
}

/// Whether the simulated mesh exists.
private final class Switch {
  var isOn = false
}
