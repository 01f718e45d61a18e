import Frame
import Primitives
import TestSupport
import Testing

private func isText(_ bytes: [UInt8]) -> Bool { isPlainText(bytes.span.bytes) }
private func isService(_ text: String) -> Bool { isServiceType([UInt8](text.utf8).span.bytes) }
private func isPair(_ bytes: [UInt8]) -> Bool { isInfoPair(bytes.span.bytes) }
private func nameRefusal(_ bytes: [UInt8]) -> FrameError? {
  refusal { () throws(FrameError) in _ = try DisplayName(bytes.span.bytes) }
}

@Test(arguments: [
  "20", "7e", "c2a0", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf", "f0908080", "f48fbfbf", "e3818261c3a9f09f9a80",
]) func `UTF-8 without control characters is a valid text`(digits: String) {
  #expect(isText(hex(digits)))
}

@Test(arguments: ["00", "0a", "1f", "7f", "c280", "c285", "c29f", "6100"])
func `a text with control characters is invalid`(digits: String) {
  #expect(!isText(hex(digits)))
}

@Test(arguments: [
  // In order: a lone continuation byte, overlong forms, surrogates, scalars above U+10FFFF, bytes that never occur in
  // UTF-8.
  "80", "bf", "c0af", "c1bf", "e08080", "e09fbf", "f0808080", "f08fbfbf", "eda080", "edbfbf", "f4908080", "f5808080",
  "fe",
  "ff",
]) func `bytes that are not UTF-8 are no valid text`(digits: String) {
  #expect(!isText(hex(digits)))
}

@Test(arguments: ["c2", "e0a0", "e1", "f09080", "f0", "c241", "e0a041", "f0908041", "61c2"])
func `a text with an incomplete sequence is invalid`(digits: String) {
  #expect(!isText(hex(digits)))
}

/// Compares the check with the standard library's decoder: for the encodings of every 37th scalar, and for random
/// bytes.
@Test func `the text check agrees with the standard library`() {
  func reference(_ bytes: [UInt8]) -> Bool {
    guard let text = String(validating: bytes, as: UTF8.self) else { return false }
    return text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
  }
  for value in stride(from: UInt32(0), through: 0x10_FFFF, by: 37) {
    guard let scalar = Unicode.Scalar(value) else { continue }
    let bytes = [UInt8](UTF8.encode(scalar)!)
    if isText(bytes) != reference(bytes) { Issue.record("U+\(String(value, radix: 16))") }
  }
  var random = SeededRandom(seed: 11)
  let alphabet = hex("20417f 80909fa0bf c0c2df e0e1edef f0f1f4f5ff")
  for _ in 0..<20_000 {
    let bytes = (0..<1 + random.below(5)).map { _ in alphabet[Int(random.below(UInt64(alphabet.count)))] }
    if isText(bytes) != reference(bytes) { Issue.record("\(bytes)") }
  }
}

@Test func `a display name has one to sixty-three bytes`() {
  #expect(nameRefusal([]) == .malformed)
  #expect(nameRefusal([UInt8](repeating: 0x61, count: 63)) == nil)
  #expect(nameRefusal([UInt8](repeating: 0x61, count: 64)) == .overLength)
}

@Test func `a display name that is no valid text is malformed`() {
  #expect(nameRefusal(hex("61c3")) == .malformed)
  #expect(nameRefusal(hex("610062")) == .malformed)
}

@Test func `a display name that looks like an id is malformed`() {
  for name in ["2b75e26e", "DEADBEEF", String(repeating: "0a", count: 16)] {
    #expect(nameRefusal(Array(name.utf8)) == .malformed)
  }
  for name in ["2b75e26", "2b75e26e1", "2b75e26g", "c0ffee"] { #expect(nameRefusal(Array(name.utf8)) == nil) }
}

@Test func `a display name is encoded as its length and its bytes`() throws {
  let wire = hex("05 4ac3bc7267")
  var reader = ByteReader(wire.span.bytes, orThrow: FrameError.truncated)
  let name = try DisplayName(&reader)
  #expect(name.text == "Jürg" && reader.remaining == 0)
  #expect(encoded { output in name.write(to: &output) } == wire)
}

@Test func `display names are compared by their bytes`() {
  #expect(DisplayName("box") == DisplayName("box"))
  #expect(DisplayName("box") != DisplayName("bo"))
  #expect(DisplayName("box") != DisplayName("boy"))
}

@Test(arguments: ["a", "chat", "a1", "1a", "file-share", "a-b-c", "x2345678901234z"])
func `a service type consists of lower-case letters, digits and hyphens`(text: String) {
  #expect(isService(text))
}

@Test(arguments: [
  "", "123", "-a", "a-", "a--b", "Chat", "a_b", "a.b", "a b", "é", "x2345678901234zz", "1-2",
]) func `any other service type is invalid`(text: String) {
  #expect(!isService(text))
}

@Test func `an info pair is a key, an equals sign and a text`() {
  #expect(isPair([UInt8]("key=value".utf8)))
  #expect(isPair([UInt8]("a=".utf8)))
  #expect(isPair([UInt8]("a b~=x=y".utf8)))
  #expect(isPair([UInt8]("room=Küche".utf8)))
}

@Test func `an info pair without a key or an equals sign is refused`() {
  #expect(!isPair([]))
  #expect(!isPair([UInt8]("key".utf8)))
  #expect(!isPair([UInt8]("=value".utf8)))
}

@Test func `the key of an info pair is printable ASCII`() {
  #expect(!isPair(hex("c3a9 3d 61")))
  #expect(!isPair(hex("6109 3d 61")))
  #expect(!isPair(hex("617f 3d 61")))
}

@Test func `the value of an info pair is a valid text`() {
  #expect(!isPair(hex("61 3d 00")))
  #expect(!isPair(hex("61 3d ff")))
}
