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
  }

  private let connection: DaemonConnection
  private let session: UInt32
  private let rule: AcceptRule
  private let type: [UInt8]
  /// The daemon bounds them.
  private var waiting: [Question] = []
  private let questions = Questions()
  private let lines: PeerLines
  /// What is told of each answer: the peer, and whether it was accepted.
  private let tell: (Invitation, LocalPeer, Bool) -> Void

  init(
    _ connection: DaemonConnection, _ session: UInt32, _ rule: AcceptRule, _ type: [UInt8], _ lines: PeerLines,
    _ tell: @escaping (Invitation, LocalPeer, Bool) -> Void
  ) {
    self.connection = connection
    self.session = session
    self.rule = rule
    self.type = type
    self.lines = lines
    self.tell = tell
  }

  /// Standard input while a question waits for its answer; otherwise -1.
  var descriptor: CInt { questions.descriptor }
  /// When `checkTime` is due.
  var deadline: Instant { questions.deadline }

  /// Call it before each wait for events.
  func checkTime() { questions.checkTime() }

  func invited(_ invitation: Invitation, _ peer: LocalPeer) {
    switch rule.answer(invitation.from.node, peer) {
    case .yes: answer(invitation, peer, true)
    case .no: answer(invitation, peer, false)
    case .ask where questions.isOver: answer(invitation, peer, false)
    case .ask:
      makePlace(for: peer)
      waiting.append(Question(invitation: invitation, peer: peer))
      questions.ask(invitation.handle.number, question(invitation, peer))
    }
  }

  /// A person is asked about the newest few: of peers whose keys are not verified the oldest whose question was not shown yet
  /// gives way.
  private func makePlace(for peer: LocalPeer) {
    let strangers = waiting.dropFirst().indices.filter { !waiting[$0].peer.isVerified }
    guard !peer.isVerified, strangers.count >= Self.strangersMax else { return }
    let oldest = waiting.remove(at: strangers[0])
    questions.withdraw(oldest.invitation.handle.number, nil)
    answer(oldest.invitation, oldest.peer, false)
  }

  /// Questions about peers whose keys are not verified that wait behind the one that is shown. Strangers fill them.
  private static let strangersMax = 4

  /// Whether a member of a merged session may be met.
  func accepts(_ node: NodeID, _ peer: LocalPeer) -> Bool { rule.answer(node, peer) == .yes }

  /// An invitation has ended, whoever ended it.
  func ended(_ received: UInt32) {
    guard let index = waiting.firstIndex(where: { $0.invitation.handle.number == received }) else { return }
    let question = waiting.remove(at: index)
    let text = TextBuilder(question.peer.name, " waits no longer: its invitation is over")
    questions.withdraw(received, lines.admitted(text, .withdrawn, of: question.invitation.from.node, question.peer))
  }

  /// Reads answers.
  func readInput() {
    questions.readInput { number, accepts in
      guard let index = waiting.firstIndex(where: { $0.invitation.handle.number == number }) else { return }
      let question = waiting.remove(at: index)
      answer(question.invitation, question.peer, accepts)
    }
  }

  private func answer(_ invitation: Invitation, _ peer: LocalPeer, _ accepts: Bool) {
    let text: StaticString = accepts ? "" : "not accepted here"
    connection.ask(.answer(invitation: invitation.handle.number, into: accepts ? session : 0, text: text.bytes))
    tell(invitation, peer, accepts)
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

/// The inviter, and whether its invitation was accepted: (2b75e26e, 1 hop, not verified) “bob” was not accepted
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
