import Testing

@testable import BearerBluetooth

/// The UUID of the Causeway service in SDP's byte order.
private let service = "8a1c00016f5b4e0b9e5cca05e4a10001"

private let record =
  "3552" + "0900000a00010000" + "09000135111c" + service + "090004350c" + "3503190100" + "35051900030805"
  + "0900053503191002" + "090006350909656e09006a090100" + "0901002508" + "4361757365776179"

private func ask(_ request: String, unitBytes: Int = 672) -> String? {
  SDPServer(channel: 5).respond(to: bytes(request), unitBytes: unitBytes).map { hex($0) }
}

@Test func `the browse request of Linux gets the whole record`() {
  // The request of `sdptool browse`. This request searches the public browse group and requests all attributes.
  let request = "060000000f" + "3503191002" + "ffff" + "35050a0000ffff" + "00"
  #expect(ask(request) == "0700000059" + "0056" + "3554" + record + "00")
}

@Test func `a phone that searches for the service gets its protocol list`() {
  let request = "061234001b" + "35111c" + service + "03f0" + "3503090004" + "00"
  let protocols = "090004350c" + "3503190100" + "35051900030805"
  #expect(ask(request) == "0712340018" + "0015" + "35133511" + protocols + "00")
}

@Test func `a service search returns the handle of the record`() {
  #expect(ask("020001" + "0016" + "35111c" + service + "0001" + "00") == "0300010009" + "00010001" + "00010000" + "00")
}

@Test func `an attribute request returns attributes of the record with its handle`() {
  #expect(
    ask("040001" + "000c" + "00010000" + "0010" + "3503090000" + "00") == "050001000d" + "000a" + "35080900000a00010000"
      + "00")
  #expect(ask("040001" + "000c" + "00010001" + "0010" + "3503090000" + "00") == "0100010002" + "0002")
}

@Test func `a search for an absent service returns no record`() {
  let serialPort = "3503191101"
  #expect(ask("020001" + "0008" + serialPort + "0001" + "00") == "0300010005" + "00000000" + "00")
  #expect(ask("060001" + "000d" + serialPort + "ffff" + "3503090004" + "00") == "0700010005" + "0002" + "3500" + "00")
}

@Test func `a record matches only if it contains each UUID of the search pattern`() {
  #expect(ask("020001" + "000b" + "3506190003190100" + "0001" + "00") == "0300010009" + "00010001" + "00010000" + "00")
  #expect(ask("020001" + "000b" + "3506190003191101" + "0001" + "00") == "0300010005" + "00000000" + "00")
}

@Test func `a UUID matches in each of its three lengths`() {
  let found = "0300010009" + "00010001" + "00010000" + "00"
  #expect(ask("020001" + "0008" + "3503190003" + "0001" + "00") == found)
  #expect(ask("020001" + "000a" + "35051a00000003" + "0001" + "00") == found)
  #expect(ask("020001" + "0016" + "35111c0000000300001000800000805f9b34fb" + "0001" + "00") == found)
}

@Test func `a search pattern has one to twelve UUIDs`() {
  let twelve = "3524" + String(repeating: "190003", count: 12)
  #expect(ask("020001" + "0029" + twelve + "0001" + "00") == "0300010009" + "00010001" + "00010000" + "00")
  let thirteen = "3527" + String(repeating: "190003", count: 13)
  #expect(ask("020001" + "002c" + thirteen + "0001" + "00") == "0100010002" + "0003")
  #expect(ask("020001" + "0005" + "3500" + "0001" + "00") == "0100010002" + "0003")
}

@Test(arguments: [(7, 672), (16, 672), (65535, 48), (65535, 0), (65535, 100)])
func `a long response is split within the limits of the client and its channel`(_ byteCount: Int, _ unitBytes: Int)
  throws
{
  let server = SDPServer(channel: 5)
  var whole: [UInt8] = []
  var continuation: [UInt8] = []
  repeat {
    let parameters = bytes("3503191002") + [UInt8(byteCount >> 8), UInt8(byteCount & 255)] + bytes("35050a0000ffff")
    let request = SDP.pdu(6, 1, parameters + [UInt8(continuation.count)] + continuation)
    let answer = try #require(server.respond(to: request, unitBytes: unitBytes))
    #expect(answer.count <= max(unitBytes, 48))
    let count = Int(answer[5]) << 8 | Int(answer[6])
    #expect(count > 0 && count <= byteCount)
    whole += answer[7..<(7 + count)]
    continuation = Array(answer[(8 + count)...])
    #expect(Int(answer[7 + count]) == continuation.count)
  } while !continuation.isEmpty
  #expect(hex(whole) == "3554" + record)
}

@Test func `an unknown continuation state is refused`() {
  let request = "35031910020010" + "35050a0000ffff"
  let refusal = "0100010002" + "0005"
  #expect(ask("060001" + "0011" + request + "020000") == refusal)
  #expect(ask("060001" + "0011" + request + "020056") == refusal)
  #expect(ask("060001" + "0011" + request + "02ffff") == refusal)
  #expect(ask("060001" + "0010" + request + "0110") == refusal)
  #expect(ask("020001" + "000a" + "3503190003" + "0001" + "020001") == refusal)
}

