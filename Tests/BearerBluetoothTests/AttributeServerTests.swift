import Testing

@testable import BearerBluetooth

private func ask(_ request: [UInt8], unitBytes: UInt8 = 247) -> [UInt8]? {
  var server = AttributeServer(psm: 0x0081)
  _ = server.respond(to: [0x02, unitBytes, 0])
  return server.respond(to: request)
}

private let service = CausewayService.uuid
private let characteristic = CausewayService.psmCharacteristic

@Test func `the MTU is the smaller one of both ends and at least 23`() {
  var server = AttributeServer(psm: 0x0081)
  #expect(server.unitBytes == 23)
  #expect(server.respond(to: [0x02, 0x05, 0x02]) == [0x03, 247, 0])
  #expect(server.unitBytes == 247)
  _ = server.respond(to: [0x02, 1, 0])
  #expect(server.unitBytes == 23)
}

@Test func `primary services are listed by the size of their UUIDs`() {
  #expect(ask([0x10, 1, 0, 0xFF, 0xFF, 0x00, 0x28]) == [0x11, 6, 1, 0, 5, 0, 0x00, 0x18])
  #expect(ask([0x10, 6, 0, 0xFF, 0xFF, 0x00, 0x28]) == [0x11, 20, 6, 0, 8, 0] + service)
  #expect(ask([0x10, 9, 0, 0xFF, 0xFF, 0x00, 0x28]) == [0x01, 0x10, 9, 0, 0x0A])
}

@Test func `only service declarations are accepted as group types`() {
  #expect(ask([0x10, 1, 0, 0xFF, 0xFF, 0x03, 0x28]) == [0x01, 0x10, 1, 0, 0x10])
  #expect(ask([0x10, 1, 0, 0xFF, 0xFF, 0x01, 0x28]) == [0x01, 0x10, 1, 0, 0x0A])
}

@Test func `the service is found by its UUID`() {
  #expect(ask([0x06, 1, 0, 0xFF, 0xFF, 0x00, 0x28] + service) == [0x07, 6, 0, 8, 0])
  #expect(ask([0x06, 7, 0, 0xFF, 0xFF, 0x00, 0x28] + service) == [0x01, 0x06, 7, 0, 0x0A])
  #expect(ask([0x06, 1, 0, 0xFF, 0xFF, 0x00, 0x28] + characteristic) == [0x01, 0x06, 1, 0, 0x0A])
}

@Test func `the characteristic is declared readable with its value handle`() {
  #expect(ask([0x08, 6, 0, 8, 0, 0x03, 0x28]) == [0x09, 21, 7, 0, 0x02, 8, 0] + characteristic)
}

@Test func `declarations of one size are listed together`() {
  #expect(
    ask([0x08, 1, 0, 0xFF, 0xFF, 0x03, 0x28])
      == [0x09, 7, 2, 0, 0x02, 3, 0, 0x00, 0x2A, 4, 0, 0x02, 5, 0, 0x01, 0x2A])
}

@Test func `the PSM is read by type in one round trip with the default unit`() {
  var server = AttributeServer(psm: 0x00F1)
  let request = AttributeClient.psmRequest
  #expect(request == [0x08, 0x01, 0x00, 0xFF, 0xFF] + characteristic)
  #expect(request.count <= AttributeServer.defaultUnitBytes)
  let answer = server.respond(to: request)
  #expect(answer == [0x09, 4, 8, 0, 0xF1, 0x00])
  #expect(AttributeClient.answer(answer ?? []) == .psm(0x00F1))
}

@Test func `the PSM is read by handle`() {
  #expect(ask([0x0A, 8, 0]) == [0x0B, 0x81, 0x00])
  #expect(ask([0x0C, 8, 0, 1, 0]) == [0x0D, 0x00])
  #expect(ask([0x0C, 8, 0, 2, 0]) == [0x0D])
  #expect(ask([0x0C, 8, 0, 3, 0]) == [0x01, 0x0C, 8, 0, 0x07])
  #expect(ask([0x0A, 9, 0]) == [0x01, 0x0A, 9, 0, 0x01])
  #expect(ask([0x0A, 0, 0]) == [0x01, 0x0A, 0, 0, 0x01])
}

@Test func `the device name is read by its short and its long UUID`() {
  let name = Array("Causeway".utf8)
  let long: [UInt8] = [0xFB, 0x34, 0x9B, 0x5F, 0x80, 0, 0, 0x80, 0, 0x10, 0, 0, 0x00, 0x2A, 0, 0]
  #expect(ask([0x08, 1, 0, 0xFF, 0xFF, 0x00, 0x2A]) == [0x09, 10, 3, 0] + name)
  #expect(ask([0x08, 1, 0, 0xFF, 0xFF] + long) == [0x09, 10, 3, 0] + name)
}

