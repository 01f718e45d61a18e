import Primitives
import Status
import Terminal
import Testing

@testable import Monitor

private let start = Instant.zero + .seconds(100)

private func text(_ lines: [ScreenLine]) -> [String] { lines.map { String(decoding: $0.text, as: UTF8.self) } }

/// The model of `causeway top`, and the pages that it shows.
private final class Top {
  var model = TopModel()

  init(_ samples: StatusSample...) {
    for (second, sample) in samples.enumerated() { model.add(sample, at: start + .seconds(UInt64(second))) }
  }

  /// Creates a model that has received two samples, each with this number of links.
  convenience init(links: Int) {
    func made(_ step: UInt64) -> StatusSample {
      var all = sample()
      all.bytesForwarded = step * 1_500_000
      all.framesForwarded = step * 100
      let pattern = all.links[0]
      all.links = (0..<links).map { index in
        var link = pattern
        link.slot = UInt64(index)
        link.name = Array("peer\(index)".utf8)
        link.received = step * UInt64(index) * 1000
        link.roundTripMicroseconds = UInt64(50_000 - index * 1000)
        return link
      }
      return all
    }
    self.init(made(1), made(2))
  }

  func page(_ columns: Int = 80, _ rows: Int = 24) -> [ScreenLine] {
    model.page(columns: columns, rows: rows, at: start + .seconds(1))
  }
}

@Test func `a page shows the box, its forwarded traffic and each link`() {
  let top = Top(links: 1)
  #expect(
    text(top.page()).prefix(9) == [
      "box 01234567  up 0 s, 0 B, 0 peers, 1 link",
      "forwarded 100 frames/s, 1.5 MB/s; refused 0 frames/s; by traffic",
      "no alarms, no faults",
      "",
      "BEARER                STATE        PLACES     IN/S    OUT/S    AIR   SCAN   DIAL",
      "bluetooth-le          up                –      0 B      0 B  0.0 %      –      –",
      "",
      "LINK  NEIGHBOUR          BEARER           IN/S    OUT/S      RTT   LOSS    QUEUE",
      "0     peer0              bluetooth-le      0 B      0 B    50 ms      –      0 B",
    ])
}

@Test func `every line fits the screen`() {
  for (columns, rows) in [(80, 24), (40, 10), (200, 60), (20, 5), (1, 1), (3, 2), (79, 3)] {
    let top = Top(links: 40)
    for key in [KeyReader.Key.character(0x3F), .character(0x3F), .special(.end)] {
      top.model.press(key)
      let lines = top.page(columns, rows)
      #expect(lines.count <= rows)
      #expect(lines.allSatisfy { textWidth($0.text) <= columns }, "\(columns) columns")
    }
  }
}

@Test func `a wide name is truncated at its column width`() {
  var all = sample()
  all.links[0].name = Array(String(repeating: "漢", count: 30).utf8)
  let top = Top(all)
  let lines = top.page()
  #expect(lines.allSatisfy { textWidth($0.text) <= 80 })
  #expect(text(lines).contains { $0.contains("漢…") })
}

@Test func `a name cannot control the terminal`() {
  var all = sample()
  all.name = Array("\u{1B}[2J".utf8)
  all.links[0].name = Array("a\u{1B}c\u{202E}".utf8)
  all.problems = [Array("x\u{7}".utf8)]
  let top = Top(all)
  #expect(top.page().allSatisfy { line in line.text.allSatisfy { $0 >= 0x20 && $0 != 0x7F } })
}

@Test func `narrow screens omit the least important columns`() {
  let top = Top(links: 1)
  let wide = text(top.page(80)).first { $0.contains("NEIGHBOUR") } ?? ""
  let narrow = text(top.page(40)).first { $0.contains("NEIGHBOUR") } ?? ""
  #expect(wide.contains("QUEUE") && wide.contains("BEARER") && wide.hasPrefix("LINK"))
  #expect(!narrow.contains("QUEUE") && narrow.contains("IN/S") && narrow.contains("OUT/S"))
}

@Test func sorting() {
  let top = Top(links: 3)
  func order() -> [String] {
    (0..<3).map { "peer\($0)" }.sorted { one, other in
      let lines = text(top.page())
      let numbers = [one, other].map { name in lines.firstIndex { $0.contains(name + " ") } ?? 0 }
      return numbers[0] < numbers[1]
    }
  }
  #expect(order() == ["peer2", "peer1", "peer0"], "by traffic")
  top.model.press(.character(UInt8(ascii: "s")))
  #expect(order() == ["peer0", "peer1", "peer2"], "by loss: all are equal")
  for _ in 0..<3 { top.model.press(.character(UInt8(ascii: "s"))) }
  #expect(top.model.order == .name && order() == ["peer0", "peer1", "peer2"])
  top.model.press(.character(UInt8(ascii: "s")))
  #expect(top.model.order == .traffic)
}

@Test func `a pause freezes the page`() {
  let top = Top(links: 1)
  top.model.press(.character(0x20))
  var later = sample()
  later.bytesForwarded = 99_000_000
  top.model.add(later, at: start + .seconds(2))
  #expect(text(top.page())[1].contains("1.5 MB/s") && text(top.page())[1].hasSuffix("PAUSED"))
  top.model.press(.character(0x20))
  later.bytesForwarded = 99_000_500
  top.model.add(later, at: start + .seconds(3))
  #expect(text(top.page())[1].contains("500 B/s"))
}

@Test func `scrolling stops at both ends`() {
  let top = Top(links: 40)
  top.model.press(.special(.up))
  #expect(text(top.page(80, 10))[4].hasPrefix("BEARER"))
  top.model.press(.special(.pageDown))
  let second = text(top.page(80, 10))
  #expect(second.last?.contains("↑5") == true)
  for _ in 0..<20 { top.model.press(.special(.pageDown)) }
  let last = text(top.page(80, 10))
  #expect(last[8].contains("peer0") && last[9].contains("↓0"))
  top.model.press(.special(.home))
  #expect(text(top.page(80, 10)).last?.contains("↑0") == true)
}

@Test func `a missing daemon is reported, and the last sample stays visible`() {
  let top = Top(links: 1)
  top.model.lose("no daemon answers", at: start + .seconds(1))
  top.model.lose("no daemon answers", at: start + .seconds(4))
  let lines = top.model.page(columns: 80, rows: 24, at: start + .seconds(6))
  #expect(lines[2] == ScreenLine(Array("NO DAEMON for 5 s: no daemon answers".utf8), .alarm))
  #expect(text(lines).contains { $0.contains("peer0") })
  var later = sample()
  later.bytesForwarded = 99_000_000
  top.model.add(later, at: start + .seconds(7))
  #expect(text(top.page())[2] == "no alarms, no faults")
  #expect(top.model.figures?.bytesForwarded == nil, "a gap gives no rate")
}

@Test func `alarms are shown before other faults`() {
  var all = sample()
  all.problems = [Array("alarm: a key changed".utf8), Array("led: no".utf8)]
  let top = Top(all)
  let line = top.page()[2]
  #expect(String(decoding: line.text, as: UTF8.self) == "alarm: a key changed (and 1 more: causeway status)")
  #expect(line.style == .alarm)
}

@Test(arguments: [UInt8(ascii: "q"), UInt8(ascii: "Q"), 4]) func `the key q and the end of input quit`(key: UInt8) {
  let top = Top()
  top.model.press(.character(UInt8(ascii: "x")))
  #expect(!top.model.isOver)
  top.model.press(.character(key))
  #expect(top.model.isOver)
}
