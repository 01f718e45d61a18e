import FuzzSupport
@testable import BearerBluetooth

/// Sends a sequence of requests from an unknown client to the GATT server. In the input, each request follows its
/// length. An answer must fit the MTU and belong to its request. The bytes are also decoded as a server's answer to a
/// request of this node.
func fuzzAttributes(_ input: UnsafeRawBufferPointer) {
  var server = AttributeServer(psm: 0xC1)
  var script = Script(input)
  while !script.isOver {
    let request = Array(script.bytes(Int(script.u8())))
    let unitBytes = server.unitBytes
    expect((23...AttributeServer.unitBytesMax).contains(server.unitBytes), "an MTU of \(server.unitBytes)")
    guard let answer = server.respond(to: request) else { continue }
    expect(answer.count <= unitBytes, "an answer of \(answer.count) bytes, where \(unitBytes) fit")
    // The opcode of a response is the opcode of the request plus one. The opcode of an error response is 1. Core
    // Specification 5.4, Vol 3, Part F, 3.4.
    expect(
      answer[0] == 1 ? answer.count == 5 && answer[1] == request[0] : answer[0] == request[0] + 1, "not its answer")
    check(AttributeClient.answer(answer))
  }
  check(AttributeClient.answer(Array(input)))
}

private func check(_ answer: AttributeClient.Answer) {
  if case .psm(let psm) = answer { expect(BluetoothSettings.psmRange.contains(psm), "PSM \(psm)") }
}
