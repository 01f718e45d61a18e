import Diagnostics
import Doctor

/// How `doctor` and `explain` show what they found, in 80 columns.
enum FindingView {
  private static let textColumn = 22
  private static let columns = 80

  /// A word, what was looked at, what was found, and the remedy below it.
  static func put(_ state: Finding.State, _ subject: String, _ found: String, remedy: String) {
    var text = TextBuilder()
    switch state {
    case .good: text.add("good   ")
    case .note: text.add("note   ")
    case .wrong: text.add("WRONG  ")
    }
    let start = text.bytes.count
    text.add(untrusted: subject.utf8)
    text.pad(from: start, to: textColumn - 7)
    fill(&text, found, from: textColumn)
    add(remedy, at: textColumn, to: &text)
    Output.put(text)
  }

  /// What all of it comes to, and the remedy below it.
  static func putVerdict(_ verdict: String, remedy: String) {
    var text = TextBuilder()
    fill(&text, verdict, from: 0)
    add(remedy, at: 2, to: &text)
    Output.put(text)
  }

  private static func add(_ remedy: String, at column: Int, to text: inout TextBuilder) {
    if remedy.utf8.isEmpty { return }
    text.pad(from: text.bytes.count, to: column - 2)
    text.add("→ ")
    fill(&text, remedy, from: column)
  }

  /// Adds lines of words that begin at a column, where the first one stands already.
  private static func fill(_ text: inout TextBuilder, _ words: String, from first: Int) {
    var column = first
    for word in words.utf8.split(separator: 0x20) {
      let width = word.count { $0 & 0xC0 != 0x80 }
      if column > first {
        let fits = column + 1 + width <= columns
        text.add(fits ? " " : "\n")
        if !fits { text.pad(from: text.bytes.count, to: first) }
        column = fits ? column + 1 : first
      }
      text.add(untrusted: word)
      column += width
    }
    text.add("\n")
  }
}
