import CSystem
import Diagnostics
import Primitives
import Reactor

/// Reports the progress of a transfer on standard error: twice a second on a terminal, otherwise every tenth of it.
struct TransferProgress {
  private let name: String
  private let total: UInt64
  private let start = monotonicNow()
  private let isTerminal = isatty(STDERR_FILENO) != 0
  private var next = Instant.zero
  private var tenths: UInt64 = 0
  private var begun: UInt64?

  init(_ name: String, total: UInt64) {
    self.name = name
    self.total = total
  }

  /// `done` bytes are transferred.
  mutating func update(_ done: UInt64) {
    if begun == nil { begun = done }
    let now = monotonicNow()
    let tenth = total == 0 ? 10 : done / max(total / 10, 1)
    guard isTerminal ? now >= next : tenth > tenths else { return }
    tenths = tenth
    next = now + .milliseconds(500)
    let percent = total == 0 ? 100 : done / max(total / 100, 1)
    tell("\(name): \(min(percent, 100)) %, \(bytesText(done)) of \(bytesText(total)), \(rate(done))/s", isLast: false)
  }

  /// The transfer has ended: clears the terminal's line.
  func end() { if isTerminal { tell("", isLast: true) } }

  /// The average rate since the start, as text.
  func rate(_ done: UInt64) -> String {
    let milliseconds = max((monotonicNow() - start).milliseconds, 1)
    return bytesText((done - min(begun ?? 0, done)) * 1000 / milliseconds)
  }

  private func tell(_ text: String, isLast: Bool) {
    var line = TextBuilder()
    if isTerminal { line.add("\r\u{1B}[K") }
    line.add(untrusted: text.utf8)
    if !isTerminal { line.add("\n") }
    line.write(to: STDERR_FILENO)
  }
}
