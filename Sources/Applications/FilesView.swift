import CommandLine
import Primitives
import Text

/// Shows transfers. Results are written to standard output, notices to standard error. On a terminal, a line of
/// progress is kept below them. With --json, each result is a JSON object.
final class FilesView {
  private static let lineTime = TimeSpan.milliseconds(250)
  private static let jsonTime = TimeSpan.seconds(1)
  private static let columnsDefault = 80

  let isJSON: Bool
  let console: any Console
  private let isTerminal: Bool
  private var isDrawn = false
  private var next = Instant.zero

  init(isJSON: Bool, _ console: any Console) {
    self.isJSON = isJSON
    self.console = console
    isTerminal = !isJSON && console.showsProgress
  }

  /// Shows a notice for people.
  func notice(_ text: TextBuilder) {
    clear()
    console.putError(text)
  }

  /// Shows the number of lines that were omitted because peers caused too many (`PeerLines`).
  func leftOut(_ text: TextBuilder) {
    guard isJSON else { return notice(text) }
    var line = JSONLine(event: "left_out")
    line.add("text", text.bytes)
    line.put(on: console)
  }

  /// Shows a result.
  func say(_ text: TextBuilder) {
    clear()
    var line = text
    line.add("\n")
    console.put(line)
  }

  /// Erases the line of progress.
  func clear() {
    guard isDrawn else { return }
    isDrawn = false
    console.draw(TextBuilder("\r\u{1B}[K"))
  }

  /// Whether the output has a line of progress. If so, files that were stored are not shown one by one.
  var showsProgress: Bool { isTerminal }

  /// The time when progress is shown again; `.never` if progress is not shown.
  var nextProgress: Instant { isTerminal || isJSON ? next : .never }

  /// Whether progress must be shown now. If so, also sets the time of the next progress.
  func isProgressDue(_ now: Instant) -> Bool {
    guard isTerminal || isJSON, now >= next else { return false }
    next = now + (isJSON ? Self.jsonTime : Self.lineTime)
    return true
  }

  /// Draws the line of progress. The text has no wide characters.
  func draw(_ text: TextBuilder) {
    guard isTerminal else { return }
    let columns = min(Self.columnsDefault, console.progressColumns ?? Self.columnsDefault)
    var line = TextBuilder("\r\u{1B}[K")
    for byte in text.bytes.prefix(columns - 1) { line.add(byte: byte) }
    console.draw(line)
    isDrawn = true
  }
}

/// Formats the progress of a transfer, with its rate over the last 5 s.
struct FileProgress {
  private static let markTime = TimeSpan.milliseconds(500)
  private static let spanMarks = 10
  /// The time without a byte after which a transfer is shown as stalled.
  private static let stallTime = TimeSpan.seconds(3)

  /// The state of a transfer at one moment, in bytes.
  struct State {
    /// Bytes of all files that are stored or sent.
    var done: UInt64 = 0
    var total: UInt64 = 0
    /// Bytes that the receiver had stored before this attempt.
    var held: UInt64 = 0
    /// Bytes sent or received in all attempts.
    var moved: UInt64 = 0
    /// The number of bytes compared so far, and of all bytes to compare. Nil unless stored data is being read and
    /// hashed.
    var comparing: (done: UInt64, total: UInt64)?
  }

  private var marks: [(at: Instant, moved: UInt64)] = []
  private var lastMoved: UInt64 = 0
  private var lastChange = Instant.zero

  /// The rate in bytes per second.
  private func rate(_ moved: UInt64, _ now: Instant) -> UInt64 {
    guard let first = marks.first, moved > first.moved else { return 0 }
    let milliseconds = max((now - first.at).milliseconds, 1)
    return (moved - first.moved).multipliedReportingOverflow(by: 1_000).partialValue / milliseconds
  }

  /// The progress as text, for example: 61 %, 221 MB of 361 MB, 4.1 MB/s, 34 s left (120 MB already there)
  mutating func line(_ state: State, _ now: Instant) -> TextBuilder {
    if lastChange == .zero || state.moved != lastMoved { (lastMoved, lastChange) = (state.moved, now) }
    if now - (marks.last?.at ?? .zero) >= Self.markTime {
      if marks.count == Self.spanMarks { marks.removeFirst() }
      marks.append((now, state.moved))
    }
    var text = TextBuilder()
    if let comparing = state.comparing {
      text.add("comparing existing data: ")
      text.add(bytesText(comparing.done))
      text.add(" of ")
      text.add(bytesText(comparing.total))
      lastChange = now
      return text
    }
    text.add(state.total == 0 ? 100 : min(state.done / max(state.total / 100, 1), 100))
    text.add(" %, ")
    text.add(bytesText(state.done))
    text.add(" of ")
    text.add(bytesText(state.total))
    let rate = rate(state.moved, now), still = now - lastChange
    if still >= Self.stallTime {
      text.add(", stalled for ")
      text.add(secondsText(still.milliseconds / 1_000))
    } else if rate > 0 {
      text.add(", ")
      text.add(bytesText(rate))
      text.add("/s, ")
      text.add(secondsText((state.total - min(state.done, state.total)) / rate))
      text.add(" left")
    }
    if state.held > 0 {
      text.add(" (")
      text.add(bytesText(state.held))
      text.add(" already there)")
    }
    return text
  }
}

extension JSONLine {
  mutating func add(_ state: FileProgress.State) {
    add("done", state.done)
    add("bytes", state.total)
    add("held", state.held)
    add("moved", state.moved)
    add("comparing", state.comparing != nil)
  }
}

extension TextBuilder {
  /// Adds a number of files and of bytes, for example: 1 file, 5 B
  mutating func add(files: UInt64, bytes: UInt64) {
    add(files)
    add(files == 1 ? " file, " : " files, " as StaticString)
    add(bytesText(bytes))
  }
}
