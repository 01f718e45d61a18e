import Testing

@testable import BearerBluetooth

private let hub = WireAddress(address: 0x00AA_0100_0001, type: 1)

@Test func `a command is a header and parameters in little-endian order`() {
  #expect(ManagementCommand.readIndexList.bytes == bytes("0300ffff0000"))
  #expect(ManagementCommand.setPowered(2, true).bytes == bytes("05000200010001"))
  #expect(ManagementCommand.setBondable(0, false).bytes == bytes("09000000010000"))
  #expect(ManagementCommand.setLowEnergy(0, true).bytes == bytes("0d000000010001"))
  #expect(ManagementCommand.startDiscovery(1).bytes == bytes("23000100010006"))
  #expect(ManagementCommand.stopDiscovery(1).bytes == bytes("24000100010006"))
  #expect(ManagementCommand.removeAdvertising(0).bytes == bytes("3f000000010001"))
}

@Test func `the commands for Bluetooth classic have their golden bytes`() {
  #expect(ManagementCommand.setDiscoverable(1, true).bytes == bytes("0600010003" + "00" + "010000"))
  #expect(ManagementCommand.setConnectable(0, true).bytes == bytes("07000000010001"))
  #expect(ManagementCommand.setSimplePairing(0, true).bytes == bytes("0b000000010001"))
  #expect(ManagementCommand.setDeviceClass(0, major: 3, minor: 0).bytes == bytes("0e00000002000300"))
  #expect(ManagementCommand.setNoInputNoOutput(0).bytes == bytes("18000000010003"))
  #expect(ManagementCommand.removeUUIDs(0).bytes == bytes("110000001000" + String(repeating: "00", count: 16)))
  #expect(
    ManagementCommand.addUUID(0, CausewayService.uuid).bytes
      == bytes("100000001100" + "0100a1e405ca5c9e0b4e5b6f01001c8a" + "00"))
  #expect(
    ManagementCommand.addNetworkAccessPoint(0).bytes
      == bytes("100000001100" + "fb349b5f8000008000100000" + "16110000" + "02"))
  let name = ManagementCommand.setLocalName(0, "Box").bytes
  #expect(name == bytes("0f0000000401" + "426f78" + String(repeating: "00", count: 257)))
}

@Test func `the advertising command contains both parts after their lengths`() {
  let command = ManagementCommand.addAdvertising(1, data: [1, 2, 3], scanResponse: [4, 5])
  #expect(command.bytes == bytes("3e0001001000" + "010b000000" + "00000000" + "0302" + "0102030405"))
}

@Test func `default parameters are encoded as type, length and value`() {
  let command = ManagementCommand.setDefaults(0, [RadioDefault(type: 0x001A, value: 400)])
  #expect(command.bytes == bytes("4c00000005001a00029001"))
}

@Test func `the disconnect command names the device`() {
  #expect(ManagementCommand.disconnect(0, hub).bytes == bytes("140000000700" + "01000001aa0001"))
}

@Test func `an inquiry is a discovery over BR/EDR only`() {
  #expect(ManagementCommand.startDiscovery(0, isInquiry: true).bytes == bytes("230000000100" + "01"))
  #expect(ManagementCommand.stopDiscovery(0, isInquiry: true).bytes == bytes("240000000100" + "01"))
}

@Test func `refusals of pairing name the device`() {
  #expect(ManagementCommand.refusePIN(0, hub).bytes == bytes("170000000700" + "01000001aa0001"))
  #expect(ManagementCommand.refuseConfirmation(0, hub).bytes == bytes("1d0000000700" + "01000001aa0001"))
  #expect(ManagementCommand.refusePasskey(0, hub).bytes == bytes("1f0000000700" + "01000001aa0001"))
}

@Test func `a device-found event of a real kernel is decoded`() throws {
  // An event captured from Linux 6.12. The event reports an advertiser with flags, a service UUID and service data.
  let packet = bytes(
    "120001003900" + "00000001aa0001c4000000002b00"
      + "02010211079ecadc240ee5a9e093f3a3b50100406e15219ecadc240ee5a9e093f3a3b50100406edeadbeef")
  let (index, event) = try #require(ManagementEvent.decode(packet))
  #expect(index == 1)
  guard case .deviceFound(let found) = event else { throw Unexpected() }
  #expect(found.device == WireAddress(address: 0x00AA_0100_0000, type: 1))
  #expect(found.isConnectable)
  #expect(found.data.count == 43)
}

private struct Unexpected: Error {}

@Test func `a device that accepts no connections is recognised`() throws {
  let (_, event) = try #require(ManagementEvent.decode(bytes("120000000e00" + "00000001aa0001c4040000000000")))
  guard case .deviceFound(let found) = event else { throw Unexpected() }
  #expect(!found.isConnectable)
}

