import Primitives

/// A data element of SDP: its type, and the bytes of its value (Core Specification 5.4, Vol 3, Part B, 3).
struct DataElement: Equatable {
  static let unsigned: UInt8 = 1
  static let uuid: UInt8 = 3
  static let text: UInt8 = 4
  static let sequence: UInt8 = 6

  /// The bytes after the first four of every short UUID in its long form (Part B, 2.5.1).
  private static let baseUUID: [UInt8] = [0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0x80, 0x5F, 0x9B, 0x34, 0xFB]

  let type: UInt8
  let value: [UInt8]

  init(type: UInt8, value: [UInt8]) {
    self.type = type
    self.value = value
  }

  init<Number: FixedWidthInteger>(unsigned number: Number) {
    var value: [UInt8] = []
    value.append(bigEndian: number)
    self.init(type: Self.unsigned, value: value)
  }

  /// A UUID that the Bluetooth SIG has assigned.
  init(uuid number: UInt16) {
    self.init(type: Self.uuid, value: [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)])
  }

  init(sequence elements: [DataElement]) {
    self.init(type: Self.sequence, value: elements.flatMap { $0.bytes })
  }

  /// The encoded element. Texts and sequences have at most 255 bytes, because this node encodes only its own records
  /// and requests.
  var bytes: [UInt8] {
    if type == Self.text || type == Self.sequence { return [type << 3 | 5, UInt8(value.count)] + value }
    return [type << 3 | UInt8(value.count.trailingZeroBitCount)] + value
  }

  /// The value of an unsigned integer of at most 32 bits; nil for anything else.
  var number: UInt32? {
    guard type == Self.unsigned, value.count <= 4 else { return nil }
    return value.reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// The UUID in its long form, most significant byte first; nil for anything else.
  var longUUID: [UInt8]? {
    guard type == Self.uuid else { return nil }
    switch value.count {
    case 2: return [0, 0] + value + Self.baseUUID
    case 4: return value + Self.baseUUID
    case 16: return value
    case _: return nil
    }
  }

  /// The elements of a sequence; nil for anything else, or if the last element is truncated.
  var elements: [DataElement]? {
    guard type == Self.sequence else { return nil }
    var reader = ByteReader(value.span.bytes, orThrow: TooShort())
    var elements: [DataElement] = []
    while reader.remaining > 0 {
      guard let element = try? reader.element() else { return nil }
      elements.append(element)
    }
    return elements
  }

  /// Whether this element is the UUID, or a sequence that contains the UUID at any depth. Use this method only for this
  /// node's own elements, because nothing limits the depth of the recursion.
  func contains(longUUID wanted: [UInt8]) -> Bool {
    longUUID == wanted || elements?.contains { $0.contains(longUUID: wanted) } ?? false
  }
}

extension ByteReader {
  /// The next data element. The elements of a sequence are not parsed.
  mutating func element() throws(TruncationError) -> DataElement {
    let head = try u8()
    let type = head >> 3
    let byteCount: Int
    switch head & 7 {
    case 0: byteCount = type == 0 ? 0 : 1
    case 5: byteCount = Int(try u8())
    case 6: byteCount = Int(try u16())
    case 7: byteCount = Int(try u32())
    case let exponent: byteCount = 1 << Int(exponent)
    }
    return DataElement(type: type, value: try array(byteCount))
  }
}
