@testable import Board
import Primitives
import Testing

/// The first steps of a blink pattern. Each step states whether the LED is lit, and for how many milliseconds.
private func turns(_ pattern: StatusLED.Pattern, _ count: Int) -> [String] {
  var blinking = Blinking()
  blinking.begin(pattern)
  var seen: [String] = []
  for _ in 0..<count {
    seen.append("\(blinking.isLit ? "lit" : "dark") \(blinking.timeToTurn.map { "\($0.milliseconds)" } ?? "-")")
    if blinking.timeToTurn == nil { break }
    blinking.turn()
  }
  return seen
}

@Suite struct BlinkingTests {
  private static let times: [(StatusLED.Pattern, [String])] = [
    (.off, ["dark -"]),
    (.linked, ["lit -"]),
    (.alone, ["lit 100", "dark -"]),
    (.joining, ["lit 500", "dark 500", "lit 500"]),
    (.fault, ["lit 200", "dark 200", "lit 200"]),
  ]

  @Test(arguments: times)
  func `each pattern has its on and off times`(pattern: StatusLED.Pattern, expected: [String]) {
    #expect(turns(pattern, 3) == expected)
  }

  @Test func `a box without links flashes every other tick`() {
    var blinking = Blinking()
    blinking.begin(.alone)
    blinking.turn()
    var flashes: [Bool] = []
    for _ in 0..<4 {
      blinking.tick()
      flashes.append(blinking.isLit)
      if blinking.isLit { blinking.turn() }
    }
    #expect(flashes == [false, true, false, true])
  }

  @Test func `a tick does not affect other patterns`() {
    for pattern in [StatusLED.Pattern.off, .linked] {
      var blinking = Blinking()
      blinking.begin(pattern)
      let before = blinking.isLit
      for _ in 0..<4 { blinking.tick() }
      #expect(blinking.isLit == before && blinking.timeToTurn == nil)
    }
  }
}
