import CommandLine
import ControlSocket
import Primitives
import Reactor
import Status
import Text

/// A connection to the daemon's control socket that tracks the peers in reach.
final class PeerConnection {
  private let client: ControlClient
  private(set) var book = PeerBook()
  /// The id of the daemon's node.
  private(set) var localID = NodeID.none
  private var requestCounter: UInt32 = 0

  /// Connects to the daemon and subscribes to changes of peers. On return `book` contains every peer in reach.
  init(_ options: ClientOptions) throws(CommandError) {
    client = try options.connect()
    client.send(.watch)
    while true {
      switch client.next(milliseconds: 5000) {
      case .event(.ready(let id, _)):
        localID = id
        return
      case .event(let event): handle(event)
      case .closed(let reason): throw CommandError(saying: reason)
      case .timedOut: throw CommandError(saying: "the daemon did not answer for 5 s; see “causeway log”")
      }
    }
  }

  /// The peer with this display name, or whose id starts with these digits. With a deadline, waits until the deadline
  /// for the peer to appear. Throws if there is no such peer or more than one.
  func peer(named name: String, until deadline: Instant?) throws(CommandError) -> NodeID {
    var hasSaid = false
    while true {
      switch book.match(name) {
      case .one(let id): return id
      case .several(let ids): throw CommandError(saying: severalText(Array(name.utf8), ids))
      case .none:
        guard let deadline else {
          throw CommandError(
            saying: "there is no peer “\(shown(name))”; “causeway peers” lists the peers", ExitCode.timedOut)
        }
        if !hasSaid { printError("waiting for “\(shown(name))”") }
        hasSaid = true
        guard try next(until: deadline) != nil else {
          throw CommandError(
            saying: "no peer “\(shown(name))” appeared; “causeway peers” lists the peers", ExitCode.timedOut)
        }
      }
    }
  }

  /// The links of the current route to a node, nearest first; empty if there is no route.
  func way(to node: NodeID) throws(CommandError) -> [ControlHop] {
    send(.way(node))
    while let event = try next(until: monotonicNow() + .seconds(5)) {
      if case .way(let hops) = event { return hops }
    }
    throw CommandError(saying: "the daemon did not answer for 5 s; see “causeway log”")
  }

  /// A new request number.
  func nextRequest() -> UInt32 {
    requestCounter &+= 1
    return requestCounter
  }

  func send(_ request: ControlRequest) { client.send(request) }

  /// The next event; nil if none arrives before the deadline.
  func next(until deadline: Instant) throws(CommandError) -> ControlEvent? {
    if Output.hasFailed { throw CommandError(ExitCode.failed) }
    let now = monotonicNow()
    // Round up to a millisecond: a wait that ends before the deadline would be repeated without sleeping.
    let left = deadline > now ? CInt(clamping: ((deadline - now).nanoseconds + 999_999) / 1_000_000) : 0
    switch client.next(milliseconds: left) {
    case .event(let event):
      handle(event)
      return event
    case .closed(let reason): throw CommandError(saying: reason)
    case .timedOut: return nil
    }
  }

  private func handle(_ event: ControlEvent) {
    switch event {
    case .peerPresent(let peer): _ = book.present(peer)
    case .peerLost(let id): _ = book.lost(id)
    case .ready, .completed, .way, .statusPiece, .closing, .answer, .frames: break
    }
  }
}
