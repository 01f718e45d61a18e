import FuzzSupport
@testable import BearerBluetooth

/// Sends requests from an unknown client to the SDP server. In the input, each request follows the MTU of its channel
/// and its length. The bytes are also decoded as answers to a request of this node.
func fuzzServiceRecords(_ input: UnsafeRawBufferPointer) {
  let server = SDPServer(channel: 5, hasNetwork: true)
  var script = Script(input)
  while !script.isOver {
    let unitBytes = Int(script.u8())
    let request = Array(script.bytes(Int(script.u16() & 0x3FF)))
    guard let answer = server.respond(to: request, unitBytes: unitBytes) else { continue }
    expect(
      answer.count <= max(unitBytes, SDP.unitBytesMin), "an answer of \(answer.count) bytes, where \(unitBytes) fit")
    expect(answer[0] == 1 || answer[0] == request[0] + 1, "not its answer")
    expect(answer[1] == request[1] && answer[2] == request[2], "another transaction")
    expect(Int(answer[3]) << 8 | Int(answer[4]) == answer.count - SDP.headerBytes, "a length that lies")
  }
  var client = SDPClient()
  _ = client.begin()
  var answers = Script(input)
  while !answers.isOver {
    switch client.received(Array(answers.bytes(Int(answers.u16() & 0x3FF)))) {
    case .ask(let request): expect(request.count <= SDPServer.requestBytesMax, "a long request")
    case .channel(let channel): expect(SDPClient.channels.contains(channel), "channel \(channel)")
    case .absent, .refused, .malformed: return
    }
  }
}
