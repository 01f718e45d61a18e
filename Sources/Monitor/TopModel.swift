import Primitives
import Status
import Terminal
import Text

/// The model of `causeway top`. The model receives samples of the daemon's status and pressed keys, and returns the
/// lines to show. The model itself does no input or output.
public struct TopModel {
  /// The sort order of the links.
  public enum Order: UInt8, CaseIterable {
    case traffic, loss, roundTrip, queue, name

    var text: StaticString {
      switch self {
      case .traffic: "traffic"
      case .loss: "loss"
      case .roundTrip: "round trip"
      case .queue: "queue"
      case .name: "name"
      }
    }
  }

  /// The figures that are shown. The shown figures do not change while the display is paused.
  public private(set) var figures: Figures?
  public private(set) var order = Order.traffic
  public private(set) var isPaused = false
  public private(set) var showsHelp = false
  /// Whether the user has pressed a key that ends the command.
  public private(set) var isOver = false
  /// The number of lines of the tables that are scrolled off the top of the screen.
  private(set) var offset = 0
  /// The number of lines of the tables that the last call of `page` had room for. Page up and page down scroll by this
  /// number.
  private var room = 1
  private var latest: (sample: StatusSample, at: Instant)?
  /// The reason why the daemon has not answered, and the time since then; nil while the daemon answers.
  private(set) var silence: (reason: [UInt8], since: Instant)?

  public init() {}

  /// Handles a new sample of the daemon's status, received at `now`.
  public mutating func add(_ sample: StatusSample, at now: Instant) {
    let fresh = Figures(sample, since: latest?.sample, span: latest.map { now - $0.at } ?? .milliseconds(0))
    latest = (sample, now)
    silence = nil
    if !isPaused { figures = fresh }
  }

  /// Records that the daemon does not answer. `reason` is untrusted text. The last figures are still shown.
  public mutating func lose(_ reason: String, at now: Instant) {
    silence = (Array(reason.utf8), silence?.since ?? now)
    // The next sample gets no rates, because the counters continue after a gap of unknown traffic.
    latest = nil
  }

  /// Handles a key.
  public mutating func press(_ key: KeyReader.Key) {
    switch key {
    case .character(UInt8(ascii: "q")), .character(UInt8(ascii: "Q")), .character(4): isOver = true
    case .character(UInt8(ascii: "s")):
      let all = Order.allCases
      order = all[(Int(order.rawValue) + 1) % all.count]
    case .character(UInt8(ascii: " ")): isPaused.toggle()
    case .character(UInt8(ascii: "?")), .character(UInt8(ascii: "h")): showsHelp.toggle()
    case .character(UInt8(ascii: "k")), .special(.up): offset = max(offset - 1, 0)
    case .character(UInt8(ascii: "j")), .special(.down): offset += 1
    case .special(.pageUp): offset = max(offset - room, 0)
    case .special(.pageDown): offset += room
    case .special(.home): offset = 0
    case .special(.end): offset = Int.max / 2
    case .special(.left), .special(.right), .special(.delete), .character: break
    }
  }

  /// The lines of a screen of the given size, which is at least one row and one column.
  public mutating func page(columns: Int, rows: Int, at now: Instant) -> [ScreenLine] {
    let body = showsHelp ? TopPage.help : TopPage.tables(figures, order, columns)
    var head = TopPage.head(self, at: now)
    // On a low screen, omit the foot and lines of the head, so that the tables have rows.
    let hasFoot = rows >= 6
    head.removeLast(max(head.count - max(rows - 4, 1), 0))
    room = max(rows - head.count - (hasFoot ? 1 : 0), 0)
    offset = min(offset, max(body.count - room, 0))
    let seen = body[offset..<min(offset + room, body.count)]
    var lines = head + seen
    if hasFoot {
      lines += [ScreenLine](repeating: ScreenLine([]), count: room - seen.count)
      lines.append(TopPage.foot(columns, above: offset, below: body.count - offset - seen.count))
    }
    return lines.map { ScreenLine(fitted($0.text, columns), $0.style) }
  }

  /// The head and all tables as plain text, for output that is not a terminal.
  public func table(columns: Int, at now: Instant) -> TextBuilder {
    var text = TextBuilder()
    for line in TopPage.head(self, at: now) + TopPage.tables(figures, order, columns) {
      for byte in line.text { text.add(byte: byte) }
      text.add("\n")
    }
    return text
  }
}
