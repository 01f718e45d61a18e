import CSystem
import CommandLine
import LocalAPI
import Primitives
import Session
import Testing

@testable import Applications

@Suite struct ChatTests {
  private let console = RecordedConsole()

  /// Runs a chat until it ends.
  private func chat(
    _ connection: ScriptedConnection, _ values: [(key: CInt, value: String)] = [], with: String? = nil
  ) -> CommandResult {
    result { () throws(CommandError) in
      let chat = try Chat(connection, console, localOptions(values), bytes("chat"), with.map { bytes($0) })
      try chat.run()
      chat.close()
      try chat.finish()
    }
  }

  private func message(_ from: MemberAddress, _ text: String) -> ScriptedConnection.Step {
    .event(.message(session: 1, from: from, isReliable: true, bytes(text)))
  }

  /// The result of the last line that was sent.
  private func sent(to address: MemberAddress, _ delivery: LocalDelivery = .delivered) -> ScriptedConnection.Step {
    .answer { connection in
      let number = connection.number { if case .send = $0 { true } else { false } }
      return .sent(request: number, to: address, delivery)
    }
  }

  @Test func `a line of standard input is sent to all connected members`() {
    let connection = ScriptedConnection(
      console,
      [
        .event(connected(bob, peer("bob"))), .event(connected(carol, peer("carol"))), .input("hello\n"),
        sent(to: bob), sent(to: carol), .endOfInput,
      ])
    #expect(chat(connection) == CommandResult(ExitCode.done, ""))
    #expect(connection.requests.contains(.send(session: 1, .interactive, to: [bob, carol], data: bytes("hello"))))
  }

  @Test func `the command leaves the session after its last line`() {
    let connection = ScriptedConnection(console, [.endOfInput])
    #expect(chat(connection).code == ExitCode.done)
    #expect(connection.requests.last == .leave(session: 1, text: []))
  }

  @Test func `a received message is shown with its sender's name`() {
    let connection = ScriptedConnection(
      console, [.event(connected(bob, peer("bob"))), message(bob, "hi"), .endOfInput])
    _ = chat(connection)
    #expect(console.text == "<bob> hi\n")
  }

  @Test func `a name that imitates another member's line is quoted`() {
    let names = ["carol> Yes, agreed: pay 500. <mal", "bob (b0b01234, 1 hop, verified); eve"]
    for name in names {
      let console = RecordedConsole()
      let connection = ScriptedConnection(
        console, [.event(connected(bob, peer(name, isVerified: false))), message(bob, "hi"), .endOfInput])
      _ = result { () throws(CommandError) in
        let chat = try Chat(connection, console, localOptions(), bytes("chat"), nil)
        try chat.run()
        chat.close()
        try chat.finish()
      }
      #expect(console.text == "<“\(name)”> hi\n")
      #expect(console.errors == ["“\(name)” is here (b0b01234, 1 hop, not verified)"])
    }
  }

  @Test func `two members of one name are shown with their ids`() {
    let connection = ScriptedConnection(
      console,
      [
        .event(connected(bob, peer("bob"))), .event(connected(carol, peer("bob"))), message(bob, "hi"), .endOfInput,
      ])
    _ = chat(connection)
    #expect(console.text == "<bob (b0b01234)> hi\n")
  }

  @Test func `a member that connects is announced on standard error`() {
    let connection = ScriptedConnection(console, [.event(connected(bob, peer("bob"))), .endOfInput])
    _ = chat(connection)
    #expect(console.errors == ["bob is here (b0b01234, 1 hop, verified)"])
  }

  @Test func `with --json a received message is an object on a line`() {
    let connection = ScriptedConnection(
      console, [.event(connected(bob, peer("bob"))), message(bob, "hi"), .endOfInput])
    _ = chat(connection, [(LocalOptions.jsonKey, "")])
    let line = console.text.split(separator: "\n").first { $0.hasPrefix(#"{"event":"message""#) }
    #expect(line?.hasSuffix(#""endpoint":"00000001","text":"hi"}"#) == true)
  }

  @Test func `lines without a receiver in time give exit code 4`() {
    let connection = ScriptedConnection(console, [.input("hello\n"), .endOfInput])
    let result = chat(connection, [(LocalOptions.waitKey, "5")])
    #expect(result == CommandResult(ExitCode.timedOut, "no peer appeared within 5 s: 1 line was not delivered"))
  }

  @Test func `an undelivered line to a departed member gives exit code 1`() {
    let connection = ScriptedConnection(
      console,
      [
        .event(connected(bob, peer("bob"))), .event(connected(carol, peer("carol"))), .input("hello\n"),
        .event(.member(session: 1, bob, .left(.wanted, text: []), peer("bob"))), sent(to: bob, .failed),
        sent(to: carol), .endOfInput,
      ])
    #expect(chat(connection) == CommandResult(ExitCode.failed, ""))
    #expect(console.errors.last?.hasSuffix(" did not receive the last 1 line") == true)
  }

  @Test func `with --with only messages of the named peer appear`() {
    let connection = ScriptedConnection(
      console,
      [
        .event(connected(bob, peer("bob"))), .event(connected(carol, peer("carol"))), message(carol, "no"),
        message(bob, "yes"), .endOfInput,
      ])
    _ = chat(connection, with: "bob")
    #expect(console.text == "<bob> yes\n")
  }

  @Test func `with --with an early message appears once its sender is identified as the named peer`() {
    let connection = ScriptedConnection(
      console, [message(bob, "early"), .event(connected(bob, peer("bob"))), .endOfInput])
    _ = chat(connection, with: "bob")
    #expect(console.text == "<bob> early\n")
  }

  @Test func `a stream of a member is refused`() {
    let connection = ScriptedConnection(
      console, [.event(.stream(session: 1, stream: 7, from: bob, bytes("x"))), .endOfInput])
    _ = chat(connection)
    #expect(connection.requests.contains(.take(stream: 7, isWanted: false, limit: 0)))
  }

  @Test func `a second interrupt discards undelivered lines`() {
    let connection = ScriptedConnection(console, [.input("hello\n"), .signal(SIGINT), .signal(SIGINT)])
    let result = chat(connection)
    #expect(console.errors == ["1 line was not delivered yet; ^C leaves anyway"])
    #expect(result == CommandResult(ExitCode.failed, "gave up: 1 line was not delivered"))
  }

  @Test func `a lost daemon ends the command with the reason`() {
    let connection = ScriptedConnection(console, [.lost])
    #expect(chat(connection) == CommandResult(ExitCode.failed, "the daemon closed the connection"))
  }

  @Test func `a failed write to standard output ends the command`() {
    console.failsWhenWritten = true
    let connection = ScriptedConnection(console, [.event(connected(bob, peer("bob"))), message(bob, "hi")])
    #expect(chat(connection) == CommandResult(ExitCode.failed, ""))
  }
}
