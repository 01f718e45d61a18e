import LoopSupport
import Primitives
import Reactor
import Testing

@testable import WiFiDirect

/// Failures of the group of an owner, and the steps of its recovery.
extension WiFiDirectRadioTests {
  @Test func `each attempt configures wpa_supplicant again, because a new radio has no settings`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    supplicant.say(ownerStarted)
    serve(loop) { radio.snapshot.state == .groupOwner }
    supplicant.say("<3>P2P-GROUP-REMOVED p2p-cwtest-0 GO reason=UNAVAILABLE")
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 2 }
    #expect(supplicant.count("IFNAME=p2p-dev-cwtest SET ip_addr_go") == 2)
  }

  @Test func `a device that wpa_supplicant has lost is looked up again`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    var isLost = true
    supplicant.answer = { command in
      if isLost, command.contains("P2P_GROUP_ADD") { return "FAIL-NO-IFNAME-MATCH" }
      if command == "INTERFACES" { isLost = supplicant.count("INTERFACES") == 1 }
      return usual(command)
    }
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { !isLost && supplicant.commands.last?.contains("P2P_GROUP_ADD") == true }
    #expect(supplicant.count("INTERFACES") == 2)
    #expect(recorder.reports.map(\.text) == ["wpa_supplicant cannot create a group on cwtest: FAIL-NO-IFNAME-MATCH"])
  }

  @Test func `an owner's group has the name and the passphrase of its node`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    // The group's name consists of “DIRECT-”, two characters from the hint, and the prefix of device names.
    #expect(
      supplicant.commands.contains(
        "IFNAME=p2p-dev-cwtest SET_NETWORK 3 ssid \(hexadecimal(Array("DIRECT-y6-Causeway".utf8)))"))
    #expect(supplicant.commands.contains("IFNAME=p2p-dev-cwtest SET_NETWORK 3 psk \"abcdefgh23456789\""))
  }

  @Test func `networks of earlier attempts are removed`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    supplicant.answer = { command in
      guard command.hasSuffix("LIST_NETWORKS") else { return usual(command) }
      return
        "network id / ssid / bssid / flags\n0\tat home\tany\t\n7\tDIRECT-y6-Causeway\tany\t[DISABLED][P2P-PERSISTENT]"
    }
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    #expect(supplicant.commands.filter { $0.contains("REMOVE_NETWORK") } == ["IFNAME=p2p-dev-cwtest REMOVE_NETWORK 7"])
  }

  @Test func `a blocked radio is reported and left alone, and used as soon as it is unblocked`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    supplicant.say(ownerStarted)
    serve(loop) { radio.snapshot.state == .groupOwner }
    air.obstacle = .blocked
    radio.radioMayHaveChanged()
    #expect(radio.snapshot.state == .unavailable)
    #expect(radio.snapshot.groupInterface == "")
    #expect(recorder.reports.last?.text == "cwtest is blocked: run `rfkill unblock wlan`")
    supplicant.say("<3>P2P-GROUP-REMOVED p2p-cwtest-0 GO reason=UNAVAILABLE")
    serve(loop, for: .milliseconds(1200))
    #expect(supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1)
    air.obstacle = nil
    radio.radioMayHaveChanged()
    serve(loop, atMost: .milliseconds(800)) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 2 }
    #expect(supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 2)
  }

  @Test func `the fault of an absent radio states that it is absent`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    supplicant.say(ownerStarted)
    serve(loop) { radio.snapshot.state == .groupOwner }
    air.obstacle = .absent
    supplicant.say("<3>P2P-GROUP-REMOVED p2p-cwtest-0 GO reason=UNAVAILABLE")
    serve(loop) { radio.snapshot.state == .unavailable }
    #expect(recorder.reports.last?.text == "no interface cwtest: is the radio plugged in? (it is used once present)")
  }

  /// Makes every creation of a group fail while wpa_supplicant reports this state of its interface. Returns whether the
  /// radio requested the state before its fourth attempt.
  private func isStateAsked(_ state: String, isRefused: Bool) throws -> Bool {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    supplicant.answer = { command in
      if command == "IFNAME=cwtest STATUS" { return "wpa_state=\(state)" }
      if command.contains("P2P_GROUP_ADD") { return "FAIL" }
      if isRefused, command == "IFNAME=p2p-dev-cwtest STATUS" { return "wpa_state=\(state)" }
      return usual(command)
    }
    // An owner would make an access point without Wi-Fi Direct, so the refused case uses a client.
    let radio = makeRadio { if isRefused { $0.role = .client } }
    radio.start()
    defer { radio.stop() }
    serve(loop) { supplicant.count("INTERFACES") == 4 }
    #expect(supplicant.count("INTERFACES") == 4)
    return supplicant.count("IFNAME=cwtest STATUS") == 1
  }

  @Test func `the interface is checked for a connection before it is switched off`() throws {
    #expect(try isStateAsked("COMPLETED", isRefused: false))
  }

  @Test func `an interface that is not configured for Wi-Fi Direct is not switched off`() throws {
    #expect(try !isStateAsked("DISCONNECTED", isRefused: true))
  }
}