@Test func `a request for too few bytes is refused`() {
  #expect(ask("060001" + "000f" + "35031910020006" + "35050a0000ffff" + "00") == "0100010002" + "0003")
  #expect(ask("020001" + "0008" + "3503190003" + "0000" + "00") == "0100010002" + "0003")
}

@Test func `an invalid attribute list is refused`() {
  let refusal = "0100010002" + "0003"
  #expect(ask("060001" + "000a" + "3503191002ffff" + "3500" + "00") == refusal)
  #expect(ask("060001" + "000c" + "3503191002ffff" + "35020804" + "00") == refusal)
  #expect(ask("060001" + "000d" + "3503191002ffff" + "3503190004" + "00") == refusal)
  #expect(ask("060001" + "000f" + "3503191002ffff" + "35050affff0000" + "00") == refusal)
}

@Test func `a request with a wrong length is refused`() {
  #expect(ask("060001" + "0010" + "3503191002ffff" + "35050a0000ffff" + "00") == "0100010002" + "0004")
  #expect(ask("060001" + "000e" + "3503191002ffff" + "35050a0000ffff" + "00") == "0100010002" + "0004")
}

@Test func `every truncated request is refused, and every changed byte is answered`() {
  let server = SDPServer(channel: 5)
  let requests = [
    "35111c" + service + "0001" + "00", "00010000" + "0010" + "3503090000" + "00",
    "3503191002" + "ffff" + "35050a0000ffff" + "00",
  ]
  for (kind, parameters) in zip([UInt8(2), 4, 6], requests.map { bytes($0) }) {
    for count in 0..<parameters.count {
      let answer = server.respond(to: SDP.pdu(kind, 7, Array(parameters.prefix(count))), unitBytes: 48)
      #expect(answer == bytes("01000700020003"), "kind \(kind) cut to \(count)")
    }
    let whole = SDP.pdu(kind, 7, parameters)
    for count in 0..<5 { #expect(server.respond(to: Array(whole.prefix(count)), unitBytes: 48) == nil) }
    for index in 5..<whole.count {
      for value in UInt8.min...UInt8.max {
        var changed = whole
        changed[index] = value
        let answer = server.respond(to: changed, unitBytes: 48)
        #expect(answer?[0] == 1 || answer?[0] == kind + 1)
        #expect(answer?.count ?? 0 <= 48)
      }
    }
  }
}

@Test func `a response or an empty PDU is not answered`() {
  #expect(ask("0100010002" + "0003") == nil)
  #expect(ask("0700010005" + "0002350000") == nil)
  #expect(ask("") == nil)
  #expect(ask("0800010000") == "0100010002" + "0003")
}

// MARK: A server with the records of Causeway and of a network access point

private let network =
  "356b" + "0900000a00010001" + "0900013503191116" + "090004351b" + "350619010009000f"
  + "351119000f09010035090908000908060986dd" + "0900053503191002" + "090006350909656e09006a090100"
  + "09000935083506191116090100" + "09010025074e6574776f726b" + "09030a090000" + "09030b090005"

private func askBoth(_ request: String) -> String? {
  SDPServer(channel: 5, hasNetwork: true).respond(to: bytes(request), unitBytes: 672).map { hex($0) }
}

@Test func `a phone that searches for a network gets its record`() {
  let request = "060001000f" + "3503191116" + "ffff" + "35050a0000ffff" + "00"
  #expect(askBoth(request) == "0700010072" + "006f" + "356d" + network + "00")
  #expect(ask(request) == "0700010005" + "0002" + "3500" + "00")
}

@Test func `a browse request gets both records`() {
  let request = "060001000f" + "3503191002" + "ffff" + "35050a0000ffff" + "00"
  #expect(askBoth(request) == "07000100c6" + "00c3" + "35c1" + record + network + "00")
}

@Test func `a search returns both handles, but no more than requested`() {
  #expect(
    askBoth("0200010008" + "3503190100" + "0005" + "00") == "030001000d" + "00020002" + "0001000000010001" + "00")
  #expect(askBoth("0200010008" + "3503190100" + "0001" + "00") == "0300010009" + "00010001" + "00010000" + "00")
  #expect(askBoth("0200010008" + "3503191116" + "0005" + "00") == "0300010009" + "00010001" + "00010001" + "00")
}

@Test func `an attribute request selects one of two records by its handle`() {
  #expect(
    askBoth("040001000c" + "00010001" + "0010" + "3503090100" + "00") == "0500010011" + "000e" + "350c"
      + "09010025074e6574776f726b" + "00")
  #expect(askBoth("040001000c" + "00010002" + "0010" + "3503090100" + "00") == "0100010002" + "0002")
  #expect(askBoth("040001000c" + "0000ffff" + "0010" + "3503090100" + "00") == "0100010002" + "0002")
}
