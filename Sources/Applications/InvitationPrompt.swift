import CommandLine
import LocalAPI
import Primitives
import Session
import Terminal
import Text

/// Answers invitations to a session by a rule, or by asking the user on the terminal, one question at a time.
final class InvitationPrompt {
  private struct Question {
    let invitation: Invitation
    let peer: LocalPeer
  }

  private let connection: any LocalConnection
  private let session: UInt32
  private let rule: AcceptRule
  private let type: [UInt8]
  /// Invitations that wait for an answer. The daemon limits their number.
  private var waiting: [Question] = []
  private let questions: Prompts
  private let lines: PeerLines
  /// Called for each answer, with the invitation, the inviting peer, and whether the invitation was accepted.
  private let answered: (Invitation, LocalPeer, Bool) -> Void

  init(
    _ connection: any LocalConnection, _ console: any Console, _ session: UInt32, _ rule: AcceptRule, _ type: [UInt8],
    _ lines: PeerLines, _ answered: @escaping (Invitation, LocalPeer, Bool) -> Void
  ) {
    self.connection = connection
    questions = Prompts(console)
    self.session = session
    self.rule = rule
    self.type = type
    self.lines = lines
    self.answered = answered
  }

  /// The descriptor of standard input while a question waits for its answer; otherwise -1.
  var descriptor: CInt { questions.descriptor }
  /// When to call `update`.
  var deadline: Instant { questions.deadline }

  /// Shows the next question, and lets the shown one accept answers when its reading time is over. Call it before each
  /// wait for events.
  func update() { questions.update() }

  /// Ends all questions without an answer. Call it when the command ends, before its last lines.
  func close() { questions.withdrawAll() }

  func invited(_ invitation: Invitation, _ peer: LocalPeer) {
    switch rule.answer(invitation.from.node, peer) {
    case .yes: answer(invitation, peer, true)
    case .no: answer(invitation, peer, false)
    case .ask where questions.isOver: answer(invitation, peer, false)
    case .ask:
      waiting.append(Question(invitation: invitation, peer: peer))
      let text = question(invitation, peer)
      if let removed = questions.ask(invitation.handle.number, text, isVerified: peer.isVerified) {
        answered(removed, false)
      }
    }
  }

  /// Whether to accept a member of a merged session.
  func accepts(_ node: NodeID, _ peer: LocalPeer) -> Bool { rule.answer(node, peer) == .yes }

  /// Handles an invitation that ended before its answer, whichever side ended it.
  func ended(_ received: UInt32) {
    guard let index = waiting.firstIndex(where: { $0.invitation.handle.number == received }) else { return }
    let question = waiting.remove(at: index)
    let text = TextBuilder(name: question.peer.name, ": the invitation has ended, no answer is needed")
    questions.withdraw(received, lines.admitted(text, .withdrawn, of: question.invitation.from.node, question.peer))
  }

  /// Reads answers from the terminal.
  func readInput() {
    questions.readInput { number, accepts in answered(number, accepts) }
  }

  private func answered(_ number: UInt32, _ accepts: Bool) {
    guard let index = waiting.firstIndex(where: { $0.invitation.handle.number == number }) else { return }
    let question = waiting.remove(at: index)
    answer(question.invitation, question.peer, accepts)
  }

  private func answer(_ invitation: Invitation, _ peer: LocalPeer, _ accepts: Bool) {
    let text: StaticString = accepts ? "" : "not accepted here"
    connection.ask(.answer(invitation: invitation.handle.number, into: accepts ? session : 0, text: text.bytes))
    answered(invitation, peer, accepts)
  }

  private func question(_ invitation: Invitation, _ peer: LocalPeer) -> TextBuilder {
    var text = TextBuilder()
    text.add(peer, invitation.from.node)
    text.add(" invites to “")
    text.add(untrusted: type)
    text.add("”, ")
    text.add(UInt64(invitation.memberCount))
    text.add(invitation.memberCount == 1 ? " member" : " members" as StaticString)
    let context = invitation.context.prefix(Self.contextShownBytes)
    if !context.isEmpty && isPlainText(invitation.context.span.bytes) {
      text.add(": “")
      text.add(untrusted: context)
      text.add("”")
    }
    text.add(". Accept? [y/N] ")
    return text
  }

  private static let contextShownBytes = 200
}

/// The answer to an invitation as text, for example: (2b75e26e, 1 hop, not verified) “bob” was not accepted
func answerText(_ invitation: Invitation, _ peer: LocalPeer, _ isAccepted: Bool) -> TextBuilder {
  var text = TextBuilder("(")
  text.add(invitation.from.node.shortText)
  text.add(", ")
  text.add(peer)
  text.add(") “")
  text.add(untrusted: peer.name)
  text.add(isAccepted ? "” was accepted" : "” was not accepted" as StaticString)
  return text
}
