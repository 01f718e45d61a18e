import CSystem
import Text

/// A line of a full screen. The text must be sanitised and no wider than the screen.
public struct ScreenLine: Equatable {
  /// The style of a line. A style must not carry information that the text lacks, because NO_COLOR removes styles.
  public enum Style: UInt8, Sendable { case plain, bold, dim, inverse, alarm }

  public let text: [UInt8]
  public let style: Style

  public init(_ text: [UInt8], _ style: Style = .plain) {
    self.text = text
    self.style = style
  }
}

/// The complete screen of a terminal, drawn line by line. `close` restores the previous content.
///
/// Drawing uses only sequences of ECMA-48 and xterm's alternate screen (1049). Terminals of the last twenty years
/// support or ignore these sequences, so no terminal database is needed.
///
/// Drawing does not block if the terminal does not read. In this case `flush` writes the rest of a page later, and new
/// pages are dropped until then.
public final class FullScreen {
  private static let begin: StaticString = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[m\u{1B}[H\u{1B}[2J"
  private static let end: StaticString = "\u{1B}[m\u{1B}[?25h\u{1B}[?1049l"
  /// The maximum number of 100 ms waits in `close` for a terminal that does not read.
  private static let endWaitsMax = 10

  private let screen: Screen
  /// Standard output, reopened if possible, so that non-blocking mode does not affect other processes that share it.
  public let descriptor: CInt
  private var pending: [UInt8] = []
  private var shown: [ScreenLine] = []
  private var shownColumns = 0
  private var isOpen = false
  /// Whether writing to the terminal has failed.
  public private(set) var hasFailed = false

  public init(_ screen: Screen) {
    self.screen = screen
    let own = csystem_open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0)
    descriptor = own >= 0 ? own : STDOUT_FILENO
    open()
  }

  deinit {
    close()
    if descriptor != STDOUT_FILENO { CSystem.close(descriptor) }
  }

  public var size: (columns: Int, rows: Int) { screen.size }

  /// Whether output is not written yet because the terminal does not read.
  public var isWaiting: Bool { !pending.isEmpty && !hasFailed }

  /// Shows these lines from the top of the screen and clears the rest. Returns false if the terminal has not read the
  /// previous page yet.
  @discardableResult public func draw(_ lines: [ScreenLine]) -> Bool {
    guard pending.isEmpty, !hasFailed, isOpen else { return false }
    let (columns, rows) = size
    var page = TextBuilder()
    if columns != shownColumns {
      page.add("\u{1B}[2J")
      shown = []
    }
    for row in 0..<rows {
      let line = row < lines.count ? lines[row] : ScreenLine([])
      if row < shown.count && shown[row] == line { continue }
      page.add("\u{1B}[\(row + 1);1H")
      let isStyled = begin(line.style, &page)
      for byte in line.text { page.add(byte: byte) }
      if isStyled { page.add("\u{1B}[m") }
      // After a line as wide as the screen, this sequence would erase the last character.
      if textWidth(line.text) < columns { page.add("\u{1B}[K") }
    }
    shown = Array(lines.prefix(rows)) + [ScreenLine](repeating: ScreenLine([]), count: max(rows - lines.count, 0))
    shownColumns = columns
    pending = page.bytes
    flush()
    return true
  }

  /// Writes as much pending output as the terminal accepts now.
  public func flush() {
    while !pending.isEmpty && !hasFailed {
      let count = pending.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        pending.removeFirst(count)
      } else if count == 0 || csystem_errno() != EINTR {
        hasFailed = count == 0 || csystem_errno() != EAGAIN
        return
      }
    }
  }

  /// Makes the next call of `draw` redraw all lines, because the terminal may show something else.
  public func forget() { shownColumns = 0 }

  /// Stops this process, as ^Z does, and takes over the screen again when the process continues.
  public func suspend() {
    leave()
    screen.suspend()
    open()
  }

  /// Takes over the screen again after another process stopped and continued this process.
  public func resume() {
    leave()
    screen.open()
    open()
  }

  /// Restores the terminal's content and mode. Waits at most 1 s for a terminal that does not read.
  public func close() {
    leave()
    screen.close()
  }

  private func open() {
    isOpen = true
    pending += Self.begin.withUTF8Buffer { Array($0) }
    flush()
    forget()
  }

  private func leave() {
    guard isOpen else { return }
    isOpen = false
    pending += Self.end.withUTF8Buffer { Array($0) }
    flush()
    for _ in 0..<Self.endWaitsMax where isWaiting {
      var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      poll(&polled, 1, 100)
      flush()
    }
    pending = []
  }

  /// Starts a style. Returns whether the style must be reset after the line.
  private func begin(_ style: ScreenLine.Style, _ page: inout TextBuilder) -> Bool {
    guard screen.hasColour else { return false }
    switch style {
    case .plain: return false
    case .bold: page.add("\u{1B}[1m")
    case .dim: page.add("\u{1B}[2m")
    case .inverse: page.add("\u{1B}[7m")
    case .alarm: page.add("\u{1B}[1;31m")
    }
    return true
  }
}
