import LoopSupport
import Primitives
import Testing

@testable import WiFiDirect

/// WPS push button of a group owner.
extension WiFiDirectRadioTests {
  @Test func `push button is activated again after it was used`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    defer { radio.stop() }
    own(radio, supplicant)
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 1 }
    supplicant.say("IFNAME=p2p-cwtest-0 <3>WPS-PBC-DISABLE ")
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 2 }
    #expect(supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 2)
  }

  /// Reports to the radio that the device of this number requests to join by push button.
  func requestPushButton(_ supplicant: FakeSupplicant, device number: Int) {
    let address = "42:00:00:00:0\(number):00"
    supplicant.say("<3>P2P-PROV-DISC-PBC-REQ \(address) p2p_dev_addr=\(address) pri_dev_type=1-0050F204-1 name='x'")
  }

  @Test func `a device that requests push button is exempted from the overlap check`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    defer { radio.stop() }
    own(radio, supplicant)
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 1 }
    requestPushButton(supplicant, device: 1)
    supplicant.say("IFNAME=p2p-cwtest-0 <3>WPS-OVERLAP-DETECTED ")
    requestPushButton(supplicant, device: 2)
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 2 }
    serve(loop, for: .milliseconds(20))
    #expect(
      supplicant.commands.filter { $0.hasPrefix("IFNAME=p2p-cwtest-0 WPS_PBC") }
        == ["IFNAME=p2p-cwtest-0 WPS_PBC", "IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr=42:00:00:00:01:00"])
  }

  @Test func `a refused exemption from the overlap check ends the turn`() throws {
    let supplicant = try makeSupplicant()
    let usual = supplicant.answer
    supplicant.answer = { $0.contains("WPS_PBC p2p_dev_addr") ? "FAIL" : usual($0) }
    let radio = makeRadio()
    defer { radio.stop() }
    own(radio, supplicant)
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 1 }
    for device in 1...2 {
      requestPushButton(supplicant, device: device)
      serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr") == device }
      serve(loop, for: .milliseconds(20))
    }
    #expect(supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr=42:00:00:00:02:00") == 1)
  }

  @Test func `a press of the button ends the turn and activates push button for all devices`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    defer { radio.stop() }
    own(radio, supplicant)
    requestPushButton(supplicant, device: 1)
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr") == 1 }
    #expect(radio.pushButton())
    serve(loop) { radio.snapshot.isPushButtonPressed }
    #expect(supplicant.commands.last == "IFNAME=p2p-cwtest-0 WPS_PBC")
    requestPushButton(supplicant, device: 2)
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr=42:00:00:00:02:00") == 1 }
    #expect(supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr=42:00:00:00:02:00") == 1)
  }

  @Test func `the next device that requests push button is exempted when the first one has joined`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio()
    defer { radio.stop() }
    own(radio, supplicant)
    requestPushButton(supplicant, device: 1)
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr=42:00:00:00:01:00") == 1 }
    supplicant.say("IFNAME=p2p-cwtest-0 <3>WPS-PBC-DISABLE ")
    requestPushButton(supplicant, device: 2)
    serve(loop) { supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr=42:00:00:00:02:00") == 1 }
    #expect(supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC p2p_dev_addr=42:00:00:00:02:00") == 1)
  }

  @Test func `push button on request exempts no device from the overlap check`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.pushButton = .onRequest }
    defer { radio.stop() }
    own(radio, supplicant)
    serve(loop) { radio.snapshot.state == .groupOwner }
    requestPushButton(supplicant, device: 1)
    serve(loop, for: .milliseconds(20))
    #expect(supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 0)
  }

  @Test func `push button on request waits for a request`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.pushButton = .onRequest }
    radio.start()
    defer { radio.stop() }
    #expect(!radio.pushButton(), "there is no group yet")
    serve(loop) { supplicant.count("IFNAME=p2p-dev-cwtest P2P_GROUP_ADD") == 1 }
    supplicant.say(ownerStarted)
    serve(loop) { radio.snapshot.state == .groupOwner }
    loop.turn(waitMilliseconds: 20)
    #expect(supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 0)
    #expect(radio.pushButton())
    serve(loop) { radio.snapshot.isPushButtonPressed }
    #expect(supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 1)
    supplicant.say("IFNAME=p2p-cwtest-0 <3>WPS-TIMEOUT ")
    serve(loop) { !radio.snapshot.isPushButtonPressed }
    #expect(!radio.snapshot.isPushButtonPressed, "two minutes have gone by")
  }

  @Test func `push button that is disabled is never activated`() throws {
    let supplicant = try makeSupplicant()
    let radio = makeRadio { $0.pushButton = .never }
    defer { radio.stop() }
    own(radio, supplicant)
    serve(loop) { radio.snapshot.state == .groupOwner }
    #expect(!radio.pushButton())
    serve(loop, for: .milliseconds(20))
    #expect(supplicant.count("IFNAME=p2p-cwtest-0 WPS_PBC") == 0)
  }
}
