/// Names and records of a DNS message (RFC 1035, section 4.1), read in place.
struct DNSPacket {
  static let headerBytes = 12
  static let typePTR = 12
  static let typeCNAME = 5

  /// One resource record: where its name begins, its type, and where its data lies.
  struct Record {
    var name: Int
    var type: Int
    var data: Range<Int>
  }

  private let bytes: UnsafeRawBufferPointer

  /// Nil for fewer bytes than a header has. The memory must outlive the packet.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.headerBytes else { return nil }
    self.bytes = bytes
  }

  var isResponse: Bool { bytes[2] & 0x80 != 0 }
  var questionCount: Int { word(4) }
  var answerCount: Int { word(6) }
  var authorityCount: Int { word(8) }
  /// Records of all three sections.
  var recordCount: Int { word(6) + word(8) + word(10) }

  /// The type of the question at `offset`, which moves past it; nil when it is malformed.
  func question(_ offset: inout Int) -> Int? {
    guard let end = nameEnd(offset), bytes.count - end >= 4 else { return nil }
    offset = end + 4
    return word(end)
  }

  /// The record at `offset`, which moves past it; nil when it is malformed.
  func record(_ offset: inout Int) -> Record? {
    guard let end = nameEnd(offset), bytes.count - end >= 10 else { return nil }
    let data = end + 10..<end + 10 + word(end + 8)
    guard data.upperBound <= bytes.count else { return nil }
    defer { offset = data.upperBound }
    return Record(name: offset, type: word(end), data: data)
  }

  /// Whether the name at `offset` is `name`, in the form of the wire and in lower case. ASCII letters are compared
  /// without case (RFC 4343). A pointer must lead backwards, so the walk ends.
  func isName(_ name: [UInt8], at offset: Int) -> Bool {
    var (offset, lowest, place) = (offset, offset, 0)
    while offset < bytes.count {
      let length = Int(bytes[offset])
      if length >= 0xC0 {
        guard offset + 1 < bytes.count else { return false }
        let target = (length & 0x3F) << 8 | Int(bytes[offset + 1])
        guard target < lowest else { return false }
        (offset, lowest) = (target, target)
        continue
      }
      guard length <= 63, place + length < name.count, offset + length < bytes.count, name[place] == UInt8(length)
      else { return false }
      if length == 0 { return place == name.count - 1 }
      for index in 1...length where Self.lower(bytes[offset + index]) != name[place + index] { return false }
      place += 1 + length
      offset += 1 + length
    }
    return false
  }

  /// A name in the form that `isName` compares with; nil for a label that is empty or longer than 63 bytes.
  static func name(_ labels: [[UInt8]]) -> [UInt8]? {
    var name: [UInt8] = []
    for label in labels {
      guard (1...63).contains(label.count) else { return nil }
      name.append(UInt8(label.count))
      name += label.map(lower)
    }
    return name + [0]
  }

  private static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

  private func word(_ offset: Int) -> Int { Int(bytes[offset]) << 8 | Int(bytes[offset + 1]) }

  /// The end of the name at `offset`: after its root label or its pointer (RFC 1035, section 4.1.4).
  private func nameEnd(_ start: Int) -> Int? {
    var offset = start
    while offset < bytes.count {
      let length = Int(bytes[offset])
      if length == 0 { return offset + 1 }
      if length >= 0xC0 { return offset + 2 <= bytes.count ? offset + 2 : nil }
      if length > 63 { return nil }
      offset += 1 + length
    }
    return nil
  }
}
