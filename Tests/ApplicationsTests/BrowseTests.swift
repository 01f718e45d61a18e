import CSystem
import CommandLine
import LocalAPI
import Primitives
import Session
import Testing

@testable import Applications

@Suite struct BrowseTests {
  private let console = RecordedConsole()

  /// Browses for a second.
  private func browse(_ script: [ScriptedConnection.Step], isJSON: Bool = false) -> CommandResult {
    let connection = ScriptedConnection(console, script)
    return result { () throws(CommandError) in
      var browse = Browse(connection, console, isJSON: isJSON)
      try browse.run([], until: console.now + .seconds(1))
    }
  }

  @Test func `a service that appears is shown on a line with its node, type and info`() {
    #expect(
      browse([.event(service("chat", of: bob, peer("bob"), info: [bytes("room=kitchen")]))]).code == ExitCode.done)
    #expect(console.text == "found bob (b0b01234) chat, 1 hop, verified, room=kitchen\n")
  }

  @Test func `a service whose info changes is shown on a line`() {
    _ = browse([
      .event(service("chat", of: bob, peer("bob"))),
      .event(service("chat", of: bob, peer("bob"), info: [bytes("room=kitchen")])),
    ])
    #expect(console.text.hasSuffix("\nchanged bob (b0b01234) chat, 1 hop, verified, room=kitchen\n"))
  }

  @Test func `a service that disappears is shown on a line`() {
    _ = browse([
      .event(service("chat", of: bob, peer("bob"))),
      .event(.services(browse: 2, reference: 1, bob.node, peer("bob"), [])),
    ])
    #expect(console.text.hasSuffix("\nlost bob (b0b01234) chat, 1 hop, verified\n"))
  }

  @Test func `a name cannot control the terminal`() {
    _ = browse([.event(service("chat", of: bob, peer("b\u{1B}[2Job")))])
    #expect(!console.text.contains("\u{1B}"))
  }

  @Test func `with --json an object marks the end of the known services`() {
    _ = browse([.event(.allTold(browse: 1))], isJSON: true)
    #expect(console.text == "{\"event\":\"all_told\"}\n")
  }

  @Test func `with --json a service is an object on a line`() {
    _ = browse([.event(service("chat", of: bob, peer("bob")))], isJSON: true)
    let end = #""endpoint":"00000001","type":"chat","hops":1,"verified":true,"info":[]}"# + "\n"
    #expect(console.text.hasPrefix(#"{"event":"found","name":"bob","id":"b0b01234"#) && console.text.hasSuffix(end))
  }

  @Test func `a signal ends the command before its timeout`() {
    let start = console.now
    #expect(browse([.signal(SIGINT)]) == CommandResult(ExitCode.done, ""))
    #expect(console.now == start)
  }

  @Test func `a closed output ends the command with exit code 1`() {
    #expect(browse([.outputClosed]) == CommandResult(ExitCode.failed, ""))
  }
}
