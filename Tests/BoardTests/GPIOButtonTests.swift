@testable import Board
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

/// An edge event in the kernel's form (struct gpio_v2_line_event, 48 bytes): time in ns, kind, line number and two
/// sequence numbers.
private func edge(_ kind: UInt8, milliseconds: UInt64, sequence: UInt8) -> [UInt8] {
  let time = (milliseconds * 1_000_000).littleEndian
  return withUnsafeBytes(of: time) { Array($0) } + [kind, 0, 0, 0, 27, 0, 0, 0, sequence, 0, 0, 0, sequence, 0, 0, 0]
    + [UInt8](repeating: 0, count: 24)
}
private let rising: UInt8 = 1, falling: UInt8 = 2

@Suite struct GPIOButtonTests {
  private let loop: EventLoop
  private let kernel: CInt
  private let button: GPIOButton
  /// Records the presses, and the loss of the line, that the button reports.
  private final class Told {
    var presses: [ButtonPress] = []
    var losses: [String] = []
  }
  private let told = Told()

  init() throws {
    loop = try EventLoop()
    var ends: [CInt] = [0, 0]
    try #require(pipe2(&ends, Int32(O_CLOEXEC | O_NONBLOCK)) == 0)
    kernel = ends[1]
    let told = told
    button = GPIOButton(
      loop, GPIOPin(chip: "chip", line: "27"), debounceMicroseconds: 20_000, pressed: { told.presses.append($0) },
      lost: { told.losses.append($0.line) })
    try button.serve(ends[0])
  }

  private func write(_ bytes: [UInt8]) { #expect(CSystem.write(kernel, bytes, bytes.count) == bytes.count) }

  /// Presses the button for `milliseconds`. Returns the presses that the button has reported so far.
  private func presses(milliseconds: UInt64) -> [ButtonPress] {
    write(
      edge(rising, milliseconds: 10_000, sequence: 1) + edge(falling, milliseconds: 10_000 + milliseconds, sequence: 2))
    serve(loop, for: .milliseconds(20))
    return told.presses
  }

  /// Durations of a press in milliseconds, and the press that is reported. Nil if the press is ignored.
  private static let times: [(UInt64, ButtonPress?)] = [
    (49, nil), (50, .short), (2000, .short), (2001, nil), (3999, nil), (4000, .long), (30_000, .long), (30_001, nil),
  ]

  @Test(arguments: times)
  func `a press is short or long by its duration`(milliseconds: UInt64, expected: ButtonPress?) {
    #expect(presses(milliseconds: milliseconds) == (expected.map { [$0] } ?? []))
    button.close()
    close(kernel)
  }

  @Test func `a button that is held at start-up does nothing when it is released`() {
    write(edge(falling, milliseconds: 10_000, sequence: 1))
    serve(loop, for: .milliseconds(20))
    #expect(told.presses.isEmpty && told.losses.isEmpty)
    button.close()
    close(kernel)
  }

  @Test func `a loose contact counts at most once per second`() {
    for press in 0..<7 as Range<UInt8> {
      let start = 10_000 + UInt64(press) * 200
      write(edge(rising, milliseconds: start, sequence: press * 2 + 1))
      write(edge(falling, milliseconds: start + 100, sequence: press * 2 + 2))
    }
    serve(loop, for: .milliseconds(20))
    #expect(told.presses == [.short, .short], "at 0.1 s and at 1.1 s")
    button.close()
    close(kernel)
  }

  @Test func `a release after lost edge events is ignored`() {
    write(edge(rising, milliseconds: 10_000, sequence: 1) + edge(falling, milliseconds: 10_100, sequence: 4))
    serve(loop, for: .milliseconds(20))
    #expect(told.presses.isEmpty)
    button.close()
    close(kernel)
  }

  @Test func `a removed chip is reported once, and its line is released`() throws {
    close(kernel)
    serve(loop) { !told.losses.isEmpty }
    serve(loop, for: .milliseconds(20))
    #expect(told.losses == ["chip:27: the chip was removed; it is used again when it returns"])
    #expect(throws: GPIOError.self) { try button.open() }
    button.close()
  }

  @Test func `nothing is reported after the button is closed`() {
    write(edge(rising, milliseconds: 10_000, sequence: 1) + edge(falling, milliseconds: 10_100, sequence: 2))
    button.close()
    serve(loop, for: .milliseconds(20))
    #expect(told.presses.isEmpty)
    close(kernel)
  }
}
