import CSystem
import Diagnostics

/// A line of a full screen. The text is harmless already, and not wider than the screen.
public struct ScreenLine: Equatable {
  /// Nothing is told by the style alone: NO_COLOR takes it away.
  public enum Style: UInt8, Sendable { case plain, bold, dim, inverse, alarm }

  public let text: [UInt8]
  public let style: Style

  public init(_ text: [UInt8], _ style: Style = .plain) {
    self.text = text
    self.style = style
  }
}

/// The whole screen of a terminal, drawn line by line; `close` gives back what was there. Only the sequences of ECMA-48 and
/// xterm's other screen (1049) are used, which terminals of the last twenty years know or ignore, so that no data base of
/// terminals is needed.
///
/// It never waits for a terminal that does not read: what is left of a page is kept for `flush`, and pages that come
/// meanwhile are dropped.
public final class FullScreen {
  private static let begin: StaticString = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[m\u{1B}[H\u{1B}[2J"
  private static let end: StaticString = "\u{1B}[m\u{1B}[?25h\u{1B}[?1049l"
  /// How often `close` waits 100 ms for a terminal that does not read.
  private static let endWaitsMax = 10

  private let screen: Screen
  /// Standard output, opened again where that is possible: not to block is then our affair alone.
  public let descriptor: CInt
  private var pending: [UInt8] = []
  private var shown: [ScreenLine] = []
  private var shownColumns = 0
  private var isOpen = false
  /// The terminal is gone.
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

  /// Something waits until the terminal reads.
  public var isWaiting: Bool { !pending.isEmpty && !hasFailed }

  /// Shows these lines from the first one on, and nothing below them. False when the terminal has not read the last page.
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
      // Behind the last column a terminal would delete the last character.
      if textWidth(line.text) < columns { page.add("\u{1B}[K") }
    }
    shown = Array(lines.prefix(rows)) + [ScreenLine](repeating: ScreenLine([]), count: max(rows - lines.count, 0))
    shownColumns = columns
    pending = page.bytes
    flush()
    return true
  }

  /// Writes what the terminal takes now.
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

  /// Draws everything again with the next page: the terminal may show something else.
  public func forget() { shownColumns = 0 }

  /// Stops this process as ^Z does, and takes the screen again when it goes on.
  public func suspend() {
    leave()
    screen.suspend()
    open()
  }

  /// Takes the screen again, after somebody else stopped this process.
  public func resume() {
    leave()
    screen.open()
    open()
  }

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

  /// Whether the style needs an end.
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
