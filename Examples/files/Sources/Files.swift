import Causeway

// files send NAME SOCKET PATH…         sends files and folders to the first receiver in reach
// files receive NAME SOCKET DIRECTORY  receives files and folders until it is stopped

@main struct Files {
  static func main() async {
    let words = CommandLine.arguments
    guard words.count >= 5, ["send", "receive"].contains(words[1]) else {
      return print("usage: files send NAME SOCKET PATH… | files receive NAME SOCKET DIRECTORY")
    }
    while true {
      do {
        let node = try await Node.connect(as: words[2], at: words[3], patience: .seconds(60))
        let session = try await node.openSession("files", rules: Rules(membersMax: 64))
        let gathering = Task { try await session.gather() }
        defer { gathering.cancel() }
        if words[1] == "send" { return try await send(Array(words[4...]), in: session) }
        try await receive(into: words[4], in: session)
      } catch let error as CausewayError where error.reason == .daemonEnded {
        print("-- the daemon restarted: starting again")
      } catch {
        return print("-- \(error)")
      }
    }
  }

  static func send(_ paths: [String], in session: Session) async throws {
    for try await event in session.events {
      guard case .member(let member) = event, member.isConnected else { continue }
      print("-- offered to \(member.peer.name)")
      let transfer = try await session.offer(paths, to: member.address)
      try await show(transfer)
      print("sent: \(try await transfer.finish().joined(separator: ", "))")
      return try await session.leave("done")
    }
  }

  static func receive(into directory: String, in session: Session) async throws {
    for try await event in session.events {
      guard case .offer(let offer) = event else { continue }
      let held = await offer.bytesHeld(in: directory)
      print(
        "-- \(offer.from.peer.name) offers \(offer.name): \(offer.fileCount) files, \(offer.byteCount) bytes; \(held) are here"
      )
      Task {
        do {
          let transfer = try await offer.accept(into: directory)
          try await show(transfer)
          print("received: \(try await transfer.finish().joined(separator: ", "))")
        } catch {
          print("-- not received: \(error)")
        }
      }
    }
  }

  static func show(_ transfer: Transfer) async throws {
    for try await progress in transfer.progress {
      print("\(progress.state): \(progress.bytesDone) of \(progress.byteCount), \(progress.bytesMoved) moved")
    }
  }
}
