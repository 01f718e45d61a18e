import Bearer
import Primitives
import Testing

@testable import BearerBluetooth

@Test func `an adapter setting is written as in the configuration`() {
  #expect(AdapterChoice.automatic.text == "auto")
  #expect(AdapterChoice.index(3).text == "hci3")
  #expect(AdapterChoice.address(0xB827_EB00_000A).text == "B8:27:EB:00:00:0A")
}

@Test func `the error of a setting out of range states the valid range`() {
  var settings = BluetoothSettings()
  #expect(settings.problem == nil)
  settings.psm = 0x0025
  #expect(settings.problem == "bluetooth psm 37 is not an LE dynamic PSM: choose 128 to 255")
  settings = BluetoothSettings()
  settings.linksMax = 0
  #expect(settings.problem == "bluetooth links 0 is out of range: choose 1 to 32")
}

@Test func `an address is encoded least significant byte first`() throws {
  let endpoint = BluetoothEndpoint(address: 0x0102_0304_0506, isRandom: true)
  #expect(endpoint.wireBytes == [6, 5, 4, 3, 2, 1])
  #expect(endpoint.wireType == 2)
  #expect(endpoint.text == "01:02:03:04:05:06")
  let bytes = endpoint.wireBytes + [2]
  var reader = ByteReader(bytes.span.bytes, orThrow: TooShort())
  let address = try reader.typedAddress()
  #expect(address.endpoint == endpoint)
}
