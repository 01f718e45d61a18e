import Diagnostics
import Terminal

/// A column of a grid.
struct GridColumn {
  let title: StaticString
  /// Its width, also with shorter cells, so that columns stand still; longer cells are cut. Nil for the one column that
  /// takes what is left.
  let width: Int?
  /// Numbers stand at the right.
  let isNumber: Bool
  /// The columns of the highest rank go first where there is no room.
  let rank: Int

  init(_ title: StaticString, _ width: Int?, isNumber: Bool = false, rank: Int = 0) {
    self.title = title
    self.width = width
    self.isNumber = isNumber
    self.rank = rank
  }
}

/// Rows of cells that fit a width, with or without some of their columns.
struct Grid {
  /// The least and the greatest width of the column that takes what is left.
  private static let flexibleMin = 10
  private static let flexibleMax = 32
  private static let gap = 2

  private let columns: [GridColumn]
  private var rows: [[[UInt8]]] = []

  init(_ columns: [GridColumn]) { self.columns = columns }

  /// Cells are untrusted text.
  mutating func add(_ cells: [[UInt8]]) {
    rows.append(
      cells.map { cell in
        var text = TextBuilder()
        text.add(untrusted: cell)
        return text.bytes
      })
  }

  /// The titles and the rows, none wider than `width`.
  func lines(_ width: Int) -> [ScreenLine] {
    var shown = Array(columns.indices)
    while fixedWidth(shown) + Self.flexibleMin > width, let last = mostDispensable(shown) { shown.remove(at: last) }
    let room = min(max(width - fixedWidth(shown), 1), Self.flexibleMax)
    let titles = ScreenLine(line(columns.map { Array("\($0.title)".utf8) }, shown, room, width), .bold)
    return [titles] + rows.map { ScreenLine(line($0, shown, room, width)) }
  }

  /// Without the column that takes the rest.
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

/// A text in so many columns: what is longer is cut, and ends with “…”.
func fitted(_ text: [UInt8], _ columns: Int) -> [UInt8] {
  let whole = prefixLength(text, columns: columns)
  if whole == text.count { return text }
  return Array(text[..<prefixLength(text, columns: max(columns - 1, 0))]) + (columns > 0 ? Array("…".utf8) : [])
}
