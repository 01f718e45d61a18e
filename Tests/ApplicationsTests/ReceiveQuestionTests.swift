import CSystem
import CommandLine
import FileSupport
import LocalAPI
import Session
import Testing
import Text
import TransferFiles

@testable import Applications

/// The ways in which an offer ends while its question is shown.
enum OfferEnd: CaseIterable {
  case cancelled, protocolViolation, reset, pathLost, streamFinished, answerLost, sessionEnded, repeated, timeLimit

  /// The step that ends the offer of the sender with number 1.
  fileprivate func step(_ sender: FileSender) -> ScriptedConnection.Step {
    switch self {
    case .cancelled: .answer { sender.cancel($0) }
    case .protocolViolation: .answer { .streamBytes(stream: $0.takenStream, [255, 255, 255, 255]) }
    case .reset: .answer { .streamEnded(object: $0.takenStream, received: 0, .reset(.cancelled)) }
    case .pathLost: .answer { .streamEnded(object: $0.takenStream, received: 0, .lost) }
    case .streamFinished: .answer { .streamEnded(object: $0.takenStream, received: 0, .finished) }
    case .answerLost: .answer { .streamEnded(object: $0.openedStream, received: 0, .lost) }
    case .sessionEnded: .event(.ended(session: 2, .left, same: 0))
    case .repeated: .event(sender.offer(from: FileSender.address(1), session: 2, stream: 71))
    // After the reading time of the question, the next deadline is that of the offer.
    case .timeLimit: .time
    }
  }
}

@Suite struct ReceiveQuestionTests {
  private let console = RecordedConsole()
  private let scratch = Scratch()

  /// Receives for `seconds`, or until `count` offers have ended. Returns the requests of the command.
  @discardableResult private func receive(
    _ script: [ScriptedConnection.Step], seconds: String = "3600", count: UInt64 = .max
  ) throws -> [LocalRequest.Body] {
    try #require(mkdir(scratch.file("received"), 0o755) == 0)
    var options = FilesOptions()
    _ = options.take(LocalOptions.forKey, seconds)
    let connection = ScriptedConnection(console, script)
    _ = result { () throws(CommandError) in
      let rule = AcceptRule(canAsk: true)
      try Receiving(connection, console, options, rule, scratch.file("received"), .max, count).run()
    }
    return connection.requests
  }

  private func sender() throws -> FileSender {
    try scratch.write("hello.txt", "hello")
    return FileSender(try ResourceSource([scratch.file("hello.txt")]))
  }

  /// The lines of the screen. A question is shortened to the name of its sender.
  private var screen: [String] {
    console.screen.map { line in
      guard line.hasSuffix(" Accept? [y/N] ") else { return line }
      return "\(line.split(separator: "“")[1].prefix(2))?"
    }
  }

  private let offerEnded = "p1: the offer has ended, no answer is needed"
  private let offer = "p1: “hello.txt”, 1 file, 5 B"

  @Test(arguments: OfferEnd.allCases) func `a question ends with its offer`(_ end: OfferEnd) throws {
    let sender = try sender()
    try receive(sender.offers(as: 1) + [.time, end.step(sender), .input("y\n"), .signal(SIGTERM)])
    #expect(screen.prefix(2) == ["p1?", offerEnded])
    #expect(screen.count { $0 == "p1?" } == 1)
    // Nothing reads the answer to a question that has ended.
    #expect(console.hasInput && !console.isAsking)
  }

  @Test func `the question after a cancelled offer is shown once, below the result`() throws {
    let first = try sender(), second = try sender()
    var stream: UInt32 = 0
    let cancel = ScriptedConnection.Step.answer {
      guard case .streamBytes(_, let bytes) = first.cancel($0) else { return .allTold(browse: 0) }
      return .streamBytes(stream: stream, bytes)
    }
    let keepStream = ScriptedConnection.Step.answer {
      stream = $0.takenStream
      return .allTold(browse: 0)
    }
    try receive(
      first.offers(as: 1) + [keepStream, .time] + second.offers(as: 2) + [cancel, .time, .signal(SIGTERM)])
    #expect(screen.prefix(4) == ["p1?", offerEnded, "\(offer) cancelled by its sender", "p2?"])
    #expect(screen.count { $0 == "p2?" } == 1)
  }

  @Test func `the question after a declined offer is shown once, below the result`() throws {
    try receive(
      sender().offers(as: 1) + sender().offers(as: 2) + [.time, .input("n\n"), .time, .time, .signal(SIGTERM)])
    #expect(screen.prefix(3) == ["p1?", "\(offer) declined", "p2?"])
    #expect(screen.count { $0 == "p2?" } == 1)
  }

  @Test func `an offer whose path is lost while its question is shown has ended without an answer`() throws {
    let sender = try sender()
    try receive(sender.offers(as: 1) + [.time, OfferEnd.pathLost.step(sender), .signal(SIGTERM)])
    #expect(screen == ["p1?", offerEnded, "\(offer) ended before it was answered"])
  }

  @Test func `an offer that arrives together with its cancellation is not asked about`() throws {
    let sender = try sender()
    let both = ScriptedConnection.Step.answer { connection in
      guard case .streamBytes(let stream, let offer)? = sender.respond(connection),
        case .streamBytes(_, let cancellation) = sender.cancel(connection)
      else { return .allTold(browse: 0) }
      return .streamBytes(stream: stream, offer + cancellation)
    }
    try receive(sender.offers(as: 1).dropLast() + [both, .time, .signal(SIGTERM)])
    #expect(screen == ["\(offer) cancelled by its sender"])
  }

  @Test func `a question ends when --count offers are accepted`() throws {
    try receive(sender().offers(as: 1) + sender().offers(as: 2) + [.time, .input("y\n"), .time, .time], count: 1)
    #expect(screen.prefix(2) == ["p1?", "p2: “hello.txt”, 1 file, 5 B declined: no more offers are accepted"])
    #expect(!screen.contains("p2?"))
  }

  @Test func `no offer is asked about after the time of --for`() throws {
    let requests = try receive(
      sender().offers(as: 1) + [.time, .time] + sender().offers(as: 2).prefix(3) + [.time], seconds: "2")
    #expect(screen.prefix(2) == ["p1?", "\(offer) declined"])
    #expect(!screen.contains("p2?"))
    #expect(requests.contains(.take(stream: 702, isWanted: false, limit: 0)))
  }

  @Test func `a question ends when the daemon ends`() throws {
    try receive(sender().offers(as: 1) + [.time, .lost])
    #expect(screen == ["p1?", offerEnded, "the daemon closed the connection; reconnecting (^C ends)"])
  }

  @Test func `a question ends with the command`() throws {
    try receive(sender().offers(as: 1) + [.time, .signal(SIGTERM)])
    #expect(screen == ["p1?", "\(offer) declined"])
    #expect(!console.isAsking)
  }

  @Test func `a question ends when the output cannot be written`() throws {
    let failure = ScriptedConnection.Step.answer { [console] _ in
      console.failsWhenWritten = true
      console.put(TextBuilder("x"))
      return .allTold(browse: 0)
    }
    try receive(sender().offers(as: 1) + [.time, failure])
    #expect(screen == ["p1?"] && !console.isAsking)
  }
}
