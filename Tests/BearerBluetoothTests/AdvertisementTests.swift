import Testing

@testable import BearerBluetooth

@Test func `the advertisement contains the service UUID and leaves room for the flags`() {
  #expect(
    CausewayService.advertisement == [
      17, 0x07, 0x01, 0x00, 0xA1, 0xE4, 0x05, 0xCA, 0x5C, 0x9E, 0x0B, 0x4E, 0x5B, 0x6F, 0x01, 0x00, 0x1C, 0x8A,
    ])
  #expect(CausewayService.advertisement.count + 3 <= 31)
}

@Test func `the scan response contains the hint, most significant byte first`() {
  let response = CausewayService.scanResponse(.init(hint: 0x0102_0304_0506_0708))
  #expect(response.count == 26)
  #expect(response.prefix(2) == [25, 0x21])
  #expect(response.suffix(8) == [1, 2, 3, 4, 5, 6, 7, 8])
}

@Test func `an advertisement together with its scan response yields the hint`() {
  let flags: [UInt8] = [2, 1, 6]
  let data = flags + CausewayService.advertisement + CausewayService.scanResponse(.init(hint: 0xFEDC_BA98_7654_3210))
  #expect(CausewayService.claim(in: data) == .init(hint: 0xFEDC_BA98_7654_3210))
}

@Test func `the scan response of a leaf has one byte more`() {
  let response = CausewayService.scanResponse(.init(hint: 0x0102_0304_0506_0708, relays: false))
  #expect(response == [26, 0x21] + CausewayService.uuid + [1, 2, 3, 4, 5, 6, 7, 8, 1])
  #expect(CausewayService.claim(in: response) == .init(hint: 0x0102_0304_0506_0708, relays: false))
}

@Test func `unknown flags and bytes of the scan response are ignored`() {
  let head = CausewayService.uuid + [1, 2, 3, 4, 5, 6, 7, 8]
  #expect(CausewayService.claim(in: [26, 0x21] + head + [0xFE]) == .init(hint: 0x0102_0304_0506_0708))
  #expect(
    CausewayService.claim(in: [28, 0x21] + head + [0xFF, 7, 7]) == .init(hint: 0x0102_0304_0506_0708, relays: false))
}

@Test func `an advertisement of the service without a scan response has no hint`() {
  #expect(CausewayService.claim(in: [2, 1, 6] + CausewayService.advertisement) == .init(hint: 0))
}

@Test func `the service UUID is found after another UUID in an incomplete list`() {
  let other = [UInt8](repeating: 0x55, count: 16)
  #expect(CausewayService.claim(in: [33, 0x06] + other + CausewayService.uuid) == .init(hint: 0))
}

@Test func `an advertisement of another service is ignored`() {
  var other = CausewayService.advertisement
  other[2] = 0x02
  #expect(CausewayService.claim(in: other) == nil)
}

@Test func `service data of another length is ignored`() {
  #expect(CausewayService.claim(in: [24, 0x21] + CausewayService.uuid + [1, 2, 3, 4, 5, 6, 7]) == nil)
}

@Test func `a structure that extends past the end is ignored and ends parsing`() {
  let advertisement = CausewayService.advertisement
  for length in 0..<advertisement.count {
    #expect(CausewayService.claim(in: Array(advertisement.prefix(length))) == nil)
  }
  #expect(CausewayService.claim(in: advertisement + [200, 0x21, 1]) == .init(hint: 0))
}

@Test func `a structure of length zero ends parsing`() {
  #expect(CausewayService.claim(in: [0] + CausewayService.advertisement) == nil)
}

@Test func `an inquiry response contains the hint in a UUID of its own`() {
  // The UUID contains the hint. This UUID begins with 8A1C0002 for a relay and with 8A1C0003 for a leaf, which does not
  // forward.
  let relay = CausewayService.claimUUID(.init(hint: 0x0123_4567_89AB_CDEF))
  #expect(hex(relay.reversed()) == "8a1c00026f5b4e0b0123456789abcdef")
  let leaf = CausewayService.claimUUID(.init(hint: 0x0123_4567_89AB_CDEF, relays: false))
  #expect(hex(leaf.reversed()) == "8a1c00036f5b4e0b0123456789abcdef")
}

@Test(arguments: [true, false]) func `the hint and the role are read from an inquiry response`(relays: Bool) {
  // The form that Linux 6.12 sends: the name, the list of 128-bit UUIDs, the class of device.
  let claim = CausewayService.Claim(hint: 0x0123_4567_89AB_CDEF, relays: relays)
  let uuids = CausewayService.uuid + CausewayService.claimUUID(claim)
  let answer = bytes("09094361757365776179") + [33, 0x07] + uuids + bytes("040d000302")
  #expect(CausewayService.claim(in: answer) == claim)
  for length in 0..<44 { #expect(CausewayService.claim(in: Array(answer.prefix(length)))?.hint ?? 0 == 0) }
}

@Test func `a hint UUID without the service UUID is ignored`() {
  let claim = CausewayService.claimUUID(.init(hint: 7))
  #expect(CausewayService.claim(in: [17, 0x07] + claim) == nil)
  var other = claim
  other[12] = 4
  #expect(CausewayService.claim(in: [33, 0x07] + CausewayService.uuid + other) == .init(hint: 0))
}
