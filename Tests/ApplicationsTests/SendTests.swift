import CSystem
import CommandLine
import FileSupport
import LocalAPI
import Primitives
import Session
import Testing
import TransferFiles

@testable import Applications

@Suite struct SendTests {
  private let console = RecordedConsole()
  private let scratch = Scratch()

  /// Sends a file of five bytes to bob.
  private func send(
    _ connection: ScriptedConnection, _ values: [(key: CInt, value: String)] = []
  ) throws -> CommandResult {
    try scratch.write("hello.txt", "hello")
    let source = try ResourceSource([scratch.file("hello.txt")])
    var options = FilesOptions()
    for (key, value) in values { _ = options.take(key, value) }
    let view = FilesView(isJSON: options.local.isJSON, console)
    return result { () throws(CommandError) in
      try Sending(connection, console, options, source, "bob", view).run()
    }
  }

  /// The steps until bob is a member of the session.
  private let joined: [ScriptedConnection.Step] = [
    .event(service("files", of: bob, peer("bob"))),
    .answer { connection in
      let number = connection.number { if case .invite = $0 { true } else { false } }
      return .invitationEnded(object: number, received: 0, .connected)
    },
    .event(connected(bob, peer("bob"))),
  ]

  private func invitationEnded(_ outcome: InvitationOutcome) -> [ScriptedConnection.Step] {
    [
      .event(service("files", of: bob, peer("bob"))),
      .answer { connection in
        let number = connection.number { if case .invite = $0 { true } else { false } }
        return .invitationEnded(object: number, received: 0, outcome)
      },
    ]
  }

  /// A connection to a receiver that stores the file in the folder “received”.
  private func toReceiver(_ script: [ScriptedConnection.Step]) throws -> ScriptedConnection {
    try #require(mkdir(scratch.file("received"), 0o755) == 0)
    let receiver = FileReceiver(into: scratch.file("received"))
    let connection = ScriptedConnection(console, script)
    connection.respond = { receiver.respond($0) }
    return connection
  }

  @Test func `a file arrives, and the command ends when its receiver has stored it`() throws {
    let connection = try toReceiver(joined)
    #expect(try send(connection) == CommandResult(ExitCode.done, ""))
    #expect(scratch.bytes("received/hello.txt") == bytes("hello"))
    #expect(console.text == "sent 1 file, 5 B to bob\n")
    #expect(connection.requests.last == .leave(session: 1, text: []))
  }

  @Test func `the sender reports the pending question and each stored file`() throws {
    _ = try send(try toReceiver(joined))
    #expect(
      console.errors == ["(verified, b0b01234) “bob” is asked to accept 1 file, 5 B", "hello.txt, 5 B: stored"])
  }

  @Test func `with --json the result is an object`() throws {
    _ = try send(try toReceiver(joined), [(LocalOptions.jsonKey, "")])
    let last = console.text.split(separator: "\n").last
    #expect(last?.hasPrefix(#"{"event":"sent","text":"sent 1 file, 5 B to bob","files":1,"#) == true)
  }

  @Test func `a receiver that declines gives exit code 6`() throws {
    let connection = ScriptedConnection(console, invitationEnded(.declined(explanation: bytes("busy"))))
    #expect(try send(connection).code == ExitCode.refused)
    #expect(console.errors == ["bob does not accept files: busy"])
  }

  @Test func `a busy receiver is invited again`() throws {
    let connection = ScriptedConnection(console, invitationEnded(.busy))
    _ = try send(connection)
    #expect(connection.requests.count { if case .invite = $0 { true } else { false } } > 1)
  }

  @Test func `a receiver that does not appear gives exit code 4`() throws {
    let connection = ScriptedConnection(console, [.event(.allTold(browse: 2))])
    #expect(try send(connection).code == ExitCode.timedOut)
    #expect(
      console.errors == [
        "“bob” is not receiving yet: waiting for it",
        "“bob” did not appear in time; run “causeway receive” there",
      ])
  }

  @Test func `a misspelt name ends the command at once with a suggestion`() throws {
    let connection = ScriptedConnection(
      console, [.event(service("files", of: carol, peer("bod"))), .event(.allTold(browse: 2))])
    #expect(try send(connection).code == ExitCode.failed)
    #expect(console.errors.last?.contains("did you mean “bod”?") == true)
  }

  @Test func `an interrupt before the offer ends the command with exit code 5`() throws {
    let connection = ScriptedConnection(console, [.signal(SIGINT)])
    #expect(try send(connection).code == ExitCode.cut)
    #expect(console.errors == ["interrupted"])
  }

  @Test func `the command connects to a restarted daemon and sends the file`() throws {
    let connection = ScriptedConnection(console, [.lost])
    connection.successor = try toReceiver(joined)
    #expect(try send(connection).code == ExitCode.done)
    #expect(console.errors.first == "the daemon closed the connection; reconnecting (^C ends)")
  }

  @Test func `a daemon that does not restart gives exit code 3`() throws {
    #expect(try send(ScriptedConnection(console, [.lost])).code == ExitCode.noDaemon)
    #expect(console.errors.last == "the daemon did not return in time")
  }

  @Test func `the connection name depends only on the files and the peer`() throws {
    try scratch.write("hello.txt", "hello")
    let manifest = try ResourceSource([scratch.file("hello.txt")]).manifest
    #expect(Sending.instance(manifest, "bob") == Sending.instance(manifest, "bob"))
    #expect(Sending.instance(manifest, "bob") != Sending.instance(manifest, "carol"))
  }
}
