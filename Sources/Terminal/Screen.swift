import CSystem
import Primitives
import Text

/// A terminal on standard input and output, in a mode that delivers each key immediately and without echo. `close`
/// restores the former mode.
public final class Screen {
  /// The assumed size of a terminal that does not report its size.
  private static let columnsDefault = 80
  private static let rowsDefault = 24

  private var former: termios
  private var isOpen = false
  /// Whether text may be bold, dim or coloured. The value is false if the user set NO_COLOR (no-color.org).
  public let hasColour: Bool

  /// Returns nil if standard input or output is not a terminal, or if the terminal cannot move its cursor.
  public init?() {
    guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else { return nil }
    if let type = getenv("TERM"), strcmp(type, "dumb") == 0 || type.pointee == 0 { return nil }
    former = termios()
    guard tcgetattr(STDIN_FILENO, &former) == 0 else { return nil }
    let setting = getenv("NO_COLOR")
    hasColour = setting == nil || setting?.pointee == 0
    open()
  }

  /// Sets the mode of the terminal. The method can be called again after `close`.
  public func open() {
    var mode = former
    mode.c_lflag &= ~(tcflag_t(ICANON) | tcflag_t(ECHO))
    mode.c_iflag &= ~(tcflag_t(IXON) | tcflag_t(ICRNL))
    // Without this change, the terminal driver would process ^V and ^O itself.
    mode.c_lflag &= ~tcflag_t(IEXTEN)
    isOpen = tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) == 0
  }

  /// Restores the terminal's former mode.
  public func close() {
    if isOpen { tcsetattr(STDIN_FILENO, TCSADRAIN, &former) }
    isOpen = false
  }

  deinit { close() }

  /// Stops this process, as ^Z does, and takes over the terminal again when the process continues.
  public func suspend() {
    close()
    kill(getpid(), SIGSTOP)
    open()
  }

  /// The size of the terminal, or 80 × 24 if the terminal does not report its size.
  public var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard csystem_terminal_size(STDOUT_FILENO, &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return (Self.columnsDefault, Self.rowsDefault)
    }
    return (Int(size.ws_col), Int(size.ws_row))
  }
}

/// A terminal with an input line at the bottom. Output appears above the input line and leaves it intact.
public final class TypingScreen {
  public let screen: Screen
  public private(set) var editor: LineEditor
  /// The text before the input line.
  public var prompt: [UInt8] = Array("> ".utf8)
  /// Writes text to the terminal.
  private let put: (TextBuilder) -> Void

  public init(_ screen: Screen, byteCountMax: Int, _ put: @escaping (TextBuilder) -> Void) {
    self.screen = screen
    self.put = put
    editor = LineEditor(byteCountMax: byteCountMax)
    draw()
  }

  /// Shows a line of text above the input line. `line` must not end with a line terminator.
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

  /// Draws the input line.
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

  /// Handles one byte of input and draws the change.
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

  /// Rings the terminal's bell.
  public func ring() {
    var bell = TextBuilder()
    bell.add(byte: 7)
    put(bell)
  }

  /// Puts back a line that could not be accepted.
  public func restore(_ line: [UInt8]) {
    editor.restore(line)
    draw()
  }

  /// Erases the input line and restores the terminal's former mode.
  public func close() {
    var text = TextBuilder()
    text.add("\r\u{1B}[K")
    put(text)
    screen.close()
  }
}
