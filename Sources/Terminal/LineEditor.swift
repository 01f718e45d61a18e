import Primitives

/// A line editor for UTF-8 text. The editor is pure, which means that it receives the terminal's bytes and returns what
/// the caller must draw.
///
/// Keys:
/// - characters, enter
/// - backspace, delete, ^W (delete a word), ^U (delete to the start), ^K (delete to the end)
/// - left, right, ^B, ^F, home, end, ^A, ^E (move the cursor)
/// - up, down, ^P, ^N (history)
/// - ^L (redraw)
/// - ^D (delete, or end of input if the line is empty)
public struct LineEditor {
  /// The effect of a byte of input.
  public enum Action: Equatable {
    /// The byte has no effect yet, because a key or character is incomplete.
    case none
    case changed
    /// The key has no effect in the current state.
    case refused
    case line([UInt8])
    /// ^D in an empty line.
    case end
    case redraw
  }

  /// The maximum number of lines in the history, and the maximum length of a line in the history, in bytes.
  static let formerMax = 32
  static let formerBytesMax = 4_096

  private enum State {
    case text
    /// The editor is within a character of this length in bytes.
    case character(Int)
    case escape
  }

  public private(set) var text: [UInt8] = []
  /// The byte offset at which the next character is inserted.
  public private(set) var cursor = 0
  private let byteCountMax: Int
  private var state = State.text
  private var pending: [UInt8] = []
  private var escape = EscapeSequence()
  private var former: [[UInt8]] = []
  /// The index of the history line that is shown. `former.count` means the new line. While a history line is shown,
  /// `draft` stores the new line.
  private var shown = 0
  private var draft: [UInt8] = []

  public init(byteCountMax: Int) { self.byteCountMax = byteCountMax }

  /// Handles one byte of input and returns its effect.
  public mutating func take(_ byte: UInt8) -> Action {
    switch state {
    case .text: return key(byte)
    case .character(let length): return continueCharacter(byte, length)
    case .escape:
      switch escape.take(byte) {
      case .more: return .none
      case .alone:
        state = .text
        // ESC alone has no function in this editor, and the byte after ESC is a separate key.
        return byte == 0x1B ? .refused : key(byte)
      case .key(let key):
        state = .text
        return key.map { special($0) } ?? .none
      }
    }
  }

  /// Makes `line` the input line again, because the caller could not accept it.
  public mutating func restore(_ line: [UInt8]) {
    set(line)
    if former.last == line { former.removeLast() }
    shown = former.count
  }

  // MARK: Keys

  private mutating func key(_ byte: UInt8) -> Action {
    switch byte {
    case 0x0D, 0x0A: return enter()
    case 0x01: return move(to: 0)
    case 0x02: return move(to: before(cursor))
    case 0x04: return text.isEmpty ? .end : delete(from: cursor, to: after(cursor))
    case 0x05: return move(to: text.count)
    case 0x06: return move(to: after(cursor))
    case 0x08, 0x7F: return delete(from: before(cursor), to: cursor)
    case 0x0B: return delete(from: cursor, to: text.count)
    case 0x0C: return .redraw
    case 0x0E: return show(shown + 1)
    case 0x10: return show(shown - 1)
    case 0x15: return delete(from: 0, to: cursor)
    case 0x17: return delete(from: wordStart, to: cursor)
    case 0x1B:
      state = .escape
      escape = EscapeSequence()
      return .none
    case 0x00...0x1F: return .refused
    case 0x20...0x7E: return insert([byte])
    default:
      let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2
      guard (0xC2...0xF4).contains(byte) else { return .refused }
      pending = [byte]
      state = .character(length)
      return .none
    }
  }

  private mutating func continueCharacter(_ byte: UInt8, _ length: Int) -> Action {
    guard byte & 0xC0 == 0x80 else {
      // The character is incomplete, and this byte is a separate key.
      state = .text
      return key(byte)
    }
    pending.append(byte)
    if pending.count < length { return .none }
    state = .text
    return UTF8Text.isValid(pending.span.bytes) ? insert(pending) : .refused
  }

  private mutating func special(_ key: TerminalKey) -> Action {
    switch key {
    case .up: show(shown - 1)
    case .down: show(shown + 1)
    case .right: move(to: after(cursor))
    case .left: move(to: before(cursor))
    case .home: move(to: 0)
    case .end: move(to: text.count)
    case .delete: delete(from: cursor, to: after(cursor))
    case .pageUp, .pageDown: .none
    }
  }

  // MARK: Changes

  private mutating func enter() -> Action {
    let line = text
    if !line.isEmpty && line.count <= Self.formerBytesMax && former.last != line {
      if former.count == Self.formerMax { former.removeFirst() }
      former.append(line)
    }
    set([])
    shown = former.count
    return .line(line)
  }

  private mutating func insert(_ bytes: [UInt8]) -> Action {
    guard text.count + bytes.count <= byteCountMax else { return .refused }
    text.insert(contentsOf: bytes, at: cursor)
    cursor += bytes.count
    return .changed
  }

  private mutating func delete(from start: Int, to end: Int) -> Action {
    guard start < end else { return .refused }
    text.removeSubrange(start..<end)
    cursor = start
    return .changed
  }

  private mutating func move(to offset: Int) -> Action {
    cursor = offset
    return .changed
  }

  private mutating func show(_ index: Int) -> Action {
    guard (0...former.count).contains(index), index != shown else { return .refused }
    if shown == former.count { draft = text }
    set(index == former.count ? draft : former[index])
    shown = index
    return .changed
  }

  private mutating func set(_ line: [UInt8]) {
    text = line
    cursor = line.count
  }

  // MARK: Positions

  /// The offset of the character before `offset`. Combining characters are skipped.
  private func before(_ offset: Int) -> Int {
    var start = offset
    while start > 0 {
      repeat { start -= 1 } while start > 0 && text[start] & 0xC0 == 0x80
      if characterWidth(character(text, at: start).scalar) > 0 { break }
    }
    return start
  }

  private func after(_ offset: Int) -> Int {
    var end = offset
    forEachCharacter(text, from: offset) { start, length, columns in
      if start > offset && columns > 0 { return false }
      end = start + length
      return true
    }
    return end
  }

  private var wordStart: Int {
    var start = cursor
    while start > 0, text[start - 1] == 0x20 { start -= 1 }
    while start > 0, text[start - 1] != 0x20 { start -= 1 }
    return start
  }

  // MARK: Drawing

  /// The part of the line that fits into `columns` columns, and the column of the cursor in this part. The column is
  /// always below `columns`.
  public func view(columns: Int) -> (text: [UInt8], cursor: Int) {
    let columns = max(columns, 2)
    var start = cursor, width = 0
    // Up to a third of the columns is reserved for text after the cursor.
    let behind = min(textWidth(Array(text[cursor...].prefix(4 * columns))), columns / 3)
    while start > 0 {
      let previous = before(start)
      let step = textWidth(Array(text[previous..<start]))
      if width + step > columns - 1 - behind { break }
      width += step
      start = previous
    }
    let rest = Array(text[start...])
    return (Array(rest.prefix(prefixLength(Array(rest.prefix(8 * columns)), columns: columns - 1))), width)
  }
}
