import Testing

@testable import Transfer

func hex(_ bytes: [UInt8]) -> String { String(decoding: hexadecimal(bytes), as: UTF8.self) }

private func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
  let digits = Array("0123456789abcdef".utf8)
  return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// The example messages of FIPS 180-4 and their digests, which NIST publishes.
private let examples: [(message: [UInt8], digest: String)] = [
  ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
  (bytes("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
  (
    bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
  ),
  (
    bytes(
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"
    ),
    "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
  ),
  (
    [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000),
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
  ),
]

@Test func `the examples of FIPS 180-4 yield their digests`() {
  for (message, digest) in examples { #expect(hex(SHA256.digest(message).bytes) == digest) }
}

@Test func `messages of all lengths around a block size match another implementation`() {
  var all = SHA256()
  for count in 0..<300 {
    all.update(SHA256.digest((0..<count).map { UInt8(truncatingIfNeeded: $0 * 7) }).bytes)
  }
  #expect(hex(all.digest().bytes) == "f65f14b090e805017546322e618401d41f0710c213e013a5131eb38bbe8f367f")
}

@Test func `a message may arrive in pieces`() {
  let message = (0..<400).map { UInt8(truncatingIfNeeded: $0 * 11) }
  for cut in 0...400 {
    var hash = SHA256()
    hash.update(message[..<cut])
    // A copy of the state continues independently of the original.
    let copy = hash
    hash.update(message[cut...])
    #expect(hash.digest() == SHA256.digest(message) && hash.byteCount == 400)
    #expect(copy.digest() == SHA256.digest(Array(message[..<cut])))
  }
}

@Test func `a digest has 32 bytes`() {
  let digest = SHA256.digest(bytes("abc"))
  #expect(Digest(digest.bytes[...]) == digest)
  #expect(Digest(digest.bytes.dropFirst()) == nil)
  #expect(digest.hexadecimal(bytes: 3) == bytes("ba7816"))
}
