import Frame
import Primitives
import Testing

@Test func `the flags of a topology are encoded as the protocol specifies`() {
  #expect(TopologyFlags(relays: true, encryption: .required).rawValue == 0b001)
  #expect(TopologyFlags(relays: false, encryption: .optional).rawValue == 0b010)
  #expect(TopologyFlags(relays: true, encryption: .none).rawValue == 0b101)
}

@Test func `unknown flags are kept, and an unknown encryption preference means required`() {
  let flags = TopologyFlags(rawValue: 0b1111_0110)
  #expect(!flags.relays && flags.encryption == .required && flags.rawValue == 0b1111_0110)
}

@Test func `both ends derive the same agreement from their encryption preferences`() {
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
