import Primitives
import Testing

@testable import Identity

struct VerificationCodeTests {
  private let a = NodeID(high: 0x0001_0203_0405_0607, low: 0x0809_0a0b_0c0d_0e0f)
  private let b = NodeID(high: 0xf0f1_f2f3_f4f5_f6f7, low: 0xf8f9_fafb_fcfd_feff)

  /// The expected value was computed with Python's hashlib from docs/protocol.md, “Comparing keys”.
  @Test func `the code matches an independent implementation`() {
    #expect(verificationCode(a, b) == "82193 49458 53828 11521 02592 74818")
  }

  @Test func `both ends show the same code, and another key yields another code`() {
    #expect(verificationCode(a, b) == verificationCode(b, a))
    #expect(verificationCode(a, b) != verificationCode(a, NodeID(high: b.high, low: b.low ^ 1)))
  }
}
