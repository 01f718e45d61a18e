import Terminal
import Text

/// A column of a grid.
struct GridColumn {
  let title: StaticString
  /// The fixed width, in columns of the terminal. Shorter cells are padded, so that columns do not move between
  /// updates, and longer cells are truncated. Nil for the one flexible column, which gets the remaining width.
  let width: Int?
  /// Whether cells are right-aligned, as numbers are.
  let isNumber: Bool
  /// The order in which columns are omitted if the grid is too wide: the highest rank first. A column of rank 0 is
  /// never omitted.
  let rank: Int

  init(_ title: StaticString, _ width: Int?, isNumber: Bool = false, rank: Int = 0) {
    self.title = title
    self.width = width
    self.isNumber = isNumber
    self.rank = rank
  }
}

/// A table that fits into a given width by omitting the less important columns.
struct Grid {
  /// The minimum and maximum width of the flexible column, in columns of the terminal.
  private static let flexibleMin = 10
  private static let flexibleMax = 32
  private static let gap = 2

  private let columns: [GridColumn]
  private var rows: [[[UInt8]]] = []

  init(_ columns: [GridColumn]) { self.columns = columns }

  /// Adds a row. Cells can contain untrusted text (`TextBuilder.add(untrusted:)`).
  mutating func add(_ cells: [[UInt8]]) {
    rows.append(
      cells.map { cell in
        var text = TextBuilder()
        text.add(untrusted: cell)
        return text.bytes
      })
  }

  /// The line of titles and the rows, as lines of at most `width` columns of the terminal.
  func lines(_ width: Int) -> [ScreenLine] {
    var shown = Array(columns.indices)
    while fixedWidth(shown) + Self.flexibleMin > width, let last = mostDispensable(shown) { shown.remove(at: last) }
    let room = min(max(width - fixedWidth(shown), 1), Self.flexibleMax)
    let titles = ScreenLine(line(columns.map { Array("\($0.title)".utf8) }, shown, room, width), .bold)
    return [titles] + rows.map { ScreenLine(line($0, shown, room, width)) }
  }

  /// The width of the shown columns and the gaps between them, without the flexible column.
  private func fixedWidth(_ shown: [Int]) -> Int {
    shown.reduce(-Self.gap) { $0 + (columns[$1].width ?? 0) + Self.gap }
  }

  private func mostDispensable(_ shown: [Int]) -> Int? {
    var found: Int?
    for (position, index) in shown.enumerated() where columns[index].rank > 0 {
      if let other = found, columns[shown[other]].rank >= columns[index].rank { continue }
      found = position
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

/// The text, truncated with “…” if it is wider than `columns` columns of the terminal.
func fitted(_ text: [UInt8], _ columns: Int) -> [UInt8] {
  let whole = prefixLength(text, columns: columns)
  if whole == text.count { return text }
  return Array(text[..<prefixLength(text, columns: max(columns - 1, 0))]) + (columns > 0 ? Array("…".utf8) : [])
}
