import Testing

@testable import Causeway

private func refusal(_ body: () throws(CausewayError) -> Void) -> CausewayError? {
  do { try body() } catch { return error }
  return nil
}

@Test(arguments: ["chat", "a", "4k", "photo-wall", "abcdefghijklmno"])
func `a service type that RFC 6335 allows is accepted`(type: String) {
  #expect(refusal { () throws(CausewayError) in try Syntax.serviceType(type) } == nil)
}

@Test(arguments: ["", "-a", "a-", "a--b", "A", "a_b", "42", "abcdefghijklmnop", "ä"])
func `any other service type is refused with the rule`(type: String) {
  let error = refusal { () throws(CausewayError) in try Syntax.serviceType(type) }
  #expect(error?.code == .invalidParameter && error?.text.contains("RFC 6335") == true)
}

@Test func `the error of an illegal pair contains the pair or the broken rule`() throws {
  for (info, word) in [
    (["": "x"], "=x"), (["a=b": "x"], "a=b=x"), (["ä": "x"], "ä=x"),
    (["k": String(repeating: "x", count: 254)], "255 bytes"), (["k": "a\nb"], "control"),
  ] {
    let error = refusal { () throws(CausewayError) in _ = try Syntax.pairs(info) }
    #expect(error?.reason == .invalid && error?.text.contains(word) == true, "\(info)")
  }
  #expect(try Syntax.pairs(["b": "2", "a": String(repeating: "x", count: 253)]).map(\.utf8.count) == [255, 3])
}

@Test func `every error reason maps to a known code`() {
  let expected: [UInt8: CausewayError.Code] = [
    1: .unsupported, 2: .notConnected, 3: .invalidParameter, 4: .unavailable, 5: .unavailable, 6: .unavailable,
    7: .unavailable, 8: .unsupported, 9: .invalidParameter, 10: .unavailable, 11: .unknown, 255: .unknown,
  ]
  for (code, known) in expected { #expect(CausewayError(refusal: code, text: "").code == known, "code \(code)") }
}