@Test(arguments: [
  ("0b0000000d00" + "01000001aa0001000000000000", ManagementEvent.deviceConnected(hub, isCentral: false)),
  ("0b0000000d00" + "01000001aa0001080000000000", .deviceConnected(hub, isCentral: true)),
  ("0c0000000800" + "01000001aa000103", .deviceDisconnected(hub, isEnded: true)),
  ("0c0000000800" + "01000001aa000101", .deviceDisconnected(hub, isEnded: false)),
  ("0d0000000800" + "01000001aa000104", .connectFailed(hub, ManagementStatus(rawValue: 4))),
  ("0e0000000800" + "01000001aa000100", .pinCodeRequest(hub)),
  ("0f0000000c00" + "01000001aa00010100000000", .confirmationRequest(hub)),
  ("100000000700" + "01000001aa0001", .passkeyRequest(hub)),
  ("130000000200" + "0601", .discovering(true, isInquiry: false)),
  ("130000000200" + "0600", .discovering(false, isInquiry: false)),
  ("130000000200" + "0101", .discovering(true, isInquiry: true)),
  ("060000000400" + "d3023c00", .newSettings(ControllerSettings(rawValue: 0x3C02D3))),
  ("040000000000", .indexAdded),
  ("050000000000", .indexRemoved),
  ("030000000100" + "13", .controllerError(0x13)),
  ("240000000100" + "01", .advertisingRemoved(instance: 1)),
  ("010000000700" + "03000001000000", .reply(opcode: 3, .success, [1, 0, 0, 0])),
  ("020000000300" + "050012", .reply(opcode: 5, .blockedByRFKill, [])),
  ("190000000200" + "0000", .other(code: 0x19)),
])
func eventsAreRead(_ hex: String, _ expected: ManagementEvent) throws {
  let (index, event) = try #require(ManagementEvent.decode(bytes(hex)))
  #expect(index == 0)
  #expect(event == expected)
}

@Test func `every truncated event is refused`() {
  let whole = bytes("120001001000" + "00000001aa0001c4000000000200" + "0000")
  #expect(ManagementEvent.decode(whole) != nil)
  for length in 0..<whole.count { #expect(ManagementEvent.decode(Array(whole.prefix(length))) == nil) }
}

@Test func `an event with a wrong inner length is refused`() {
  #expect(ManagementEvent.decode(bytes("120001000f00" + "00000001aa0001c4000000000200" + "00")) == nil)
  #expect(ManagementEvent.decode(bytes("120001000f00" + "00000001aa0001c400000000ffff" + "00")) == nil)
}

@Test func `controller information is decoded`() throws {
  let information = try #require(ControllerInformation(bytes("01000001aa00" + "09" + "f105" + "ff0e0d00" + "d3023c00")))
  #expect(information.address == 0x00AA_0100_0001)
  #expect(information.supported.contains(.lowEnergy))
  #expect(information.current.contains([.powered, .bondable, .lowEnergy]))
  #expect(ControllerInformation(bytes("01000001aa0009f105ff0e0d00d3023c")) == nil)
}

@Test func `a truncated index list is refused`() {
  #expect(indexList([2, 0, 0, 0, 1, 0]) == [0, 1])
  #expect(indexList([0, 0]) == [])
  #expect(indexList([2, 0, 0, 0, 1]) == nil)
  #expect(indexList([0xFF, 0xFF]) == nil)
}

@Test func `the secondary channels show whether extended advertising is supported`() {
  #expect(supportsExtendedAdvertising(bytes("ffff0100fbfb0300")))
  #expect(!supportsExtendedAdvertising(bytes("7f000000fbfb0300")))
  #expect(!supportsExtendedAdvertising([]))
}

@Test func `a status is shown by its name, or by its number if it is unknown`() {
  #expect(ManagementStatus.blockedByRFKill.text == "blocked by rfkill, mgmt status 18")
  #expect(ManagementStatus(rawValue: 0xEE).text == "mgmt status 238")
}

@Test func `connection parameters are loaded for one device`() {
  let command = ManagementCommand.loadConnectionParameters(1, hub, .slow)
  #expect(command.bytes == bytes("350001001100" + "0100" + "01000001aa0001" + "4800600000009001"))
}

@Test func `a kernel updates open connections from management revision 23 on`() {
  #expect(ManagementCommand.readVersion.bytes == bytes("0100ffff0000"))
  #expect(updatesConnections(bytes("011700")) && updatesConnections(bytes("020000")))
  #expect(!updatesConnections(bytes("011600")) && !updatesConnections(bytes("0117")) && !updatesConnections([]))
}

@Test func `a controller is configured for LE 2M but not for LE Coded`() throws {
  #expect(ManagementCommand.readPHYs(0).bytes == bytes("440000000000"))
  #expect(ManagementCommand.setPHYs(0, .twoMegabit).bytes == bytes("450000000400" + "00180000"))
  // The controller supports all LE PHYs and can deselect all except LE 1M. LE 1M and LE Coded are selected.
  let mixed = try #require(PHYConfiguration(bytes("007e0000" + "00780000" + "00660000")))
  #expect(mixed.wanted == PHYs(rawValue: 0x1E00))
  let right = try #require(PHYConfiguration(bytes("007e0000" + "00780000" + "001e0000")))
  #expect(right.wanted == nil)
  let old = try #require(PHYConfiguration(bytes("00060000" + "00000000" + "00060000")))
  #expect(old.wanted == nil && !old.supported.contains(.twoMegabit))
  #expect(PHYConfiguration(bytes("007e0000" + "00780000" + "001e00")) == nil)
}
