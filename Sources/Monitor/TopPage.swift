import Primitives
import Status
import Terminal
import Text

/// The parts of a page of `causeway top`.
enum TopPage {
  /// The maximum number of talkers (nodes whose frames the box forwards) that are shown.
  private static let talkersMax = 8

  // MARK: Head, foot and help

  /// The lines of the head: the box, its forwarding rates, its first alarm or fault, and an empty line.
  static func head(_ model: TopModel, at now: Instant) -> [ScreenLine] {
    var lines: [ScreenLine] = []
    if let figures = model.figures {
      lines.append(ScreenLine(box(figures.sample), .bold))
      var text = TextBuilder()
      text.add("forwarded \(plain(figures.framesForwarded)) frames/s, \(bytes(figures.bytesForwarded))/s")
      text.add("; refused \(plain(figures.framesRefused)) frames/s; by \(model.order.text)")
      if model.isPaused { text.add("; PAUSED") }
      lines.append(ScreenLine(text.bytes))
    } else {
      lines.append(ScreenLine(Array("causeway top".utf8), .bold))
    }
    lines.append(state(model, at: now))
    return lines + [ScreenLine([])]
  }

  private static func box(_ sample: StatusSample) -> [UInt8] {
    var text = TextBuilder()
    text.add(untrusted: sample.name)
    text.add(" ")
    text.add(untrusted: sample.id.prefix(8))
    text.add("  up \(secondsText(sample.uptimeSeconds)), \(bytesText(sample.residentBytes)), ")
    text.add(counted(sample.peerCount, "peer", "peers"))
    let up = sample.links.count { $0.state.elementsEqual("up".utf8) }
    text.add(", \(counted(UInt64(up), "link", "links"))")
    return text.bytes
  }

  private static func state(_ model: TopModel, at now: Instant) -> ScreenLine {
    var text = TextBuilder()
    if let silence = model.silence {
      text.add("NO DAEMON for \(secondsText((now - silence.since).milliseconds / 1000)): ")
      text.add(message: silence.reason)
      return ScreenLine(text.bytes, .alarm)
    }
    guard let problems = model.figures?.sample.problems else { return ScreenLine(Array("waiting …".utf8), .dim) }
    guard let first = problems.first else { return ScreenLine(Array("no alarms, no faults".utf8), .dim) }
    text.add(message: first)
    if problems.count > 1 { text.add(" (and \(problems.count - 1) more: causeway status)") }
    return ScreenLine(text.bytes, .alarm)
  }

  /// The line of the foot: the keys, and the number of lines that are hidden above and below.
  static func foot(_ columns: Int, above: Int, below: Int) -> ScreenLine {
    var text = TextBuilder()
    text.add(" q quit  s sort  space pause  ? help")
    if above > 0 || below > 0 { text.add("  ↑\(above) ↓\(below)") }
    let width = textWidth(text.bytes)
    for _ in 0..<max(columns - width, 0) { text.add(" ") }
    return ScreenLine(text.bytes, .inverse)
  }

  static var help: [ScreenLine] {
    let lines: [StaticString] = [
      "q, ^C        quit", "s            sort: traffic, loss, round trip,", "             queue, name",
      "space        pause or resume", "↑ ↓, j k     scroll by a line", "page up, down, home, end",
      "^L           redraw",
      "?, h         this help", "", "AIR   estimated share of time that", "      LE takes to carry the links' bytes",
      "LOSS  TCP segments retransmitted", "QUEUE bytes queued for the link",
    ]
    return lines.map { ScreenLine($0.withUTF8Buffer { Array($0) }) }
  }

  // MARK: Tables

  static func tables(_ figures: Figures?, _ order: TopModel.Order, _ columns: Int) -> [ScreenLine] {
    guard let figures else { return [] }
    let parts = [radios(figures), links(figures, order), talkers(figures)].compactMap { $0 }
    var lines: [ScreenLine] = []
    for part in parts {
      if !lines.isEmpty { lines.append(ScreenLine([])) }
      lines += part.lines(columns)
    }
    return lines
  }

