// A chat for everyone in reach, over any radio: groupchat [NAME [SOCKET]]
import Causeway

@main struct GroupChat {
  static func main() async {
    let words = CommandLine.arguments
    do {
      let node = try await Node.connect(
        as: words.count > 1 ? words[1] : "groupchat", at: words.count > 2 ? words[2] : Node.socketPath)
      print("-- this is \(node.name)")
      try await chat(in: try await node.openSession("groupchat", rules: Rules(membersMax: 64)))
    } catch {
      print("-- \(error)")
    }
  }

  static func chat(in session: Session) async throws(CausewayError) {
    Task { try await session.gather() }
    Task {
      for try await line in standardInputLines() {
        for (member, delivery) in try await session.send(Array(line.utf8)) where delivery != .delivered {
          print("-- not delivered to \(member): \(delivery)")
        }
      }
      try await session.leave("bye")
    }
    for try await event in session.events {
      switch event {
      case .member(let member): print("-- \(member.peer.name): \(member.state)")
      case .message(let message): print("<\(message.sender.peer.name)> \(message.text)")
      case .room, .stream, .offer, .decisionWanted: break
      case .ended(let reason): print("-- the chat has ended: \(reason)")
      }
    }
  }
}
