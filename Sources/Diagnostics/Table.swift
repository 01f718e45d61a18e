/// Text in columns, each as wide as its widest cell.
public struct Table {
  private var rows: [[[UInt8]]] = []

  public init(_ titles: [String]) { add(titles) }

  /// Cells are untrusted text.
  public mutating func add(_ cells: [String]) {
    rows.append(
      cells.map { cell in
        var text = TextBuilder()
        text.add(untrusted: cell.utf8)
        return text.bytes
      })
  }

  public var isEmpty: Bool { rows.count == 1 }

  public func write(to text: inout TextBuilder) {
    var widths = [Int](repeating: 0, count: rows[0].count)
    for row in rows {
      for (column, cell) in row.enumerated() { widths[column] = max(widths[column], Self.width(cell)) }
    }
    for row in rows {
      for (column, cell) in row.enumerated() {
        let start = text.bytes.count
        for byte in cell { text.add(byte: byte) }
        // No trailing blanks after the last cell with text.
        if row[(column + 1)...].contains(where: { !$0.isEmpty }) { text.pad(from: start, to: widths[column] + 2) }
      }
      text.add("\n")
    }
  }

  private static func width(_ cell: [UInt8]) -> Int {
    var width = 0
    for byte in cell where byte & 0xC0 != 0x80 { width += 1 }
    return width
  }
}

/// A number of bytes as text: 1.5 MB.
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

/// A short time as text: 1.5 ms.
public func millisecondsText(_ microseconds: UInt64) -> String {
  microseconds < 10_000
    ? "\(microseconds / 1000).\(microseconds / 100 % 10) ms" : "\(microseconds / 1000) ms"
}

/// A duration as text: 3 min 12 s.
public func secondsText(_ seconds: UInt64) -> String {
  if seconds < 60 { return "\(seconds) s" }
  if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
  if seconds < 86400 { return "\(seconds / 3600) h \(seconds / 60 % 60) min" }
  return "\(seconds / 86400) d \(seconds / 3600 % 24) h"
}
