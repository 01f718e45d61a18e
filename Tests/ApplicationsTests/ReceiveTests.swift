import CSystem
import CommandLine
import FileSupport
import LocalAPI
import Primitives
import Session
import Testing
import TransferFiles

@testable import Applications

@Suite struct ReceiveTests {
  private let console = RecordedConsole()
  private let scratch = Scratch()

  /// Receives into the folder “received” until one offer has ended, or for the time of --for.
  private func receive(
    _ connection: ScriptedConnection, canAsk: Bool = false, bytesMax: UInt64 = .max, count: UInt64 = 1,
    _ values: [(key: CInt, value: String)] = []
  ) throws -> CommandResult {
    try #require(mkdir(scratch.file("received"), 0o755) == 0)
    var options = FilesOptions()
    for (key, value) in values { _ = options.take(key, value) }
    return result { () throws(CommandError) in
      let rule = AcceptRule(canAsk: canAsk)
      try Receiving(connection, console, options, rule, scratch.file("received"), bytesMax, count).run()
    }
  }

  /// A connection to bob, who invites and then offers a file of five bytes.
  private func fromSender(
    isVerified: Bool = true, then steps: (FileSender) -> [ScriptedConnection.Step] = { _ in [] }
  ) throws -> ScriptedConnection {
    try scratch.write("hello.txt", "hello")
    let sender = FileSender(try ResourceSource([scratch.file("hello.txt")]))
    let bobPeer = peer("bob", isVerified: isVerified)
    let script: [ScriptedConnection.Step] = [
      .event(invited(by: bob, bobPeer, rules: FileLimits.rules)), .event(connected(bob, bobPeer, session: 2)),
      .event(sender.offer),
    ]
    let connection = ScriptedConnection(console, script + steps(sender))
    connection.respond = { sender.respond($0) }
    return connection
  }

  @Test func `a file of a verified peer is stored`() throws {
    #expect(try receive(try fromSender()) == CommandResult(ExitCode.done, ""))
    #expect(scratch.bytes("received/hello.txt") == bytes("hello"))
  }

  @Test func `the stored file and the received offer are lines on standard output`() throws {
    _ = try receive(try fromSender())
    let path = scratch.file("received/hello.txt")
    #expect(console.text == "\(path) from bob\nbob: “hello.txt”, 1 file, 5 B received\n")
  }

  @Test func `the invitation is accepted into a session of its own`() throws {
    let connection = try fromSender()
    _ = try receive(connection)
    #expect(connection.requests.contains(.open(type: bytes("files"), FileLimits.rules)))
    #expect(connection.requests.contains(.answer(invitation: 90, into: 2, text: [])))
  }

  @Test func `with --json the events of a received file are objects`() throws {
    _ = try receive(try fromSender(), [(LocalOptions.jsonKey, "")])
    let events = console.text.split(separator: "\n").map { $0.split(separator: "\"")[3] }
    #expect(events.filter { $0 != "progress" } == ["offer", "answer", "stored", "received"])
  }

  @Test func `the invitation of a peer without a pinned key is declined without a terminal`() throws {
    let stranger = invited(by: bob, peer("bob", isVerified: false), rules: FileLimits.rules)
    let connection = ScriptedConnection(console, [.event(stranger)])
    _ = try receive(connection, [(LocalOptions.forKey, "5")])
    #expect(connection.requests.contains(.answer(invitation: 90, into: 0, text: bytes("not accepted here"))))
    #expect(console.errors == ["(NOT verified, b0b01234) “bob” was not accepted: not accepted here"])
  }

  @Test func `on a terminal a person accepts an offer`() throws {
    let connection = try fromSender(isVerified: false) { sender in
      [
        .answer { sender.respond($0)! }, .answer { sender.respond($0)! }, .time, .input("y\n"),
      ]
    }
    #expect(try receive(connection, canAsk: true).code == ExitCode.done)
    #expect(
      console.questions.first?.hasPrefix("(NOT verified, b0b01234) “bob” offers “hello.txt”, 1 file, 5 B") == true)
  }

  @Test func `on a terminal a person declines an offer`() throws {
    let connection = try fromSender(isVerified: false) { sender in
      [
        .answer { sender.respond($0)! }, .answer { sender.respond($0)! }, .time, .input("n\n"),
      ]
    }
    _ = try receive(connection, canAsk: true, [(LocalOptions.forKey, "60")])
    #expect(scratch.bytes("received/hello.txt") == nil)
    #expect(console.errors.contains("bob: “hello.txt”, 1 file, 5 B declined"))
  }

  @Test func `a question about a verified peer is asked first, and only the newest four strangers wait`() throws {
    try scratch.write("hello.txt", "hello")
    let senders = try (1...7).map { _ in FileSender(try ResourceSource([scratch.file("hello.txt")])) }
    var script: [ScriptedConnection.Step] = []
    for (index, sender) in senders.enumerated() {
      script += sender.offers(as: UInt64(index + 1), isVerified: index == 6)
    }
    for _ in 0..<6 { script += [.time, .input("n\n")] }
    _ = try receive(ScriptedConnection(console, script), canAsk: true, count: 9, [(LocalOptions.forKey, "60")])
    let asked = console.questions.map { $0.split(separator: "“")[1].prefix(2) }
    #expect(asked == ["p1", "p7", "p3", "p4", "p5", "p6"])
    #expect(console.errors.first == "p2: “hello.txt”, 1 file, 5 B declined: newer offers wait for an answer")
  }

  @Test func `an offer larger than --max is refused and gives exit code 1`() throws {
    #expect(try receive(try fromSender(), bytesMax: 4).code == ExitCode.failed)
    #expect(console.errors == ["bob: “hello.txt”, 1 file, 5 B declined: at most 4 B"])
  }

  @Test func `--for that expires before --count is reached gives exit code 4`() throws {
    #expect(try receive(ScriptedConnection(console), [(LocalOptions.forKey, "5")]).code == ExitCode.timedOut)
  }

  @Test func `a stream that is not an offer is refused`() throws {
    let stream = ScriptedConnection.Step.event(.stream(session: 2, stream: 7, from: bob, bytes("chat")))
    let connection = ScriptedConnection(console, [stream])
    _ = try receive(connection, [(LocalOptions.forKey, "5")])
    #expect(connection.requests.contains(.take(stream: 7, isWanted: false, limit: 0)))
  }

  @Test func `the command leaves a session without other members`() throws {
    let script: [ScriptedConnection.Step] = [
      .event(invited(by: bob, peer("bob"), rules: FileLimits.rules)), .event(connected(bob, peer("bob"), session: 2)),
      .event(.member(session: 2, bob, .left(.wanted, text: []), peer("bob"))),
    ]
    let connection = ScriptedConnection(console, script)
    _ = try receive(connection, [(LocalOptions.forKey, "5")])
    #expect(connection.requests.contains(.leave(session: 2, text: [])))
  }

  @Test func `an interrupt ends a command that has received nothing`() throws {
    #expect(try receive(ScriptedConnection(console, [.signal(SIGINT)])).code == ExitCode.done)
  }
}
