import FileSupport
import Primitives
import Session
import Testing

@testable import Relay

/// Values that another implementation can compute with SHA-256 alone (docs/protocol.md, “Sessions”).
@Suite struct SessionVectorTests {
  @Test func `session ids and endpoints are SHA-256 by the firmware's cryptography`() throws {
    let cryptography = try MbedCryptography(try makeIdentity())
    let word: UInt64 = 0x1111_1111_1111_1111
    let origin = SessionOrigin(
      founder: MemberAddress(node: NodeID(high: word, low: word), endpoint: 0x1111_1111),
      point: PublicPoint(InlineArray { $0 == 0 ? 4 : 0x22 }), nonce: SessionID(high: 0x33, low: 0x44),
      rules: SessionRules(onlyFounderAdmits: false, onlySealed: true, membersMax: 8))
    #expect(origin.id(cryptography) == SessionID(high: 0x5f24_b8fe_61bb_c56e, low: 0x6e4c_c523_049f_849b))
    let endpoint = MemberAddress.endpoint(
      user: 1000, type: Array("chat".utf8), instance: Array("a".utf8), cryptography)
    #expect(endpoint == 0xfe0f_30fe)
  }
}
