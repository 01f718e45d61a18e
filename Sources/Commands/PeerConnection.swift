import CSystem
import Diagnostics
import Primitives
import Reactor

/// A command's connection to the mesh through the daemon: peers, messages, results of sends.
final class PeerConnection {
  enum Happening {
    case appeared(PeerStatus)
    case changed(PeerStatus)
    case vanished(PeerStatus)
    case message(Diagnostics.ControlMessage)
    case completed(UInt32, SendOutcome)
    /// The other descriptor is readable.
    case otherReady
    case timedOut
  }

  /// How long to wait for a named peer when no time is given.
  static let appearSecondsDefault: UInt64 = 30

  let client: ControlClient
  private(set) var book = PeerBook()
  /// The id of the daemon's node.
  private(set) var localID = NodeID.none
  private var requestCounter: UInt32 = 0

  /// Attaches to the daemon for messages of `kinds`; `book` then holds every current peer.
  init(_ options: ClientOptions, kinds: [UInt8]) throws(CommandFailure) {
    client = try options.connect()
    var mask: UInt32 = 0
    for kind in kinds { mask |= 1 << UInt32(kind) }
    client.send(.attach(kinds: mask))
    while true {
      switch client.next(milliseconds: 5000) {
      case .event(.peerPresent(let peer)): _ = book.present(peer)
      case .event(.ready(let id, _)):
        localID = id
        return
      case .event: continue
      case .closed(let reason): throw CommandFailure(saying: reason)
      case .otherReady, .timedOut: throw CommandFailure(saying: "the daemon did not answer for 5 s; see “causeway log”")
      }
    }
  }

  /// Sends a message; one `.completed` with the returned number follows.
  func send(_ kind: UInt8, _ bytes: [UInt8], lane: UInt8, to peer: NodeID) -> UInt32 {
    requestCounter &+= 1
    client.send(.send(request: requestCounter, ControlMessage(peer: peer, kind: kind, lane: lane, bytes: bytes)))
    return requestCounter
  }

  /// Waits for the next event, at most until `deadline`.
  func next(until deadline: Instant, other: CInt = -1) throws(CommandFailure) -> Happening {
    while true {
      if Output.hasFailed { throw CommandFailure(ExitCode.failed) }
      switch client.next(milliseconds: Self.milliseconds(until: deadline), other: other) {
      case .event(.peerPresent(let peer)):
        return book.present(peer) ? .appeared(peer) : .changed(peer)
      case .event(.peerLost(let id)):
        if let peer = book.lost(id) { return .vanished(peer) }
      case .event(.message(let message)): return .message(message)
      case .event(.completed(let request, let outcome)): return .completed(request, outcome)
      case .event(.ready), .event(.statusPiece), .event(.closing), .event(.trustAnswer), .event(.way): continue
      case .otherReady: return .otherReady
      case .timedOut: return .timedOut
      case .closed(let reason): throw CommandFailure(saying: reason)
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
      if case .timedOut = try next(until: deadline) {
        throw CommandFailure(
          saying: "no peer “\(name)” appeared; “causeway peers” shows who is there", ExitCode.timedOut)
      }
    }
  }

  private static func milliseconds(until deadline: Instant) -> CInt {
    if deadline == .never { return -1 }
    let left = deadline - monotonicNow()
    // Rounded up: a wait that ends too early would be repeated without sleeping.
    return CInt(clamping: (left.nanoseconds + 999_999) / 1_000_000)
  }
}

/// `seconds` from now; `.never` for nil.
func deadline(after seconds: UInt64?) -> Instant {
  guard let seconds else { return .never }
  return monotonicNow() + .seconds(seconds)
}

/// A peer in one line: bob (b0b01234) over bluetooth-le, 2 hops, room=kitchen
func describe(_ peer: PeerStatus) -> String {
  var text =
    "\(peer.name) (\(peer.id.shortText)) over \(peer.bearer.name), \(peer.hops) hop\(peer.hops == 1 ? "" : "s")"
  for pair in peer.info { text += ", " + pair }
  return text
}

/// Prints one line of untrusted text on stdout.
func show(_ prefix: StaticString, _ text: String) {
  var line = TextBuilder()
  line.add(prefix)
  line.add(untrusted: text.utf8)
  line.add("\n")
  Output.put(line)
}
