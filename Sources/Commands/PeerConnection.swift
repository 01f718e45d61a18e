import Diagnostics
import Primitives
import Reactor

/// A command's view of the mesh through the daemon: who is there.
final class PeerConnection {
  private let client: ControlClient
  private(set) var book = PeerBook()
  /// The id of the daemon's node.
  private(set) var localID = NodeID.none

  /// Attaches to the daemon; `book` then holds every current peer.
  init(_ options: ClientOptions) throws(CommandFailure) {
    client = try options.connect()
    client.send(.attach(kinds: 0))
    while true {
      switch client.next(milliseconds: 5000) {
      case .event(.ready(let id, _)):
        localID = id
        return
      case .event(let event): hear(event)
      case .closed(let reason): throw CommandFailure(saying: reason)
      case .timedOut: throw CommandFailure(saying: "the daemon did not answer for 5 s; see “causeway log”")
      }
    }
  }

  /// The peer with this display name or start of its id; waits until it appears.
  func peer(named name: String, until deadline: Instant) throws(CommandFailure) -> NodeID {
    var hasSaid = false
    while true {
      switch book.match(name) {
      case .one(let id): return id
      case .several(let ids): throw CommandFailure(saying: severalText(Array(name.utf8), ids))
      case .none:
        if !hasSaid { printError("waiting for “\(name)”") }
        hasSaid = true
      }
      // Rounded up: a wait that ends too early would be repeated without sleeping.
      let left = CInt(clamping: ((deadline - monotonicNow()).nanoseconds + 999_999) / 1_000_000)
      switch client.next(milliseconds: left) {
      case .event(let event): hear(event)
      case .closed(let reason): throw CommandFailure(saying: reason)
      case .timedOut:
        throw CommandFailure(
          saying: "no peer “\(name)” appeared; “causeway peers” shows who is there", ExitCode.timedOut)
      }
    }
  }

  private func hear(_ event: ControlEvent) {
    switch event {
    case .peerPresent(let peer): _ = book.present(peer)
    case .peerLost(let id): _ = book.lost(id)
    case .ready, .message, .completed, .statusPiece, .closing, .trustAnswer: break
    }
  }
}
