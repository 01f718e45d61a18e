import CommandLine
import Configuration
import ControlSocket
import Primitives
import Reactor
import Status
import Text

/// `causeway ping`
public func commandPing(_ words: CommandWords) -> CInt {
  var options = ProbeOptions()
  var count: UInt64 = 5
  CommandParser.parse(
    "causeway ping", words, arguments: "PEER", count: 1...1,
    help: """
      Send a probe to a peer's box once a second and show the round-trip time. Probes are encrypted as messages are. A \
      lost probe is retransmitted and takes longer.
      """,
    options: ProbeOptions.options + [
      CommandOption(name: "count", key: 0x6E, argument: "N", help: "Send N probes; default 5")
    ]
  ) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    guard let number = ByteString(value).number(in: 1...1_000_000) else { return "a number from 1 to 1000000" }
    count = number
    return nil
  }
  return run { () throws(CommandError) in
    let (connection, peer) = try options.find()
    let view = ProbeView(isJSON: options.isJSON)
    view.showWay(to: peer, try connection.way(to: peer), connection.book)
    var times: [UInt64] = []
    for number in 1...count {
      let start = monotonicNow()
      let answer = try connection.probe(peer, patience: options.patience)
      view.show(answer, number)
      switch answer {
      case .after(let microseconds): times.append(microseconds)
      case .ended(.notAgreed): throw CommandError(ExitCode.refused)
      case .ended, .silence: break
      }
      if number < count { try connection.pass(until: start + Probing.interval) }
    }
    view.sum(times, of: count)
    if times.isEmpty { throw CommandError(ExitCode.timedOut) }
  }
}

/// `causeway trace`
public func commandTrace(_ words: CommandWords) -> CInt {
  var options = ProbeOptions()
  CommandParser.parse(
    "causeway trace", words, arguments: "PEER", count: 1...1,
    help: """
      Show each link of the route to a peer: the box at its end, the bearer, and the shortest of three round trips to \
      that box. It is the route that this box uses now; boxes on it may know a shorter one.
      """,
    options: ProbeOptions.options
  ) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    return nil
  }
  return run { () throws(CommandError) in
    let (connection, peer) = try options.find()
    let way = try connection.way(to: peer)
    if way.isEmpty {
      throw CommandError(
        saying: "there is no route to \(connection.book.name(peer)) now; “causeway peers” lists the peers")
    }
    let view = ProbeView(isJSON: options.isJSON)
    var last = Answer.silence
    for (index, hop) in way.enumerated() {
      last = try connection.shortest(of: Probing.probesOfAHop, hop.node, patience: options.patience)
      view.show(hop, index + 1, last, way)
    }
    switch last {
    case .after: break
    case .ended(.notAgreed): throw CommandError(ExitCode.refused)
    case .ended, .silence: throw CommandError(ExitCode.timedOut)
    }
  }
}

/// The times and counts of probes.
private enum Probing {
  static let interval = TimeSpan.seconds(1)
  /// The number of probes sent to each node of a route. The first probe takes longer, because it opens the encrypted
  /// session.
  static let probesOfAHop = 3
  static let patienceSeconds: UInt64 = 5
}

/// The result of a probe.
private enum Answer {
  case after(microseconds: UInt64)
  case ended(ProbeOutcome)
  case silence

  /// The reason why there was no answer, as text for people. Nil if there was an answer.
  var problem: StaticString? {
    switch self {
    case .after: nil
    case .ended(.unreachable): "it cannot be reached"
    case .ended(.notAgreed): "the two boxes do not agree on [peer] encryption, or one does not accept the other"
    case .ended(.noRoom): "there is no room for the probe now"
    case .ended(.timedOut), .silence: "no answer in time"
    case .ended: "the channel to it was reset"
    }
  }
}

/// The options of `causeway ping` and `causeway trace`.
private struct ProbeOptions {
  static let options =
    ClientOptions.options + [
      LocalOptions.json, LocalOptions.wait("Wait this long for the peer to appear; by default, it must be in reach"),
      CommandOption(
        name: "timeout", key: timeoutKey, argument: "SECONDS", help: "Wait this long for each answer; default 5"),
    ]
  private static let timeoutKey: CInt = 0x74

  private var client = ClientOptions()
  private(set) var isJSON = false
  private var waits: UInt64?
  private var patienceSeconds = Probing.patienceSeconds
  private var name = ""

  /// Parses one option as `LocalOptions.take` does.
  mutating func take(_ key: CInt, _ value: String) -> StaticString?? {
    if client.take(key, value) { return .some(nil) }
    switch key {
    case CommandParser.argument: name = value
    case LocalOptions.jsonKey: isJSON = true
    case LocalOptions.waitKey:
      guard let seconds = parseSeconds(value) else { return secondsAccepted }
      waits = seconds
    case Self.timeoutKey:
      guard let seconds = parseSeconds(value) else { return secondsAccepted }
      patienceSeconds = seconds
    default: return nil
    }
    return .some(nil)
  }

  /// The maximum time to wait for the answer to one probe.
  var patience: TimeSpan { .seconds(patienceSeconds) }

  /// Connects to the daemon and finds the named peer.
  func find() throws(CommandError) -> (PeerConnection, NodeID) {
    let connection = try PeerConnection(client)
    return (connection, try connection.peer(named: name, until: waits.map { deadline(after: $0) }))
  }
}