  private static func radios(_ figures: Figures) -> Grid? {
    var grid = Grid([
      GridColumn("BEARER", nil), GridColumn("STATE", 11, rank: 3), GridColumn("PLACES", 6, isNumber: true, rank: 1),
      GridColumn("IN/S", 7, isNumber: true), GridColumn("OUT/S", 7, isNumber: true),
      GridColumn("AIR", 5, isNumber: true, rank: 2), GridColumn("SCAN", 5, isNumber: true, rank: 4),
      GridColumn("DIAL", 5, isNumber: true, rank: 5),
    ])
    for radio in figures.radios {
      let sample = radio.sample
      let most = sample.slotsMax.map { "/\($0)" } ?? ""
      grid.add([
        sample.name, sample.state, Array((sample.slotsUsed.map { "\($0)" + most } ?? "–").utf8),
        rate(radio.received), rate(radio.sent), percent(radio.airPermille), percent(radio.scanningPermille),
        percent(radio.diallingPermille),
      ])
    }
    return figures.radios.isEmpty ? nil : grid
  }

  private static func links(_ figures: Figures, _ order: TopModel.Order) -> Grid? {
    var grid = Grid([
      GridColumn("LINK", 4, rank: 4), GridColumn("NEIGHBOUR", nil), GridColumn("BEARER", 12, rank: 3),
      GridColumn("IN/S", 7, isNumber: true), GridColumn("OUT/S", 7, isNumber: true),
      GridColumn("RTT", 7, isNumber: true, rank: 1), GridColumn("LOSS", 5, isNumber: true, rank: 2),
      GridColumn("QUEUE", 7, isNumber: true, rank: 5),
    ])
    for link in sorted(figures.links, order) {
      let sample = link.sample
      let isUp = sample.state.elementsEqual("up".utf8)
      let state = isUp ? [] : Array("(".utf8) + sample.state + Array(")".utf8)
      grid.add([
        Array((sample.slot.map { "\($0)" } ?? "–").utf8),
        sample.name + (isUp || sample.name.isEmpty ? [] : [0x20]) + state, sample.bearer, rate(link.received),
        rate(link.sent), Array((sample.roundTripMicroseconds.map { millisecondsText($0) } ?? "–").utf8),
        percent(link.lossPermille), Array(bytesText(sample.queued).utf8),
      ])
    }
    return figures.links.isEmpty ? nil : grid
  }

  /// The links sorted by `order`: values in descending order, names in ascending order. Links with equal keys are kept
  /// in the order of the daemon's status.
  private static func sorted(_ links: [Figures.Link], _ order: TopModel.Order) -> [Figures.Link] {
    inOrder(links.count) { one, other in
      let first = links[one], second = links[other]
      guard case .name = order else { return key(first, order) > key(second, order) }
      return first.sample.name.lexicographicallyPrecedes(second.sample.name)
    }.map { links[$0] }
  }

  private static func key(_ link: Figures.Link, _ order: TopModel.Order) -> UInt64 {
    switch order {
    case .traffic: link.traffic
    case .loss: link.lossPermille ?? 0
    case .roundTrip: link.sample.roundTripMicroseconds ?? 0
    case .queue: link.sample.queued
    case .name: 0
    }
  }

  private static func talkers(_ figures: Figures) -> Grid? {
    var grid = Grid([
      GridColumn("SOURCE", nil), GridColumn("ID", 8, rank: 1), GridColumn("FORWARDED/S", 11, isNumber: true),
      GridColumn("BYTES", 8, isNumber: true, rank: 2),
    ])
    for talker in figures.talkers.prefix(talkersMax) {
      let name = talker.sample.name
      grid.add([
        name.isEmpty ? Array("–".utf8) : name, Array(talker.sample.id.prefix(8)), rate(talker.rate),
        Array(bytesText(talker.sample.bytes).utf8),
      ])
    }
    return figures.talkers.isEmpty ? nil : grid
  }

  // MARK: Cells

  private static func rate(_ rate: UInt64?) -> [UInt8] { Array(bytes(rate).utf8) }
  private static func bytes(_ rate: UInt64?) -> String { rate.map { bytesText($0) } ?? "–" }
  private static func plain(_ rate: UInt64?) -> String { rate.map { "\($0)" } ?? "–" }

  private static func percent(_ permille: UInt64?) -> [UInt8] {
    guard let permille else { return Array("–".utf8) }
    return Array((permille < 100 ? "\(permille / 10).\(permille % 10) %" : "\(permille / 10) %").utf8)
  }

  private static func counted(_ count: UInt64, _ one: StaticString, _ several: StaticString) -> String {
    "\(count) \(count == 1 ? one : several)"
  }
}
