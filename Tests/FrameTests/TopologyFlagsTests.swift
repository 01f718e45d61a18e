import Frame
import Primitives
import Testing

@Test func `the flags of a topology are written as the protocol says`() {
  #expect(TopologyFlags(relays: true, encryption: .required).rawValue == 0b001)
  #expect(TopologyFlags(relays: false, encryption: .optional).rawValue == 0b010)
  #expect(TopologyFlags(relays: true, encryption: .none).rawValue == 0b101)
}

@Test func `flags of a later version are kept and read as the strictest`() {
  let flags = TopologyFlags(rawValue: 0b1111_0110)
  #expect(!flags.relays && flags.encryption == .required && flags.rawValue == 0b1111_0110)
}

@Test func `preferences come to the same at both ends`() {
  let preferences: [EncryptionPreference] = [.none, .optional, .required]
  let expected: [[EncryptionPreference.Agreement]] = [
    [.clear, .clear, .refused], [.clear, .sealed, .sealed], [.refused, .sealed, .sealed],
  ]
  for (row, a) in preferences.enumerated() {
    for (column, b) in preferences.enumerated() {
      #expect(EncryptionPreference.agreement(a, b) == expected[row][column])
    }
  }
}