extension PeerConnection {
  /// Sends one probe to a node, and waits for the answer for at most `patience`.
  fileprivate func probe(_ node: NodeID, patience: TimeSpan) throws(CommandError) -> Answer {
    let request = nextRequest()
    let start = monotonicNow()
    send(.probe(request: request, node))
    while let event = try next(until: start + patience) {
      // Ignore other events, such as a late answer to an earlier probe.
      guard case .completed(request, let outcome) = event else { continue }
      return outcome == .delivered
        ? .after(microseconds: (monotonicNow() - start).nanoseconds / 1000) : .ended(outcome)
    }
    return .silence
  }

  /// The shortest round-trip time of up to `count` probes, or the reason why no probe was answered.
  fileprivate func shortest(of count: Int, _ node: NodeID, patience: TimeSpan) throws(CommandError) -> Answer {
    var shortest: UInt64?
    for _ in 0..<count {
      switch try probe(node, patience: patience) {
      case .after(let microseconds): shortest = min(shortest ?? microseconds, microseconds)
      case .ended(let outcome): return .ended(outcome)
      case .silence: return shortest.map { .after(microseconds: $0) } ?? .silence
      }
    }
    return shortest.map { .after(microseconds: $0) } ?? .silence
  }

  /// Handles events of the daemon until `end`.
  fileprivate func pass(until end: Instant) throws(CommandError) {
    while try next(until: end) != nil {}
  }
}

/// Prints the results of probes as text or as JSON lines.
private struct ProbeView {
  let isJSON: Bool

  /// Shows a route, for example: carol (c0a1b2c3): ethernet, bluetooth-le
  func showWay(to peer: NodeID, _ way: [ControlHop], _ book: PeerBook) {
    if isJSON { return }
    var text = TextBuilder()
    text.add(untrusted: (book.peer(peer)?.name ?? "").utf8)
    text.add(" (\(peer.shortText)): ")
    for (index, hop) in way.enumerated() { text.add(index == 0 ? "\(hop.bearer.name)" : ", \(hop.bearer.name)") }
    text.add(way.isEmpty ? "no route\n" : "\n")
    Output.put(text)
  }

  func show(_ answer: Answer, _ number: UInt64) {
    if isJSON {
      var line = JSONLine(event: answer.problem == nil ? "answer" : "silence")
      line.add("number", number)
      line.add(answer)
      return line.put()
    }
    var text = TextBuilder()
    text.add(number)
    text.add("  ")
    text.add(answer)
    text.add("\n")
    Output.put(text)
  }

  func sum(_ times: [UInt64], of count: UInt64) {
    let sorted = times.sorted()
    if isJSON {
      var line = JSONLine(event: "end")
      line.add("asked", count)
      line.add("answered", UInt64(times.count))
      if let least = sorted.first, let most = sorted.last {
        line.add("microseconds_least", least)
        line.add("microseconds_middle", sorted[sorted.count / 2])
        line.add("microseconds_most", most)
      }
      return line.put()
    }
    var text = TextBuilder()
    text.add("\(times.count) of \(count) answers")
    if let least = sorted.first, let most = sorted.last {
      text.add("; minimum ")
      text.add(milliseconds: least)
      text.add(", median ")
      text.add(milliseconds: sorted[sorted.count / 2])
      text.add(", maximum ")
      text.add(milliseconds: most)
    }
    text.add("\n")
    Output.put(text)
  }

  /// Shows a hop, for example: 1  box (b0c5d6e7)   ethernet      0.9 ms
  func show(_ hop: ControlHop, _ number: Int, _ answer: Answer, _ way: [ControlHop]) {
    if isJSON {
      var line = JSONLine(event: "hop")
      line.add("number", UInt64(number))
      line.add("id", Array(hop.node.text.utf8))
      line.add("name", Array(hop.name.utf8))
      line.add("bearer", hop.bearer.name)
      line.add(answer)
      return line.put()
    }
    var text = TextBuilder()
    if number < 10 { text.add(" ") }
    text.add("\(number)  ")
    let name = text.bytes.count
    text.add(hop.title)
    text.pad(from: name, to: 2 + (way.map { $0.title.columns }.max() ?? 0))
    let bearer = text.bytes.count
    text.add(hop.bearer.name)
    text.pad(from: bearer, to: 2 + (way.map { $0.bearer.name.utf8CodeUnitCount }.max() ?? 0))
    text.add(answer)
    text.add("\n")
    Output.put(text)
  }
}

extension ControlHop {
  fileprivate var title: TextBuilder {
    var text = TextBuilder()
    text.add(untrusted: name.utf8)
    text.add(name.utf8.isEmpty ? node.shortText : " (\(node.shortText))")
    return text
  }
}

extension TextBuilder {
  fileprivate var columns: Int { bytes.count { $0 & 0xC0 != 0x80 } }

  /// Adds a time in milliseconds, with two decimals if it is below 10 ms, and with one otherwise.
  fileprivate mutating func add(milliseconds microseconds: UInt64) {
    add("\(microseconds / 1000).")
    if microseconds < 10_000 { add(microseconds / 10 % 100, digits: 2) } else { add(microseconds / 100 % 10) }
    add(" ms")
  }

  fileprivate mutating func add(_ answer: Answer) {
    if case .after(let microseconds) = answer { add(milliseconds: microseconds) }
    if let problem = answer.problem { add(problem) }
  }
}

extension JSONLine {
  fileprivate mutating func add(_ answer: Answer) {
    if case .after(let microseconds) = answer { add("microseconds", microseconds) }
    if let problem = answer.problem { add("reason", problem) }
  }
}
