import Diagnostics
import Terminal

/// A column of a grid.
struct GridColumn {
  let title: StaticString
  /// The fixed width, in columns. Shorter cells are padded so that columns do not move; longer cells are cut. Nil for
  /// the one flexible column, which takes the remaining width.
  let width: Int?
  /// Whether cells are right-aligned, as numbers are.
  let isNumber: Bool
  /// If the grid is too wide, columns with the highest rank are dropped first. Rank 0 is never dropped.
  let rank: Int

  init(_ title: StaticString, _ width: Int?, isNumber: Bool = false, rank: Int = 0) {
    self.title = title
    self.width = width
    self.isNumber = isNumber
    self.rank = rank
  }
}

/// A table that fits a given width by dropping columns of low importance.
struct Grid {
  /// The minimum and maximum width of the flexible column.
  private static let flexibleMin = 10
  private static let flexibleMax = 32
  private static let gap = 2

  private let columns: [GridColumn]
  private var rows: [[[UInt8]]] = []

  init(_ columns: [GridColumn]) { self.columns = columns }

  /// Adds a row. Cells may contain untrusted text, which is sanitised here.
  mutating func add(_ cells: [[UInt8]]) {
    rows.append(
      cells.map { cell in
        var text = TextBuilder()
        text.add(untrusted: cell)
        return text.bytes
      })
  }

  /// The title line and the rows, none wider than `width`.
  func lines(_ width: Int) -> [ScreenLine] {
    var shown = Array(columns.indices)
    while fixedWidth(shown) + Self.flexibleMin > width, let last = mostDispensable(shown) { shown.remove(at: last) }
    let room = min(max(width - fixedWidth(shown), 1), Self.flexibleMax)
    let titles = ScreenLine(line(columns.map { Array("\($0.title)".utf8) }, shown, room, width), .bold)
    return [titles] + rows.map { ScreenLine(line($0, shown, room, width)) }
  }

  /// The width without the flexible column.
  private func fixedWidth(_ shown: [Int]) -> Int {
    shown.reduce(-Self.gap) { $0 + (columns[$1].width ?? 0) + Self.gap }
  }

  private func mostDispensable(_ shown: [Int]) -> Int? {
    var found: Int?
    for (place, index) in shown.enumerated() where columns[index].rank > 0 {
      if let other = found, columns[shown[other]].rank >= columns[index].rank { continue }
      found = place
    }
    return found
  }

  private func line(_ cells: [[UInt8]], _ shown: [Int], _ room: Int, _ width: Int) -> [UInt8] {
    var line: [UInt8] = []
    for index in shown {
      let wide = columns[index].width ?? room
      let cell = fitted(cells[index], wide)
      let blanks = [UInt8](repeating: 0x20, count: wide - textWidth(cell))
      if index != shown[0] { line += [UInt8](repeating: 0x20, count: Self.gap) }
      line += columns[index].isNumber ? blanks + cell : cell + blanks
    }
    while line.last == 0x20 { line.removeLast() }
    return fitted(line, width)
  }
}

/// A text cut to `columns` columns; a text that was cut ends with “…”.
func fitted(_ text: [UInt8], _ columns: Int) -> [UInt8] {
  let whole = prefixLength(text, columns: columns)
  if whole == text.count { return text }
  return Array(text[..<prefixLength(text, columns: max(columns - 1, 0))]) + (columns > 0 ? Array("…".utf8) : [])
}
