import FuzzSupport
@testable import BearerBluetooth

/// Handles any bytes as the first BNEP packet that an unknown client sends to the network access point.
func fuzzNetworkSetups(_ input: UnsafeRawBufferPointer) {
  let unit = Array(input.prefix(BNEPSetup.requestBytesMax + 1))
  switch BNEPSetup.verdict(on: unit) {
  case .malformed: break
  case .refused(let refusal): expect(BNEPSetup.response(refusal).count == 4, "a response of another length")
  case .welcome:
    expect(unit.count >= 7 && unit[1] == 1, "no request is welcome")
    let size = Int(unit[2]), low = size == 2 ? 2 : 4
    expect(Array(unit[(3 + low - 2)..<(3 + low)]) == [0x11, 0x16], "another role is wanted")
    expect(Array(unit[(3 + size + low - 2)..<(3 + size + low)]) == [0x11, 0x15], "by another role")
  }
}
