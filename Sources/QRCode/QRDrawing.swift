extension QRSymbol {
  /// The width of the drawing, in columns.
  public var columns: Int { sideModules + 2 * Self.marginModules }

  /// The symbol and its margin as UTF-8 text, two rows of modules per line. Light modules are drawn in the foreground
  /// colour, and dark modules are background. So the drawing is correct on a dark terminal.
  ///
  /// `isColoured` adds escape sequences for white on black, so the drawing is correct with any colours of the terminal.
  public func lines(isColoured: Bool) -> [UInt8] {
    var text: [UInt8] = []
    let rows = -Self.marginModules..<(sideModules + Self.marginModules)
    for row in stride(from: rows.lowerBound, to: rows.upperBound, by: 2) {
      if isColoured { text += "\u{1B}[40;37;1m".utf8 }
      for column in rows {
        let isUpperLight = !isDark(column: column, row: row)
        let isLowerLight = row + 1 < rows.upperBound && !isDark(column: column, row: row + 1)
        switch (isUpperLight, isLowerLight) {
        case (true, true): text += "█".utf8
        case (true, false): text += "▀".utf8
        case (false, true): text += "▄".utf8
        case (false, false): text.append(0x20)
        }
      }
      if isColoured { text += "\u{1B}[0m".utf8 }
      text.append(0x0A)
    }
    return text
  }
}
