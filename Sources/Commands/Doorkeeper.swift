import CSystem
import Diagnostics
import LocalAPI
import LocalClient
import Primitives
import Session

/// Answers invitations by a rule, or by questions on the terminal: one after the other.
final class Doorkeeper {
  private struct Question {
    let invitation: Invitation
    let peer: LocalPeer
    var isAsked = false
  }

  private let connection: DaemonConnection
  private let session: UInt32
  private let rule: AcceptRule
  private let type: [UInt8]
  /// The daemon bounds them.
  private var questions: [Question] = []
  private var input = LineInput(byteCountMax: 256)
  /// What is told of each answer: the peer, and whether it was accepted.
  private let tell: (Invitation, LocalPeer, Bool) -> Void

  init(
    _ connection: DaemonConnection, _ session: UInt32, _ rule: AcceptRule, _ type: [UInt8],
    _ tell: @escaping (Invitation, LocalPeer, Bool) -> Void
  ) {
    self.connection = connection
    self.session = session
    self.rule = rule
    self.type = type
    self.tell = tell
  }

  /// Standard input while a question waits for its answer; otherwise -1.
  var descriptor: CInt { questions.isEmpty || input.isOver ? -1 : STDIN_FILENO }

  func invited(_ invitation: Invitation, _ peer: LocalPeer) {
    switch rule.answer(invitation.from.node, peer) {
    case .yes: answer(invitation, peer, true)
    case .no: answer(invitation, peer, false)
    case .ask where input.isOver: answer(invitation, peer, false)
    case .ask:
      questions.append(Question(invitation: invitation, peer: peer))
      askNext()
    }
  }

  /// Whether a member of a merged session may be met.
  func accepts(_ node: NodeID, _ peer: LocalPeer) -> Bool { rule.answer(node, peer) == .yes }

  /// An invitation has ended, whoever ended it.
  func ended(_ received: UInt32) {
    guard let index = questions.firstIndex(where: { $0.invitation.handle.number == received }) else { return }
    let question = questions.remove(at: index)
    if question.isAsked { printError(TextBuilder(question.peer.name, " waits no longer: its invitation is over")) }
    askNext()
  }

  /// Reads answers.
  func readInput() {
    input.read()
    while let line = input.next() {
      guard !questions.isEmpty, questions[0].isAsked else { continue }
      let question = questions.removeFirst()
      let first = line.first { $0 != 0x20 }
      answer(question.invitation, question.peer, first == UInt8(ascii: "y") || first == UInt8(ascii: "Y"))
      askNext()
    }
    guard input.isOver else { return }
    for question in questions { answer(question.invitation, question.peer, false) }
    questions = []
  }

  private func answer(_ invitation: Invitation, _ peer: LocalPeer, _ accepts: Bool) {
    let text: StaticString = accepts ? "" : "not accepted here"
    connection.ask(.answer(invitation: invitation.handle.number, into: accepts ? session : 0, text: text.bytes))
    tell(invitation, peer, accepts)
  }

  private func askNext() {
    guard !questions.isEmpty, !questions[0].isAsked else { return }
    questions[0].isAsked = true
    let (invitation, peer) = (questions[0].invitation, questions[0].peer)
    var text = TextBuilder()
    text.add(untrusted: peer.name)
    text.add(peer.isVerified ? " (verified, " : " (NOT verified, " as StaticString)
    text.add(invitation.from.node.shortText)
    text.add(") invites to “")
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
    text.write(to: STDERR_FILENO)
  }

  private static let contextShownBytes = 200
}

/// Who invited, and whether it was accepted: bob (2b75e26e, 1 hop, not verified) was not accepted
func answerText(_ invitation: Invitation, _ peer: LocalPeer, _ isAccepted: Bool) -> TextBuilder {
  var text = TextBuilder(peer.name, " (")
  text.add(invitation.from.node.shortText)
  text.add(", ")
  text.add(peer)
  text.add(isAccepted ? ") was accepted" : ") was not accepted" as StaticString)
  return text
}
