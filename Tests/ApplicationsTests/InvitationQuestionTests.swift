import CSystem
import CommandLine
import LocalAPI
import Session
import Testing
import Text

@testable import Applications

/// The commands that ask about invitations.
enum InvitedCommand: CaseIterable {
  case accepting, listening

  fileprivate func run(
    _ connection: ScriptedConnection, _ console: RecordedConsole, _ values: [(key: CInt, value: String)]
  ) {
    let options = localOptions(values), rule = AcceptRule(canAsk: true)
    _ = result { () throws(CommandError) in
      switch self {
      case .accepting: try accept(connection, console, options, rule, bytes("pipe"))
      case .listening: try PipeListener(connection, console, options, rule, bytes("pipe")).run()
      }
    }
  }
}

/// The ways in which a command ends while a question is shown.
enum CommandEnd: CaseIterable {
  case signal, daemonLost, outputClosed, timeLimit, sessionEnded

  fileprivate var steps: [ScriptedConnection.Step] {
    switch self {
    case .signal: [.signal(SIGTERM)]
    case .daemonLost: [.lost]
    case .outputClosed: [.outputClosed]
    case .timeLimit: [.time]
    case .sessionEnded: [.event(.ended(session: 1, .left, same: 0))]
    }
  }
}

@Suite struct InvitationQuestionTests {
  private let console = RecordedConsole()

  private func invitation(_ name: String, _ address: MemberAddress, _ number: UInt32) -> ScriptedConnection.Step {
    .event(invited(by: address, peer(name, isVerified: false), rules: pipeRules, number: number))
  }

  private func ended(_ number: UInt32) -> ScriptedConnection.Step {
    .event(.invitationEnded(object: 1, received: number, .cancelled))
  }

  /// The lines of the screen about invitations. A question is shortened to the name of the inviting peer.
  private var screen: [String] {
    console.screen.filter { $0.contains("“bob”") || $0.contains("“carol”") || $0.contains("invitation") }.map { line in
      guard line.hasSuffix(" Accept? [y/N] ") else { return line }
      return "\(line.split(separator: "“")[1].split(separator: "”")[0])?"
    }
  }

  private func run(
    _ command: InvitedCommand, _ steps: [ScriptedConnection.Step], _ values: [(key: CInt, value: String)] = []
  ) {
    command.run(ScriptedConnection(console, [invitation("bob", bob, 90)] + steps), console, values)
  }

  @Test(arguments: InvitedCommand.allCases)
  func `a question ends with its invitation, and the next one is shown once`(_ command: InvitedCommand) {
    run(command, [invitation("carol", carol, 91), .time, ended(90), .time, .signal(SIGTERM)])
    #expect(screen == ["bob?", "bob: the invitation has ended, no answer is needed", "carol?"])
  }

  @Test(arguments: InvitedCommand.allCases)
  func `the question after a declined invitation is shown once, below the result`(_ command: InvitedCommand) {
    run(command, [invitation("carol", carol, 91), .time, .input("n\n"), .time, .signal(SIGTERM)])
    #expect(screen == ["bob?", "(b0b01234, 1 hop, not verified) “bob” was not accepted", "carol?"])
  }

  @Test(arguments: InvitedCommand.allCases)
  func `an invitation that ends before its question is shown is not asked about`(_ command: InvitedCommand) {
    run(command, [invitation("carol", carol, 91), .time, ended(91), .signal(SIGTERM)])
    #expect(screen == ["bob?"])
  }

  @Test(arguments: InvitedCommand.allCases, CommandEnd.allCases)
  func `a question ends with the command`(_ command: InvitedCommand, _ end: CommandEnd) {
    let limit = command == .accepting ? LocalOptions.forKey : LocalOptions.waitKey
    run(command, [.time] + end.steps, [(limit, "20")])
    #expect(screen == ["bob?"] && !console.isAsking)
  }

  @Test(arguments: InvitedCommand.allCases)
  func `a question ends when the output cannot be written`(_ command: InvitedCommand) {
    let failure = ScriptedConnection.Step.answer { [console] _ in
      console.failsWhenWritten = true
      console.put(TextBuilder("x"))
      return .allTold(browse: 0)
    }
    run(command, [.time, failure])
    #expect(screen == ["bob?"] && !console.isAsking)
  }
}
