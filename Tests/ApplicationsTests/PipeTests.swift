import CSystem
import CommandLine
import LocalAPI
import Primitives
import Session
import Testing

@testable import Applications

@Suite struct PipeSenderTests {
  private let console = RecordedConsole()

  private func send(_ connection: ScriptedConnection) -> CommandResult {
    result { () throws(CommandError) in
      try PipeSender(connection, console, localOptions(), "bob", bytes("pipe")).run()
    }
  }

  /// The steps until the stream to bob is open.
  private let opened: [ScriptedConnection.Step] = [
    .event(service("pipe", of: bob, peer("bob"))), .event(.invitationEnded(object: 3, received: 0, .connected)),
    .event(connected(bob, peer("bob"))),
  ]

  private func room(_ limit: UInt64) -> ScriptedConnection.Step {
    .answer { .streamRoom(stream: $0.openedStream, limit: limit) }
  }

  private func ended(_ end: StreamEnd) -> ScriptedConnection.Step {
    .answer { .streamEnded(object: $0.openedStream, received: 0, end) }
  }

  @Test func `the named peer is invited when it appears`() {
    let connection = ScriptedConnection(console, [.event(service("pipe", of: bob, peer("bob")))])
    _ = send(connection)
    #expect(connection.requests.contains(.invite(session: 1, bob, milliseconds: 30_000, context: [])))
  }

  @Test func `standard input is written into a stream, and the command ends when the peer has received it`() {
    let script = opened + [room(100), .input("hello"), .endOfInput, ended(.finished)]
    let connection = ScriptedConnection(console, script)
    #expect(send(connection) == CommandResult(ExitCode.done, ""))
    #expect(connection.written[connection.openedStream] == bytes("hello"))
    let end = connection.requests.suffix(2)
    #expect(Array(end) == [.finish(stream: connection.openedStream), .leave(session: 1, text: [])])
  }

  @Test func `no more input is read than the stream accepts`() {
    let connection = ScriptedConnection(console, opened + [room(3), .input("hello"), ended(.finished)])
    _ = send(connection)
    #expect(connection.written[connection.openedStream] == bytes("hel"))
    #expect(connection.watches.last?.input == -1)
  }

  @Test func `input is not read while the daemon is behind`() {
    let connection = ScriptedConnection(console, opened + [room(100), .input("hello"), ended(.finished)])
    connection.isBehind = true
    _ = send(connection)
    #expect(connection.written[connection.openedStream] == nil)
  }

  @Test func `a peer that declines gives exit code 6`() {
    let connection = ScriptedConnection(
      console,
      [
        .event(service("pipe", of: bob, peer("bob"))),
        .event(.invitationEnded(object: 3, received: 0, .declined(explanation: bytes("not now")))),
      ])
    #expect(send(connection) == CommandResult(ExitCode.refused, "the peer declined: not now"))
  }

  @Test func `a peer that does not appear gives exit code 4`() {
    let result = send(ScriptedConnection(console))
    #expect(
      result == CommandResult(ExitCode.timedOut, "“bob” did not appear in time; run “causeway pipe --listen” there"))
  }

  @Test func `a peer that does not answer gives exit code 4`() {
    let connection = ScriptedConnection(console, [.event(service("pipe", of: bob, peer("bob")))])
    #expect(send(connection) == CommandResult(ExitCode.timedOut, "“bob” did not answer in time"))
  }

  @Test func `a name that matches two applications is an error`() {
    let services = [1, 2].map { Service(endpoint: $0, type: bytes("pipe"), info: [bytes("name=bob")]) }
    let connection = ScriptedConnection(
      console, [.event(.services(browse: 2, reference: 1, bob.node, peer("box"), services))])
    let result = send(connection)
    #expect(result.code == ExitCode.failed && result.text.hasPrefix("several peers are called “bob”: "))
  }

  @Test func `a stream that the peer resets gives exit code 5`() {
    let connection = ScriptedConnection(console, opened + [ended(.reset(.cancelled))])
    #expect(send(connection) == CommandResult(ExitCode.cut, "the peer cut the stream"))
  }

  @Test func `a stream that the peer refuses gives exit code 6`() {
    let connection = ScriptedConnection(console, opened + [ended(.reset(.refused))])
    #expect(send(connection) == CommandResult(ExitCode.refused, "the peer refused the stream"))
  }

  @Test func `an interrupt resets the stream`() {
    let connection = ScriptedConnection(console, opened + [.signal(SIGINT)])
    #expect(send(connection) == CommandResult(ExitCode.cut, "interrupted: the stream was cut"))
    #expect(connection.requests.last == .reset(stream: connection.openedStream))
  }

  @Test func `a request that the daemon refuses ends the command with the reason`() {
    let connection = ScriptedConnection(console)
    connection.outcome = { if case .open = $0 { .inUse } else { .done } }
    let text = "another of your commands already does this; give one of the two a --name"
    #expect(send(connection) == CommandResult(ExitCode.failed, text))
  }
}

