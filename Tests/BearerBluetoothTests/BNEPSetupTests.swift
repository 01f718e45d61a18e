import Testing

@testable import BearerBluetooth

private let base = "00001000800000805f9b34fb"

private func verdict(_ unit: String) -> BNEPSetup.Verdict { BNEPSetup.verdict(on: bytes(unit)) }

@Test(arguments: ["010102" + "1116" + "1115", "010104" + "00001116" + "00001115"])
func `a setup request for a network access point is accepted`(_ request: String) {
  #expect(verdict(request) == .welcome)
}

@Test func `a setup request with 128-bit UUIDs is accepted`() {
  #expect(verdict("010110" + "00001116" + base + "00001115" + base) == .welcome)
}

@Test func `extensions of a setup request are left to the kernel`() {
  #expect(verdict("810102" + "1116" + "1115" + "0005" + "0300040800") == .welcome)
  #expect(verdict("810102" + "1116" + "1115") == .malformed)
}

@Test func `setup requests for other roles are refused with their error codes`() {
  #expect(verdict("010102" + "1117" + "1115") == .refused(.destination))
  #expect(verdict("010102" + "1115" + "1115") == .refused(.destination))
  #expect(verdict("010102" + "1116" + "1116") == .refused(.source))
  #expect(verdict("010102" + "1116" + "1117") == .refused(.source))
  #expect(verdict("010104" + "00011116" + "00001115") == .refused(.destination))
  #expect(verdict("010104" + "00001116" + "00011115") == .refused(.source))
  #expect(verdict("010110" + "00001116" + base + "00001115" + "00001000800000805f9b34fc") == .refused(.source))
}

@Test func `UUIDs of other sizes are refused`() {
  for size in UInt8.min...UInt8.max where ![2, 4, 16].contains(size) {
    let unit = [1, 1, size] + [UInt8](repeating: 0, count: 2 * Int(size))
    #expect(BNEPSetup.verdict(on: unit) == .refused(.uuidSize))
  }
}

@Test func `a message other than a setup request is malformed`() {
  for unit in ["", "01", "0101", "000102" + "1116" + "1115", "010002" + "1116" + "1115", "010202" + "1116" + "1115"] {
    #expect(verdict(unit) == .malformed, "\(unit)")
  }
}

@Test func `every truncated or extended request is malformed, and no changed byte is accepted`() {
  for request in ["01010211161115", "01010400001116" + "00001115", "01011000001116" + base + "00001115" + base] {
    let whole = bytes(request)
    for count in 0..<whole.count { #expect(BNEPSetup.verdict(on: Array(whole[..<count])) == .malformed) }
    #expect(BNEPSetup.verdict(on: whole + [0]) == .malformed)
    for index in whole.indices {
      for value in UInt8.min...UInt8.max where value != whole[index] {
        var changed = whole
        changed[index] = value
        #expect(BNEPSetup.verdict(on: changed) != .welcome)
      }
    }
  }
}

@Test func `a response contains the error code of the refusal`() {
  #expect(hex(BNEPSetup.response(.destination)) == "01020001")
  #expect(hex(BNEPSetup.response(.source)) == "01020002")
  #expect(hex(BNEPSetup.response(.uuidSize)) == "01020003")
  #expect(hex(BNEPSetup.response(.notAllowed)) == "01020004")
}
