import Identity
import TestSupport
import Testing

/// Valid signatures, which are the vectors of RFC 6979, A.2.5 (P-256, SHA-256). Also invalid signatures, which must be
/// rejected (FIPS 186-5, 6.4.2).
@Suite struct SignatureTests {
  private static let x: [UInt8] = hex("60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6")
  private static let y: [UInt8] = hex("7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")
  private static let r: [UInt8] = hex("efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716")
  private static let s: [UInt8] = hex("f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
  private static let order: [UInt8] = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")

  private func verify(_ point: [UInt8], _ message: String, _ signature: [UInt8]) -> Bool {
    NodeIdentity.verify(signature.span.bytes, over: Array(message.utf8).span.bytes, by: point.span.bytes)
  }

  @Test func `the test vectors of the standard are verified`() {
    let other =
      hex("f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367")
      + hex("019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083")
    #expect(verify([4] + Self.x + Self.y, "sample", Self.r + Self.s))
    #expect(verify([4] + Self.x + Self.y, "test", other))
    #expect(!verify([4] + Self.x + Self.y, "test", Self.r + Self.s))
  }

  @Test(arguments: 0..<64) func `a signature with any byte changed is refused`(_ index: Int) {
    var signature = Self.r + Self.s
    signature[index] ^= 1
    #expect(!verify([4] + Self.x + Self.y, "sample", signature))
  }

  @Test(arguments: 0..<65) func `a public point with any byte changed is refused`(_ index: Int) {
    var point = [4] + Self.x + Self.y
    point[index] ^= 1
    #expect(!verify(point, "sample", Self.r + Self.s))
  }

  @Test func `signature values outside the range are refused`() {
    let zero = [UInt8](repeating: 0, count: 32)
    let point = [4] + Self.x + Self.y
    for (r, s) in [(zero, Self.s), (Self.r, zero), (zero, zero), (Self.order, Self.s), (Self.r, Self.order)] {
      #expect(!verify(point, "sample", r + s))
    }
  }

  @Test func `a signature is not valid for the empty message`() {
    #expect(!verify([4] + Self.x + Self.y, "", Self.r + Self.s))
  }
}
