/// A SHA-256 digest: 32 bytes.
public struct Digest: Hashable, Sendable {
  public static let byteCount = 32
  private let a, b, c, d: UInt64

  init(_ a: UInt64, _ b: UInt64, _ c: UInt64, _ d: UInt64) { (self.a, self.b, self.c, self.d) = (a, b, c, d) }

  /// Returns nil unless there are 32 bytes.
  public init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    func word(_ index: Int) -> UInt64 {
      var value: UInt64 = 0
      for byte in bytes[(bytes.startIndex + 8 * index)..<(bytes.startIndex + 8 * index + 8)] {
        value = value &<< 8 | UInt64(byte)
      }
      return value
    }
    self.init(word(0), word(1), word(2), word(3))
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.byteCount)
    for word in [a, b, c, d] {
      for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word &>> UInt64(56 - 8 * index))) }
    }
    return bytes
  }

  /// The first `count` bytes of the digest as lower-case hexadecimal digits in ASCII.
  public func hexadecimal(bytes count: Int) -> [UInt8] {
    let digits: [UInt8] = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes.prefix(count) {
      text.append(digits[Int(byte &>> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return text
  }
}
