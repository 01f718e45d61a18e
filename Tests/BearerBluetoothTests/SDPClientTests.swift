import Testing

@testable import BearerBluetooth

private let service = "8a1c00016f5b4e0b9e5cca05e4a10001"
private let protocols = "090004350c" + "3503190100" + "3505190003080c"

/// The client's next step after a complete answer with these attribute lists.
private func result(_ lists: String) -> SDPClient.Step {
  var client = SDPClient()
  _ = client.begin()
  let parameters = bytes(lists)
  return client.received(SDP.pdu(7, 1, [0, UInt8(parameters.count)] + parameters + [0]))
}

@Test func `the client sends one search for the protocol list`() {
  var client = SDPClient()
  #expect(hex(client.begin()) == "060001001b" + "35111c" + service + "0400" + "3503090004" + "00")
}

@Test func `the RFCOMM channel is read from the protocol list`() {
  #expect(result("35133511" + protocols) == .channel(12))
}

@Test func `the first record with a channel is used`() {
  #expect(result("351c" + "3507" + "0900043502" + "3500" + "3511" + protocols) == .channel(12))
}

@Test func `attributes before the protocol list are skipped`() {
  #expect(result("351b3519" + "0900000a00010000" + protocols) == .channel(12))
}

@Test func `an absent service and a refused search are different results`() {
  #expect(result("3500") == .absent)
  var client = SDPClient()
  _ = client.begin()
  #expect(client.received(bytes("0100010002" + "0003")) == .refused(code: 3))
}

@Test(arguments: ["00", "1f", "ff"])
func `an RFCOMM channel out of range counts as absent`(_ channel: String) {
  #expect(result("35133511" + "090004350c" + "3503190100" + "350519000308" + channel) == .absent)
}

@Test func `a response in several parts is reassembled`() {
  var client = SDPClient()
  _ = client.begin()
  let whole = bytes("35133511" + protocols)
  let first = client.received(SDP.pdu(7, 1, [0, 9] + whole[..<9] + [2, 0xAA, 0xBB]))
  #expect(
    first == .ask(bytes("060002001d" + "35111c" + service + "0400" + "3503090004" + "02aabb")))
  #expect(client.received(SDP.pdu(7, 2, [0, 12] + whole[9...] + [0])) == .channel(12))
}

@Test func `a response is limited in bytes and in parts`() {
  var client = SDPClient()
  _ = client.begin()
  let large = [UInt8](repeating: 0, count: 600)
  guard case .ask = client.received(SDP.pdu(7, 1, [2, 88] + large + [1, 0])) else {
    Issue.record("the first part fits")
    return
  }
  #expect(client.received(SDP.pdu(7, 2, [2, 88] + large + [1, 0])) == .malformed)

  var patient = SDPClient()
  _ = patient.begin()
  var rounds = 0
  while case .ask = patient.received(SDP.pdu(7, UInt16(rounds + 1), [0, 0, 1, 0])) { rounds += 1 }
  #expect(rounds == SDPClient.partsMax - 1)
}

@Test func `a response to another request is malformed`() {
  for answer in ["0700020005" + "0002350000", "0500010005" + "0002350000", "0300010005" + "0000000000"] {
    var client = SDPClient()
    _ = client.begin()
    #expect(client.received(bytes(answer)) == .malformed)
  }
}

@Test func `every truncated response is malformed`() {
  let whole = bytes("0700010018" + "0015" + "35133511" + protocols + "00")
  for count in 0..<whole.count {
    var client = SDPClient()
    _ = client.begin()
    #expect(client.received(Array(whole.prefix(count))) == .malformed, "\(count) bytes")
  }
  var client = SDPClient()
  _ = client.begin()
  #expect(client.received(whole) == .channel(12))
}

@Test func `every truncated attribute list is malformed`() {
  let whole = "35133511" + protocols
  for count in stride(from: 0, to: whole.utf8.count, by: 2) {
    #expect(result(String(whole.prefix(count))) == .malformed, "\(count / 2) bytes")
  }
}

@Test func `a response with a changed byte yields no invalid channel`() {
  let whole = bytes("0700010018" + "0015" + "35133511" + protocols + "00")
  for index in whole.indices {
    for value in UInt8.min...UInt8.max {
      var changed = whole
      changed[index] = value
      var client = SDPClient()
      _ = client.begin()
      if case .channel(let channel) = client.received(changed) { #expect(SDPClient.channels.contains(channel)) }
    }
  }
}

@Test func `the client understands the responses of Causeway's own server`() throws {
  for unitBytes in [48, 672] {
    let server = SDPServer(channel: 30)
    var client = SDPClient()
    var request = client.begin()
    var last = SDPClient.Step.absent
    while true {
      last = client.received(try #require(server.respond(to: request, unitBytes: unitBytes)))
      guard case .ask(let next) = last else { break }
      request = next
    }
    #expect(last == .channel(30))
  }
}
