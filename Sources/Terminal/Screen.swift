import CSystem
import Diagnostics
import Primitives

/// A terminal on standard input and output whose keys come one by one, and nothing of them is drawn by the system. `close`
/// gives it back as it was.
public final class Screen {
  /// What is assumed of a terminal that does not say its size.
  private static let columnsDefault = 80
  private static let rowsDefault = 24

  private var former: termios
  private var isOpen = false
  /// Text may be bright, dim or coloured: the user did not set NO_COLOR (no-color.org).
  public let hasColour: Bool

  /// Nil when standard input or output is no terminal, or one that cannot move its cursor.
  public init?() {
    guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else { return nil }
    if let type = getenv("TERM"), strcmp(type, "dumb") == 0 || type.pointee == 0 { return nil }
    former = termios()
    guard tcgetattr(STDIN_FILENO, &former) == 0 else { return nil }
    let setting = getenv("NO_COLOR")
    hasColour = setting == nil || setting?.pointee == 0
    open()
  }

  /// Takes the terminal, again after `close`.
  public func open() {
    var mode = former
    mode.c_lflag &= ~(tcflag_t(ICANON) | tcflag_t(ECHO))
    mode.c_iflag &= ~(tcflag_t(IXON) | tcflag_t(ICRNL))
    // ^V and ^O are no keys of ours, and the driver would take them.
    mode.c_lflag &= ~tcflag_t(IEXTEN)
    isOpen = tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) == 0
  }

  public func close() {
    if isOpen { tcsetattr(STDIN_FILENO, TCSADRAIN, &former) }
    isOpen = false
  }

  deinit { close() }

  /// Stops this process as ^Z does, and takes the terminal again when it goes on.
  public func suspend() {
    close()
    kill(getpid(), SIGSTOP)
    open()
  }

  public var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard csystem_terminal_size(STDOUT_FILENO, &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return (Self.columnsDefault, Self.rowsDefault)
    }
    return (Int(size.ws_col), Int(size.ws_row))
  }
}

/// A screen on which lines appear above the one that is being typed, which is never broken by them.
public final class TypingScreen {
  public let screen: Screen
  public private(set) var editor: LineEditor
  /// What stands before the line.
  public var prompt: [UInt8] = Array("> ".utf8)
  /// Writes; false when the terminal is gone.
  private let put: (TextBuilder) -> Void

  public init(_ screen: Screen, byteCountMax: Int, _ put: @escaping (TextBuilder) -> Void) {
    self.screen = screen
    self.put = put
    editor = LineEditor(byteCountMax: byteCountMax)
    draw()
  }

  /// Shows a whole line above, without its end.
  public func show(_ line: TextBuilder, isDim: Bool = false) {
    var text = TextBuilder()
    text.add("\r\u{1B}[K")
    let isDim = isDim && screen.hasColour
    if isDim { text.add("\u{1B}[2m") }
    for byte in line.bytes { text.add(byte: byte) }
    if isDim { text.add("\u{1B}[m") }
    text.add("\r\n")
    draw(behind: text)
  }

  /// Draws the line that is being typed.
  public func draw() { draw(behind: TextBuilder()) }

  private func draw(behind before: TextBuilder) {
    var text = before
    let columns = screen.size.columns
    let promptWidth = textWidth(prompt)
    let room = columns - promptWidth
    let view = editor.view(columns: max(room, 2))
    text.add("\r\u{1B}[K")
    if room >= 2 { text.add(verbatim: prompt) }
    text.add(verbatim: view.text)
    let column = (room >= 2 ? promptWidth : 0) + view.cursor
    text.add("\r")
    if column > 0 { text.add("\u{1B}[\(column)C") }
    put(text)
  }

  /// Takes a key, and draws what it changed.
  public func take(_ byte: UInt8) -> LineEditor.Action {
    let action = editor.take(byte)
    switch action {
    case .none, .end: break
    case .changed, .line: draw()
    case .refused: ring()
    case .redraw:
      var text = TextBuilder()
      text.add("\u{1B}[H\u{1B}[2J")
      draw(behind: text)
    }
    return action
  }

  public func ring() {
    var bell = TextBuilder()
    bell.add(byte: 7)
    put(bell)
  }

  /// Puts a line back that could not be taken.
  public func restore(_ line: [UInt8]) {
    editor.restore(line)
    draw()
  }

  /// Leaves no line behind, and gives the terminal back.
  public func close() {
    var text = TextBuilder()
    text.add("\r\u{1B}[K")
    put(text)
    screen.close()
  }
}
