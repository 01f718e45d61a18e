import FuzzSupport
@testable import WiFiDirect

/// Parses any bytes from wpa_supplicant as an event and as the reply to a command. Events and replies of wpa_supplicant
/// contain names and passphrases that other devices chose.
func fuzzSupplicant(_ input: UnsafeRawBufferPointer) {
  let message = Array(input)
  let parsed = SupplicantParser.parse(message[...])
  // The result must be the same at another position of a longer buffer.
  let shifted = [0x3C, 0x33, 0x3E] + message
  expect(SupplicantParser.parse(shifted[3...]) == parsed, "read otherwise at another offset")
  if case .groupStarted(let group) = parsed?.event {
    expect((1...15).contains(group.interface.utf8.count), "an interface of \(group.interface.utf8.count) bytes")
  }
  let reply = SupplicantReply(message[...])
  expect(!(reply.isOK && reply.isFailure), "OK and a failure")
  expect(reply.lines.count <= message.count, "more lines than bytes")
  _ = reply.value("wpa_state")
  _ = reply.text
}