@Suite struct PipeListenerTests {
  private let console = RecordedConsole()

  private func listen(
    _ connection: ScriptedConnection, canAsk: Bool = false, _ values: [(key: CInt, value: String)] = []
  ) -> CommandResult {
    result { () throws(CommandError) in
      try PipeListener(connection, console, localOptions(values), AcceptRule(canAsk: canAsk), bytes("pipe")).run()
    }
  }

  /// The steps until a stream of bob is accepted.
  private let taken: [ScriptedConnection.Step] = [
    .event(invited(by: bob, peer("bob"), rules: pipeRules)), .event(connected(bob, peer("bob"))),
    .event(.stream(session: 1, stream: 7, from: bob, bytes("pipe"))),
  ]

  private func received(_ data: [UInt8]) -> ScriptedConnection.Step {
    .answer { .streamBytes(stream: $0.takenStream, data) }
  }

  private let finished = ScriptedConnection.Step.answer {
    .streamEnded(object: $0.takenStream, received: 0, .finished)
  }

  @Test func `a stream of an invited peer is written to standard output`() {
    let connection = ScriptedConnection(console, taken + [received(bytes("hello")), finished])
    #expect(listen(connection) == CommandResult(ExitCode.done, ""))
    #expect(console.text == "hello")
    #expect(connection.requests.last == .leave(session: 1, text: []))
  }

  @Test func `a peer with a pinned key is accepted without a terminal`() {
    let connection = ScriptedConnection(console, taken + [finished])
    _ = listen(connection)
    #expect(connection.requests.contains(.answer(invitation: 90, into: 1, text: [])))
  }

  @Test func `a peer without a pinned key is declined without a terminal`() {
    let script: [ScriptedConnection.Step] = [
      .event(invited(by: bob, peer("bob", isVerified: false), rules: pipeRules))
    ]
    let connection = ScriptedConnection(console, script)
    _ = listen(connection, [(LocalOptions.waitKey, "5")])
    #expect(connection.requests.contains(.answer(invitation: 90, into: 0, text: bytes("not accepted here"))))
    #expect(console.errors == ["(b0b01234, 1 hop, not verified) “bob” was not accepted"])
  }

  @Test func `on a terminal a person accepts a peer`() {
    let script: [ScriptedConnection.Step] = [
      .event(invited(by: bob, peer("bob", isVerified: false), rules: pipeRules)), .time, .input("y\n"),
    ]
    let connection = ScriptedConnection(console, script)
    _ = listen(connection, canAsk: true, [(LocalOptions.waitKey, "5")])
    #expect(console.questions == ["(NOT verified, b0b01234) “bob” invites to “pipe”, 1 member. Accept? [y/N] "])
    #expect(connection.requests.contains(.answer(invitation: 90, into: 1, text: [])))
  }

  @Test func `an answer that was typed before its question could be read is ignored`() {
    let script: [ScriptedConnection.Step] = [
      .event(invited(by: bob, peer("bob", isVerified: false), rules: pipeRules)), .input("y\n"),
    ]
    let connection = ScriptedConnection(console, script)
    _ = listen(connection, canAsk: true, [(LocalOptions.waitKey, "5")])
    #expect(console.questions.count > 1)
    #expect(!connection.requests.contains(.answer(invitation: 90, into: 1, text: [])))
  }

  @Test func `a second stream is refused`() {
    let second = ScriptedConnection.Step.event(.stream(session: 1, stream: 8, from: bob, bytes("pipe")))
    let connection = ScriptedConnection(console, taken + [second, .signal(SIGTERM)])
    _ = listen(connection)
    #expect(connection.requests.contains(.take(stream: 8, isWanted: false, limit: 0)))
  }

  @Test func `the daemon may deliver more bytes when half of the window is used`() {
    let data = [UInt8](repeating: 1, count: 131_072)
    let connection = ScriptedConnection(console, taken + [received(data), finished])
    _ = listen(connection)
    #expect(connection.requests.contains(.streamWindow(stream: connection.takenStream, limit: 393_216)))
  }

  @Test func `no stream within --wait gives exit code 4`() {
    let result = listen(ScriptedConnection(console), [(LocalOptions.waitKey, "5")])
    #expect(result == CommandResult(ExitCode.timedOut, "no stream arrived in time"))
  }

  @Test func `an output that cannot be written resets the stream`() {
    console.failsWhenWritten = true
    let connection = ScriptedConnection(console, taken + [received(bytes("hello"))])
    #expect(listen(connection) == CommandResult(ExitCode.failed, ""))
    #expect(connection.requests.last == .reset(stream: connection.takenStream))
  }

  @Test func `a closed output resets the stream`() {
    let connection = ScriptedConnection(console, taken + [.outputClosed])
    #expect(listen(connection) == CommandResult(ExitCode.failed, ""))
    #expect(connection.requests.last == .reset(stream: connection.takenStream))
  }
}
