import Primitives
import Session

/// The reason why a packet cannot be parsed.
public enum LocalSyntaxError: Error, Equatable, Sendable {
  /// The packet ends within a field.
  case truncated
  /// A field has a value that no version allows.
  case outOfRange
  /// The packet type is unknown in this version.
  case unsupported
}

/// Field types of the local API other than integers. See docs/local-api.md, “Fields”.
extension ByteReader<LocalSyntaxError> {
  /// Reads a length of one byte, and then as many bytes.
  mutating func text() throws(LocalSyntaxError) -> [UInt8] {
    let count = Int(try u8())
    return try array(count)
  }

  mutating func texts() throws(LocalSyntaxError) -> [[UInt8]] {
    var texts: [[UInt8]] = []
    for _ in 0..<(try u8()) { texts.append(try text()) }
    return texts
  }

  mutating func bool() throws(LocalSyntaxError) -> Bool {
    let value = try u8()
    guard value <= 1 else { throw .outOfRange }
    return value == 1
  }

  /// Reads a field that older clients omit. Returns false if the field is missing.
  mutating func laterBool() throws(LocalSyntaxError) -> Bool { remaining > 0 ? try bool() : false }

  mutating func address() throws(LocalSyntaxError) -> MemberAddress {
    let node = try nodeID()
    return MemberAddress(node: node, endpoint: try u32())
  }

  mutating func rules() throws(LocalSyntaxError) -> SessionRules {
    let flags = try u8()
    let most = Int(try u8())
    guard flags & ~3 == 0, most == 0 || (SessionLimits.membersMin...SessionLimits.membersMax).contains(most) else {
      throw .outOfRange
    }
    return SessionRules(
      onlyFounderAdmits: flags & 1 != 0, onlySealed: flags & 2 == 0,
      membersMax: most == 0 ? SessionLimits.membersDefault : most)
  }
}

extension [UInt8] {
  /// Writes the length of the packet into its first four bytes. The length does not include these four bytes.
  mutating func setPacketLength() {
    let length = UInt32(count - 4)
    for index in 0..<4 { self[index] = UInt8(truncatingIfNeeded: length >> (24 - 8 * UInt32(index))) }
  }

  /// Appends a text field. The text has at most 255 bytes.
  mutating func append(text: [UInt8]) {
    append(UInt8(text.count))
    append(copying: text)
  }

  mutating func append(address: MemberAddress) {
    append(address.node)
    append(bigEndian: address.endpoint)
  }

  mutating func append(rules: SessionRules) {
    append((rules.onlyFounderAdmits ? 1 : 0) | (rules.onlySealed ? 0 : 2))
    append(rules.membersMax)
  }
}
