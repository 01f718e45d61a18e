import CSystem
import Diagnostics
import Primitives
import Reactor

/// Where transfers are shown: results on standard output, notices on standard error, and on a terminal one line below them
/// that says how far a transfer is. Or all as JSON.
final class FilesView {
  private static let lineTime = TimeSpan.milliseconds(250)
  private static let jsonTime = TimeSpan.seconds(1)
  private static let columnsDefault = 80

  let isJSON: Bool
  private let isTerminal: Bool
  private var isDrawn = false
  private var next = Instant.zero

  init(isJSON: Bool) {
    self.isJSON = isJSON
    isTerminal = !isJSON && isatty(STDERR_FILENO) == 1
  }

  /// Something for people alone.
  func notice(_ text: TextBuilder) {
    clear()
    printError(text)
  }

  /// How many lines that peers caused were left out.
  func leftOut(_ text: TextBuilder) {
    guard isJSON else { return notice(text) }
    var line = JSONLine(event: "left_out")
    line.add("text", text.bytes)
    line.put()
  }

  /// A result.
  func say(_ text: TextBuilder) {
    clear()
    var line = text
    line.add("\n")
    Output.put(line)
  }

  /// Takes the line of progress away.
  func clear() {
    guard isDrawn else { return }
    isDrawn = false
    TextBuilder("\r\u{1B}[K").write(to: STDERR_FILENO)
  }

  /// Whether a line says how far a transfer is: then there is no line for each file.
  var showsProgress: Bool { isTerminal }

  /// When progress is to be shown again.
  var nextProgress: Instant { isTerminal || isJSON ? next : .never }

  /// Whether it is time to show progress.
  func isProgressDue(_ now: Instant) -> Bool {
    guard isTerminal || isJSON, now >= next else { return false }
    next = now + (isJSON ? Self.jsonTime : Self.lineTime)
    return true
  }

  /// Draws the line below: text without wide characters.
  func draw(_ text: TextBuilder) {
    guard isTerminal else { return }
    var size = winsize(), columns = Self.columnsDefault
    if csystem_terminal_size(STDERR_FILENO, &size) == 0, size.ws_col > 0 { columns = min(columns, Int(size.ws_col)) }
    var line = TextBuilder("\r\u{1B}[K")
    for byte in text.bytes.prefix(columns - 1) { line.add(byte: byte) }
    line.write(to: STDERR_FILENO)
    isDrawn = true
  }
}

/// How fast a transfer is: over the last seconds.
struct FileProgress {
  private static let markTime = TimeSpan.milliseconds(500)
  private static let spanMarks = 10
  /// Without a byte for so long it stands still.
  private static let stallTime = TimeSpan.seconds(3)

  /// What is known of a transfer at a time.
  struct State {
    /// Of all files: there, or sent.
    var done: UInt64 = 0
    var total: UInt64 = 0
    /// Were there when this attempt began.
    var held: UInt64 = 0
    /// Sent or received, all attempts counted.
    var moved: UInt64 = 0
    /// What is there is being read and hashed: so many bytes of so many.
    var comparing: (done: UInt64, total: UInt64)?
  }

  private var marks: [(at: Instant, moved: UInt64)] = []
  private var lastMoved: UInt64 = 0
  private var lastChange = Instant.zero

  /// Bytes a second.
  private func rate(_ moved: UInt64, _ now: Instant) -> UInt64 {
    guard let first = marks.first, moved > first.moved else { return 0 }
    let milliseconds = max((now - first.at).milliseconds, 1)
    return (moved - first.moved).multipliedReportingOverflow(by: 1_000).partialValue / milliseconds
  }

  /// 61 %, 221 MB of 361 MB, 4.1 MB/s, 34 s left (120 MB were there)
  mutating func line(_ state: State, _ now: Instant) -> TextBuilder {
    if lastChange == .zero || state.moved != lastMoved { (lastMoved, lastChange) = (state.moved, now) }
    if now - (marks.last?.at ?? .zero) >= Self.markTime {
      if marks.count == Self.spanMarks { marks.removeFirst() }
      marks.append((now, state.moved))
    }
    var text = TextBuilder()
    if let comparing = state.comparing {
      text.add("comparing what is there: ")
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
      text.add(" were there)")
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
  /// 1 file, 5 bytes
  mutating func add(files: UInt64, bytes: UInt64) {
    add(files)
    add(files == 1 ? " file, " : " files, " as StaticString)
    add(bytesText(bytes))
  }
}
