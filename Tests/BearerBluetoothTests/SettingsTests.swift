import Bearer
import Testing

@testable import BearerBluetooth

@Test func anAdapterIsNamedByIndexAddressOrAuto() {
  #expect(AdapterChoice.parse("auto") == .automatic)
  #expect(AdapterChoice.parse("hci0") == .index(0))
  #expect(AdapterChoice.parse("hci65534") == .index(65534))
  #expect(AdapterChoice.parse("b8:27:EB:00:00:0a") == .address(0xB827_EB00_000A))
}

@Test(arguments: [
  "", "automatic", "hci", "hci-1", "hci65535", "hci999999", "hci0x", "eth0", "B8:27:EB:00:00", "B8-27-EB-00-00-0A",
  "B8:27:EB:00:00:0G", "B8:27:EB:00:00:0A ",
])
func anythingElseIsNoAdapter(_ text: String) {
  #expect(AdapterChoice.parse(text) == nil)
}

@Test func anAdapterChoiceIsWrittenAsItIsRead() {
  for text in ["auto", "hci3", "B8:27:EB:00:00:0A"] { #expect(AdapterChoice.parse(text)?.text == text) }
}

@Test func settingsOutOfRangeSayWhatToWrite() {
  var settings = BluetoothSettings()
  #expect(settings.problem == nil)
  settings.psm = 0x0025
  #expect(settings.problem == "bluetooth psm 37 is not an LE dynamic PSM: choose 128 to 255")
  settings = BluetoothSettings()
  settings.linksMax = 0
  #expect(settings.problem == "bluetooth links 0 is out of range: choose 1 to 32")
}

@Test func anAddressTravelsLeastSignificantByteFirst() {
  let endpoint = BluetoothEndpoint(address: 0x0102_0304_0506, isRandom: true)
  #expect(endpoint.wireBytes == [6, 5, 4, 3, 2, 1])
  #expect(endpoint.wireType == 2)
  #expect(endpoint.text == "01:02:03:04:05:06")
  var reader = ByteReader(endpoint.wireBytes + [2])
  #expect(reader.typedAddress()?.endpoint == endpoint)
}
