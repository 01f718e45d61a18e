import CSystem
import Primitives

/// Builds text byte by byte: what the log and the tables need, without Foundation.
public struct TextBuilder {
  public private(set) var bytes: [UInt8] = []
  public init() {}

  public mutating func add(_ text: StaticString) {
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }
  public mutating func add(_ text: String) { bytes.append(contentsOf: text.utf8) }
  public mutating func add(byte: UInt8) { bytes.append(byte) }
  public mutating func add(_ number: UInt64) { add("\(number)") }

  /// Decimal, filled with zeros to `digits`.
  public mutating func add(_ number: UInt64, digits: Int) {
    let text = "\(number)"
    for _ in 0..<max(0, digits - text.utf8.count) { add(byte: 0x30) }
    add(text)
  }

  /// Hexadecimal, exactly `digits` digits, the lowest ones.
  public mutating func add(hex number: UInt64, digits: Int) {
    for position in (0..<digits).reversed() {
      add(byte: hexDigits[Int(number >> UInt64(position * 4) & 15)])
    }
  }

  /// Text from elsewhere: bytes that could steer a terminal are shown as “?” .
  public mutating func add(untrusted text: some Sequence<UInt8>) {
    for byte in text {
      // C1 controls are 0xC2 0x80–0x9F in UTF-8.
      if (0x80...0x9F).contains(byte) && bytes.last == 0xC2 { bytes.removeLast(); add("?"); continue }
      add(byte: byte < 0x20 || byte == 0x7F ? UInt8(ascii: "?") : byte)
    }
  }

  /// Blanks until `column` characters stand behind byte `start`.
  public mutating func pad(from start: Int, to column: Int) {
    var width = 0
    for byte in bytes[start...] where byte & 0xC0 != 0x80 { width += 1 }
    for _ in 0..<max(0, column - width) { add(byte: 0x20) }
  }

  /// Write the bytes to a descriptor, whole. False when it is closed.
  @discardableResult public func write(to descriptor: CInt) -> Bool {
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeBytes { CSystem.write(descriptor, $0.baseAddress! + offset, $0.count - offset) }
      if count < 0 && csystem_errno() == EINTR { continue }
      // A terminal that somebody else made non-blocking.
      if count < 0 && csystem_errno() == EAGAIN && waitForRoom(in: descriptor, milliseconds: -1) { continue }
      if count <= 0 { return false }
      offset += count
    }
    return true
  }
}

/// Write to standard error what it takes now. Nobody may be there, or nobody who reads: the daemon neither waits for them
/// nor minds.
public func offerToStandardError(_ bytes: UnsafeRawBufferPointer) {
  if waitForRoom(in: STDERR_FILENO, milliseconds: 0) {
    // A pipe with room takes 4096 bytes at once (POSIX, write: PIPE_BUF).
    _ = CSystem.write(STDERR_FILENO, bytes.baseAddress, min(bytes.count, 4096))
  }
}

private func waitForRoom(in descriptor: CInt, milliseconds: CInt) -> Bool {
  var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
  return poll(&polled, 1, milliseconds) > 0 && CInt(polled.revents) & CInt(POLLOUT) != 0
}

private let hexDigits: StaticString = "0123456789abcdef"

extension StaticString {
  fileprivate subscript(index: Int) -> UInt8 { utf8Start[index] }
}

func hexDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case 0x30...0x39: byte - 0x30
  case 0x41...0x46: byte - 0x41 + 10
  case 0x61...0x66: byte - 0x61 + 10
  default: nil
  }
}

extension NodeID {
  /// All 32 hexadecimal digits.
  public var text: String {
    var builder = TextBuilder()
    builder.add(hex: high, digits: 16)
    builder.add(hex: low, digits: 16)
    return String(decoding: builder.bytes, as: UTF8.self)
  }

  /// The first 8 hexadecimal digits, for people.
  public var shortText: String {
    var builder = TextBuilder()
    builder.add(hex: high >> 32, digits: 8)
    return String(decoding: builder.bytes, as: UTF8.self)
  }
}
