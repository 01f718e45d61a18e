import BearerIP
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import WiFiDirect

/// A group owner whose wpa_supplicant does not support Wi-Fi Direct makes an access point instead.
@Suite struct AccessPointTests {
  let scratch: Scratch
  let loop: EventLoop
  let recorder = Recorder()
  private let supplicant: FakeSupplicant
  private let isThere = Flag()

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop()
    supplicant = try FakeSupplicant(loop, "\(scratch.path)/global")
    let isThere = isThere
    supplicant.answer = { command in
      if command == "INTERFACES" { return "cwtest" }
      if command.hasSuffix("ADD_NETWORK") { return "0" }
      if command == "IFNAME=ap-cwtest STATUS" || command == "IFNAME=cwtest STATUS" && isThere.isOnOwnInterface {
        return isThere.value ? "mode=AP\nwpa_state=COMPLETED" : "wpa_state=SCANNING"
      }
      return command.hasSuffix("STATUS") ? "wpa_state=DISCONNECTED" : "OK"
    }
  }

  private func makeRadio(_ change: (inout WiFiDirectOptions) -> Void = { _ in }) -> WiFiDirectRadio {
    var options = WiFiDirectOptions()
    options.interface = "cwtest"
    options.controlSocket = scratch.path + "/global"
    options.clientDirectory = scratch.path
    options.passphraseOfNode = "abcdefgh23456789"
    change(&options)
    return WiFiDirectRadio(loop, options, hint: 0xFEDC, recorder) { _ in nil }
  }

  @Test func `an access point replaces the group if the driver supports no group`() throws {
    let radio = makeRadio { $0.passphrase = "correct horse" }
    var interfaces: [String?] = []
    radio.groupInterfaceChanged = { interfaces.append($0) }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=ap-cwtest SELECT_NETWORK 0") == 1 }
    #expect(supplicant.commands.contains("INTERFACE_ADD ap-cwtest\t\tnl80211\t\t\t\tcreate\tap"))
    for setting in [
      "ssid \(hexadecimal(Array("Causeway-000000000000fedc".utf8)))", "psk \"correct horse\"", "mode 2",
      "frequency 2437",
      "scan_freq 2437", "key_mgmt WPA-PSK",
    ] { #expect(supplicant.commands.contains("IFNAME=ap-cwtest SET_NETWORK 0 \(setting)"), "\(setting)") }
    #expect(supplicant.commands.contains("IFNAME=ap-cwtest SET max_num_sta 7"))
    #expect(radio.snapshot.state == .creatingGroup)
    isThere.value = true
    serve(loop) { radio.snapshot.state == .groupOwner }
    #expect(radio.snapshot.ssid == "Causeway-000000000000fedc" && radio.snapshot.passphrase == "correct horse")
    #expect(radio.snapshot.frequency == 2437 && interfaces == ["ap-cwtest"])
  }

  @Test func `an access point has the passphrase of its node`() throws {
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=ap-cwtest SELECT_NETWORK 0") == 1 }
    #expect(supplicant.commands.contains("IFNAME=ap-cwtest SET_NETWORK 0 psk \"abcdefgh23456789\""))
  }

  @Test func `the stations of an access point are tracked`() throws {
    isThere.value = true
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { radio.snapshot.state == .groupOwner }
    supplicant.say("IFNAME=ap-cwtest <3>AP-STA-CONNECTED 46:00:00:00:01:00")
    supplicant.say("IFNAME=other <3>AP-STA-CONNECTED 46:00:00:00:01:01")
    serve(loop) { !radio.snapshot.stations.isEmpty }
    serve(loop, for: .milliseconds(20))
    #expect(radio.snapshot.stations == [MACAddress(0x4600_0000_0100)])
    supplicant.say("IFNAME=ap-cwtest <3>AP-STA-DISCONNECTED 46:00:00:00:01:00")
    serve(loop) { radio.snapshot.stations.isEmpty }
  }

  @Test func `an access point uses the only interface of a driver unless that has a network`() throws {
    let usual = supplicant.answer
    isThere.isOnOwnInterface = true
    var networks = "network id / ssid / bssid / flags\n0\thome\tany\t[CURRENT]"
    supplicant.answer = { command in
      if command.hasPrefix("INTERFACE_ADD") { return "FAIL" }
      return command.hasSuffix("LIST_NETWORKS") ? networks : usual(command)
    }
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { recorder.reports.contains { $0.isFault } }
    #expect(recorder.reports.first?.text.contains("supports no access point beside the network") == true)
    #expect(supplicant.count("IFNAME=cwtest ADD_NETWORK") == 0)
    // A network that a killed daemon left behind does not count as this daemon's network, and is removed.
    networks = "network id / ssid / bssid / flags\n4\tCauseway-000000000000fedc\tany\t[CURRENT]"
    serve(loop) { supplicant.count("IFNAME=cwtest SELECT_NETWORK 0") == 1 }
    #expect(supplicant.commands.contains("IFNAME=cwtest REMOVE_NETWORK 4"))
    isThere.value = true
    serve(loop) { radio.snapshot.groupInterface == "cwtest" }
    #expect(radio.snapshot.groupInterface == "cwtest")
  }

  @Test func `an access point that disappears is created again`() throws {
    isThere.value = true
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { radio.snapshot.state == .groupOwner }
    isThere.value = false
    serve(loop) { radio.snapshot.state == .creatingGroup }
    #expect(radio.snapshot.groupInterface.isEmpty)
    isThere.value = true
    serve(loop) { radio.snapshot.state == .groupOwner }
    #expect(supplicant.count("INTERFACE_ADD ap-cwtest") == 2)
  }

  @Test func `an access point ends with the daemon`() throws {
    isThere.value = true
    let radio = makeRadio()
    radio.start()
    serve(loop) { radio.snapshot.state == .groupOwner }
    radio.stop()
    serve(loop) { supplicant.commands.last == "INTERFACE_REMOVE ap-cwtest" }
    #expect(supplicant.commands.last == "INTERFACE_REMOVE ap-cwtest")
  }
}

/// Whether the simulated access point exists, and whether it has an interface of its own.
private final class Flag {
  var value = false
  var isOnOwnInterface = false
}
