import CSystem
import Primitives

/// Builds text byte by byte for logs and tables, without Foundation.
public struct TextBuilder {
  public private(set) var bytes: [UInt8] = []
  public init() {}

  public mutating func add(_ text: StaticString) {
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }
  public mutating func add(_ text: String) { bytes.append(contentsOf: text.utf8) }
  public mutating func add(byte: UInt8) { bytes.append(byte) }
  public mutating func add(_ text: TextBuilder) { bytes += text.bytes }
  public mutating func add(_ number: UInt64) { add("\(number)") }

  /// Adds a decimal number, padded with leading zeros to at least `digits` digits.
  public mutating func add(_ number: UInt64, digits: Int) {
    let text = "\(number)"
    for _ in 0..<max(0, digits - text.utf8.count) { add(byte: 0x30) }
    add(text)
  }

  /// Adds the lowest `digits` hexadecimal digits.
  public mutating func add(hex number: UInt64, digits: Int) {
    for position in (0..<digits).reversed() {
      add(byte: hexDigits[Int(number >> UInt64(position * 4) & 15)])
    }
  }

  /// Adds untrusted text, such as a name, a file name or the context of an invitation. Untrusted text must pass this
  /// function, or one of the two below, before people see it.
  ///
  /// - Invisible characters (`isInvisible`: controls, direction marks, zero-width characters) and invalid UTF-8 become
  ///   “?”. A joiner (U+200D) or emoji selector (U+FE0F) is kept after a symbol.
  /// - Double quotation marks become “'”, so the text cannot end the quotation that contains it.
  /// - A run of blanks of any kind becomes one blank, so blanks cannot push the rest to the terminal's next line.
  /// - After three combining marks in a row, “?” replaces the rest.
  ///
  /// Pass a complete text: a character that is cut into two pieces becomes “??”.
  public mutating func add(untrusted text: some Sequence<UInt8>) {
    add(text, Cleaning(keepsQuotes: false, keepsBlanks: false))
  }

  /// Adds a complete message. It works like `add(untrusted:)` but keeps quotation marks. Untrusted text that the
  /// message quotes must have passed `shown` before, so that it contains no quotation mark.
  public mutating func add(message text: some Sequence<UInt8>) {
    add(text, Cleaning(keepsQuotes: true, keepsBlanks: false))
  }

  /// Adds text whose blanks must be kept, such as typed text or a line of a file. It works like `add(message:)` but
  /// keeps every blank.
  public mutating func add(verbatim text: some Sequence<UInt8>) {
    add(text, Cleaning(keepsQuotes: true, keepsBlanks: true))
  }

  private struct Cleaning {
    let keepsQuotes: Bool
    let keepsBlanks: Bool
  }

  /// The maximum number of combining marks in a row. No script needs more.
  private static let marksMax = 3

  private mutating func add(_ text: some Sequence<UInt8>, _ cleaning: Cleaning) {
    var decoder = UTF8()
    var iterator = text.makeIterator()
    var previous: UInt32 = 0
    var marks = 0
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar):
        marks = isCombiningMark(scalar.value) ? marks + 1 : 0
        add(scalar, after: previous, marks, cleaning)
        previous = scalar.value
      case .emptyInput: return
      case .error:
        add(byte: UInt8(ascii: "?"))
        (previous, marks) = (0, 0)
      }
    }
  }

  private mutating func add(_ scalar: Unicode.Scalar, after previous: UInt32, _ marks: Int, _ cleaning: Cleaning) {
    let value = scalar.value
    let joinsSymbols = (value == 0x200D || value == 0xFE0F) && previous >= 0x2190
    if isInvisible(value) && !joinsSymbols { return add(byte: UInt8(ascii: "?")) }
    if marks > Self.marksMax {
      if marks == Self.marksMax + 1 { add(byte: UInt8(ascii: "?")) }
      return
    }
    if isQuotationMark(value) && !cleaning.keepsQuotes { return add(byte: UInt8(ascii: "'")) }
    if isBlank(value) && !cleaning.keepsBlanks {
      if !isBlank(previous) { add(byte: 0x20) }
      return
    }
    guard let encoded = UTF8.encode(scalar) else { return }
    for byte in encoded { add(byte: byte) }
  }

  /// Adds blanks until `column` characters follow byte `start`.
  public mutating func pad(from start: Int, to column: Int) {
    var width = 0
    for byte in bytes[start...] where byte & 0xC0 != 0x80 { width += 1 }
    for _ in 0..<max(0, column - width) { add(byte: 0x20) }
  }

  /// Writes all bytes to a descriptor. Returns false if a write fails, such as after the reader has closed the pipe.
  @discardableResult public func write(to descriptor: CInt) -> Bool {
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeBytes { CSystem.write(descriptor, $0.baseAddress! + offset, $0.count - offset) }
      if count < 0 && csystem_errno() == EINTR { continue }
      // Another process that shares the terminal can have made it non-blocking.
      if count < 0 && csystem_errno() == EAGAIN && waitForRoom(in: descriptor, milliseconds: -1) { continue }
      if count <= 0 { return false }
      offset += count
    }
    return true
  }
}

/// Writes bytes to standard error without waiting: at most 4096, and none if its pipe is full. The daemon must not
/// block if nobody reads its standard error.
public func offerToStandardError(_ bytes: UnsafeRawBufferPointer) {
  if waitForRoom(in: STDERR_FILENO, milliseconds: 0) {
    // A pipe with room accepts 4096 bytes at once (POSIX, write: PIPE_BUF).
    _ = CSystem.write(STDERR_FILENO, bytes.baseAddress, min(bytes.count, 4096))
  }
}

private func waitForRoom(in descriptor: CInt, milliseconds: CInt) -> Bool {
  var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
  return poll(&polled, 1, milliseconds) > 0 && CInt(polled.revents) & CInt(POLLOUT) != 0
}

/// Untrusted text, made safe to quote in a message; see `TextBuilder.add(untrusted:)`.
public func shown(_ text: String) -> String { shown(Array(text.utf8)) }

/// Untrusted UTF-8, made safe to quote in a message; see `TextBuilder.add(untrusted:)`.
public func shown(_ text: [UInt8]) -> String {
  var builder = TextBuilder()
  builder.add(untrusted: text)
  return String(decoding: builder.bytes, as: UTF8.self)
}

private let hexDigits: StaticString = "0123456789abcdef"

extension StaticString {
  fileprivate subscript(index: Int) -> UInt8 { utf8Start[index] }
}