@Test func `Find Information lists attribute types of one size at a time`() {
  #expect(ask([0x04, 6, 0, 0xFF, 0xFF]) == [0x05, 1, 6, 0, 0x00, 0x28, 7, 0, 0x03, 0x28])
  #expect(ask([0x04, 8, 0, 0xFF, 0xFF]) == [0x05, 2, 8, 0] + characteristic)
  #expect(ask([0x04, 9, 0, 0xFF, 0xFF]) == [0x01, 0x04, 9, 0, 0x0A])
}

@Test func `no response is longer than the MTU`() throws {
  let requests: [[UInt8]] = [
    [0x04, 1, 0, 0xFF, 0xFF], [0x10, 6, 0, 0xFF, 0xFF, 0x00, 0x28], [0x08, 1, 0, 0xFF, 0xFF, 0x03, 0x28],
    [0x08, 6, 0, 0xFF, 0xFF, 0x03, 0x28], [0x0A, 7, 0], [0x06, 1, 0, 0xFF, 0xFF, 0x00, 0x28] + service,
  ]
  for request in requests { #expect(try #require(ask(request, unitBytes: 23)).count <= 23) }
  #expect(ask([0x04, 1, 0, 0xFF, 0xFF], unitBytes: 23)?.count == 22)
}

@Test func `handles that are zero or reversed are invalid`() {
  for opcode: UInt8 in [0x04, 0x06, 0x08, 0x10] {
    #expect(ask([opcode, 0, 0, 5, 0, 0x00, 0x28]) == [0x01, opcode, 0, 0, 0x01])
    #expect(ask([opcode, 6, 0, 5, 0, 0x00, 0x28]) == [0x01, opcode, 6, 0, 0x01])
  }
}

@Test func `every truncated request is an invalid PDU`() {
  let requests: [[UInt8]] = [
    [0x02, 23, 0], [0x04, 1, 0, 9, 0], [0x08, 1, 0, 9, 0, 0x03, 0x28], [0x0A, 1, 0], [0x0C, 1, 0, 0, 0],
    [0x10, 1, 0, 9, 0, 0x00, 0x28], [0x12, 1, 0], [0x06, 1, 0, 9, 0, 0x00, 0x28],
  ]
  for request in requests {
    for length in 1..<request.count {
      #expect(ask(Array(request.prefix(length))) == [0x01, request[0], 0, 0, 0x04], "\(request) cut to \(length)")
    }
  }
}

@Test func `no attribute is writable`() {
  #expect(ask([0x12, 8, 0, 1]) == [0x01, 0x12, 8, 0, 0x03])
  #expect(ask([0x12, 99, 0, 1]) == [0x01, 0x12, 99, 0, 0x01])
}

@Test func `unknown requests are refused, and commands, confirmations and responses are not answered`() {
  #expect(ask([0x0E, 1, 0, 2, 0]) == [0x01, 0x0E, 0, 0, 0x06])
  #expect(ask([0x16, 1, 0]) == [0x01, 0x16, 0, 0, 0x06])
  #expect(ask([]) == nil)
  #expect(ask([0x52, 8, 0, 1]) == nil)
  #expect(ask([0xD2, 8, 0, 1]) == nil)
  #expect(ask([0x1E]) == nil)
  #expect(ask([0x0B, 1]) == nil)
  #expect(ask([0x01, 0x08, 1, 0, 0x0A]) == nil)
}

@Test func `a response without a valid PSM is malformed`() {
  #expect(AttributeClient.answer([0x09, 4, 8, 0, 0x25, 0x00]) == .malformed)
  #expect(AttributeClient.answer([0x09, 4, 8, 0, 0x81, 0x01]) == .malformed)
  #expect(AttributeClient.answer([0x09, 4, 8, 0, 0x81]) == .malformed)
  #expect(AttributeClient.answer([0x09, 3, 8, 0, 0x81]) == .malformed)
  #expect(AttributeClient.answer([0x0B, 0x81, 0]) == .malformed)
  #expect(AttributeClient.answer([]) == .malformed)
  #expect(AttributeClient.answer([0x01, 0x08, 1, 0, 0x0A]) == .refused(code: 0x0A))
  #expect(AttributeClient.answer([0x01, 0x10, 1, 0, 0x0A]) == .malformed)
}
