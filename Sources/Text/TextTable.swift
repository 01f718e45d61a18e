/// A table whose columns are as wide as their widest cells, if the terminal is wide enough.
///
/// If the terminal is too narrow, cells of the columns in `cuttable` are truncated with “…”, and the last column is
/// wrapped between words. If less than `lastWidthMin` characters remain for the last column, its cell is printed below
/// the row.
public struct TextTable {
  /// The minimum width of a truncated column, in characters.
  private static let cutWidthMin = 8
  /// The minimum width of the last column when it is printed on the line of the other columns, in characters.
  private static let lastWidthMin = 20
  /// The indentation of the last cell when it is printed below its row, in characters.
  private static let indentation = 4

  private var rows: [[[UInt8]]] = []
  private let cuttable: [Int]

  /// Creates a table with its row of titles. `cuttable`: the indices of the columns whose cells may be truncated,
  /// without the last column.
  public init(_ titles: [String], cuttable: [Int] = []) {
    self.cuttable = cuttable
    add(titles)
  }

  /// Adds a row. Cells are untrusted text; the last cell may be a complete message, whose quotation marks are kept.
  public mutating func add(_ cells: [String]) {
    var row: [[UInt8]] = []
    for cell in cells {
      var text = TextBuilder()
      if row.count == cells.count - 1 { text.add(message: cell.utf8) } else { text.add(untrusted: cell.utf8) }
      row.append(text.bytes)
    }
    rows.append(row)
  }

  public var isEmpty: Bool { rows.count == 1 }

  /// Writes the table. `columns`: the width of the terminal in characters. A line is wider than that only if nothing
  /// can be truncated or wrapped.
  public func write(to text: inout TextBuilder, columns: Int = .max) {
    var widths = widest
    let last = widths.count - 1
    let room = columns == .max ? .max : columns - min(widths[last], Self.lastWidthMin)
    let isBelow = !cut(&widths, to: room)
    if isBelow {
      widths = widest
      _ = cut(&widths, to: columns + 2)
    }
    let start = widths[..<last].reduce(0) { $0 + $1 + 2 }
    for row in rows {
      let lineStart = text.bytes.count
      // Omits blanks after the last cell with text.
      let filled = row[..<(isBelow ? last : last + 1)].lastIndex { !$0.isEmpty } ?? 0
      for (column, cell) in row[...filled].enumerated() where column < last {
        text.add(cell, cutTo: widths[column])
        if column < filled {
          text.pad(from: lineStart, to: widths[...column].reduce(0) { $0 + $1 + 2 })
        }
      }
      if isBelow && !row[last].isEmpty {
        text.add("\n")
        text.pad(from: text.bytes.count, to: Self.indentation)
        text.fill(row[last], from: Self.indentation, columns: columns)
      } else if filled == last {
        text.fill(row[last], from: start, columns: columns)
      }
      text.add("\n")
    }
  }

  /// The width of the widest cell in each column.
  private var widest: [Int] {
    var widths = [Int](repeating: 0, count: rows[0].count)
    for row in rows {
      for (column, cell) in row.enumerated() { widths[column] = max(widths[column], displayWidth(cell)) }
    }
    return widths
  }

  /// Truncates the cuttable columns, widest first, until the columns before the last one and their separators fit into
  /// `room` characters. Returns false if the columns cannot be truncated far enough.
  private func cut(_ widths: inout [Int], to room: Int) -> Bool {
    while widths.dropLast().reduce(0, { $0 + $1 + 2 }) > room {
      guard let widest = cuttable.filter({ widths[$0] > widthMin($0) }).max(by: { widths[$0] < widths[$1] }) else {
        return false
      }
      widths[widest] -= 1
    }
    return true
  }

  /// The minimum width of a column. Titles are not truncated.
  private func widthMin(_ column: Int) -> Int { max(displayWidth(rows[0][column]), Self.cutWidthMin) }
}

extension TextBuilder {
  /// Adds text on lines of at most `columns` characters. The text is wrapped between words, and continuation lines
  /// start at column `start`. Words are separated by blanks and never split.
  public mutating func fill(_ words: some Collection<UInt8>, from start: Int, columns: Int) {
    var column = start
    for word in words.split(separator: 0x20) {
      let width = displayWidth(word)
      if column > start {
        let fits = width < columns - column
        add(fits ? " " : "\n")
        if !fits { pad(from: bytes.count, to: start) }
        column = fits ? column + 1 : start
      }
      add(message: word)
      column += width
    }
  }

  /// Adds text, truncated with “…” if it is longer than `width` characters.
  fileprivate mutating func add(_ cell: [UInt8], cutTo width: Int) {
    let isCut = displayWidth(cell) > width
    var room = isCut ? width - 1 : width
    for byte in cell {
      if byte & 0xC0 != 0x80 { room -= 1 }
      if room < 0 { break }
      add(byte: byte)
    }
    if isCut { add("…") }
  }
}

/// The number of characters of a UTF-8 text.
private func displayWidth(_ text: some Sequence<UInt8>) -> Int {
  var width = 0
  for byte in text where byte & 0xC0 != 0x80 { width += 1 }
  return width
}

/// A number of bytes as text, such as “1.5 MB”.
public func bytesText(_ bytes: UInt64) -> String {
  if bytes < 1000 { return "\(bytes) B" }
  var unit: StaticString = "kB"
  var tenths = bytes / 100
  for next in ["MB", "GB", "TB"] as [StaticString] where tenths >= 10_000 {
    tenths /= 1000
    unit = next
  }
  return tenths >= 1000 ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
}

/// A short time as text, such as “1.5 ms”.
public func millisecondsText(_ microseconds: UInt64) -> String {
  microseconds < 10_000
    ? "\(microseconds / 1000).\(microseconds / 100 % 10) ms" : "\(microseconds / 1000) ms"
}

/// A duration as text, such as “3 min 12 s”.
public func secondsText(_ seconds: UInt64) -> String {
  if seconds < 60 { return "\(seconds) s" }
  if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
  if seconds < 86400 { return "\(seconds / 3600) h \(seconds / 60 % 60) min" }
  return "\(seconds / 86400) d \(seconds / 3600 % 24) h"
}

/// A duration as text in its largest unit only, such as “3 min”.
public func ageText(_ seconds: UInt64) -> String {
  if seconds < 60 { return "\(seconds) s" }
  if seconds < 3600 { return "\(seconds / 60) min" }
  if seconds < 86400 { return "\(seconds / 3600) h" }
  return "\(seconds / 86400) d"
}
