/// Keys that a terminal sends as several bytes.
public enum TerminalKey: Equatable {
  case up, down, left, right, home, end, delete, pageUp, pageDown
}

/// A parser for one terminal escape sequence (ECMA-48, section 5.4; keys as in xterm). The parser receives one byte at
/// a time, starting with the byte after ESC.
struct EscapeSequence {
  enum Step: Equatable {
    /// The escape sequence is incomplete.
    case more
    /// The user pressed ESC alone, and this byte belongs to a separate key.
    case alone
    /// The escape sequence is complete. The key is nil if the sequence is not a `TerminalKey`.
    case key(TerminalKey?)
  }

  /// The maximum length of a sequence in bytes. A longer sequence is treated as complete at this length.
  private static let bytesMax = 16

  private var bytes: [UInt8] = []
  private var isOpen = false

  mutating func take(_ byte: UInt8) -> Step {
    guard isOpen else {
      isOpen = byte == UInt8(ascii: "[") || byte == UInt8(ascii: "O")
      return isOpen ? .more : .alone
    }
    bytes.append(byte)
    return (0x40...0x7E).contains(byte) || bytes.count == Self.bytesMax ? .key(key(byte)) : .more
  }

  private func key(_ last: UInt8) -> TerminalKey? {
    switch last {
    case UInt8(ascii: "A"): .up
    case UInt8(ascii: "B"): .down
    case UInt8(ascii: "C"): .right
    case UInt8(ascii: "D"): .left
    case UInt8(ascii: "F"): .end
    case UInt8(ascii: "H"): .home
    case UInt8(ascii: "~"):
      switch bytes.first {
      case UInt8(ascii: "1"), UInt8(ascii: "7"): .home
      case UInt8(ascii: "3"): .delete
      case UInt8(ascii: "4"), UInt8(ascii: "8"): .end
      case UInt8(ascii: "5"): .pageUp
      case UInt8(ascii: "6"): .pageDown
      default: nil
      }
    default: nil
    }
  }
}

/// Parses the keys of a screen that has no text input.
public struct KeyReader {
  /// A character, or a key that sends an escape sequence.
  public enum Key: Equatable {
    case character(UInt8)
    case special(TerminalKey)
  }

  private var escape: EscapeSequence?

  public init() {}

  /// Receives one byte. Returns the key that this byte completes, or nil if the key is incomplete.
  public mutating func take(_ byte: UInt8) -> Key? {
    guard var sequence = escape else {
      if byte == 0x1B { escape = EscapeSequence() } else { return .character(byte) }
      return nil
    }
    switch sequence.take(byte) {
    case .more:
      escape = sequence
      return nil
    case .alone:
      escape = nil
      return take(byte)
    case .key(let key):
      escape = nil
      return key.map { .special($0) }
    }
  }
}
