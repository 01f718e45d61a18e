import CommandLine
import Doctor
import Text

/// Formats the findings of `doctor` and `explain` for the width of the terminal.
enum FindingView {
  private static let textColumn = 22

  /// A finding as text: one line with its state, subject and text, and the remedy on the next line.
  static func text(_ state: Finding.State, _ subject: String, _ found: String, remedy: String) -> TextBuilder {
    var text = TextBuilder()
    switch state {
    case .good: text.add("good   ")
    case .note: text.add("note   ")
    case .wrong: text.add("WRONG  ")
    }
    let start = text.bytes.count
    text.add(untrusted: subject.utf8)
    text.pad(from: start, to: textColumn - 7)
    text.fill(Array(found.utf8), from: textColumn, columns: Output.columns)
    text.add("\n")
    add(remedy, at: textColumn, to: &text)
    return text
  }

  static func text(_ finding: Finding) -> TextBuilder {
    text(finding.state, "\(finding.check)", finding.text, remedy: finding.remedy)
  }

  /// Prints a verdict and its remedy.
  static func putVerdict(_ verdict: String, remedy: String) {
    var text = TextBuilder()
    text.fill(Array(verdict.utf8), from: 0, columns: Output.columns)
    text.add("\n")
    add(remedy, at: 2, to: &text)
    Output.put(text)
  }

  private static func add(_ remedy: String, at column: Int, to text: inout TextBuilder) {
    if remedy.utf8.isEmpty { return }
    text.pad(from: text.bytes.count, to: column - 2)
    text.add("→ ")
    text.fill(Array(remedy.utf8), from: column, columns: Output.columns)
    text.add("\n")
  }
}
