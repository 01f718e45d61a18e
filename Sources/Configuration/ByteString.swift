import CSystem

/// The bytes of a name or value. They are compared as bytes, because the firmware does not contain the tables for
/// Unicode equality, and no key needs it.
public struct ByteString {
  public let bytes: ArraySlice<UInt8>

  public init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  public init(_ string: String) { bytes = Array(string.utf8)[...] }

  /// The label keeps an array literal from being passed as a pointer.
  public init(zeroTerminated: UnsafePointer<CChar>) {
    let raw = UnsafeRawBufferPointer(start: zeroTerminated, count: strlen(zeroTerminated))
    bytes = Array(raw)[...]
  }

  public var isEmpty: Bool { bytes.isEmpty }
  public var string: String { String(decoding: bytes, as: UTF8.self) }

  public func equals(_ other: StaticString) -> Bool {
    guard bytes.count == other.utf8CodeUnitCount else { return false }
    var index = 0
    for byte in bytes {
      if byte != other.utf8Start[index] { return false }
      index += 1
    }
    return true
  }

  public func equals(_ other: ByteString) -> Bool { bytes.elementsEqual(other.bytes) }

  public func hasPrefix(_ prefix: StaticString) -> Bool {
    bytes.count >= prefix.utf8CodeUnitCount && ByteString(bytes.prefix(prefix.utf8CodeUnitCount)).equals(prefix)
  }

  /// Whether the text contains `word` at any position.
  public func contains(_ word: StaticString) -> Bool {
    bytes.indices.contains { ByteString(bytes[$0...]).hasPrefix(word) }
  }

  /// The parts between commas, without surrounding blanks.
  public var commaParts: [ByteString] {
    bytes.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map { ByteString($0).trimmed }
  }

  public var trimmed: ByteString {
    var slice = bytes
    while let first = slice.first, first == 0x20 || first == 0x09 { slice.removeFirst() }
    while let last = slice.last, last == 0x20 || last == 0x09 { slice.removeLast() }
    return ByteString(slice)
  }

  /// The value of a decimal number, or of a hexadecimal number after 0x. Returns nil if the text is not a decimal or
  /// hexadecimal number or the value is not in `range`.
  public func number(in range: ClosedRange<UInt64>) -> UInt64? {
    let isHex = hasPrefix("0x")
    let digits = isHex ? bytes.dropFirst(2) : bytes
    if digits.isEmpty || digits.count > 18 { return nil }
    var value: UInt64 = 0
    for byte in digits {
      guard let digit = ByteString.hexValue(byte), isHex || digit < 10, value >> 59 == 0 else { return nil }
      value = value * (isHex ? 16 : 10) + UInt64(digit)
    }
    return range.contains(value) ? value : nil
  }

  public static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
  }
}
