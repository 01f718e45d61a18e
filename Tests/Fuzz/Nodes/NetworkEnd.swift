import Channel
import Frame
import FuzzSupport
import Journal
import Node
import NodeSupport
import Primitives
import SealSupport
import TestSupport

/// A node of a script, and the hostile neighbour of this node.
final class End {
  /// The number of keys that the hostile neighbour can prove: its own key, the other node's key, and this node's key.
  static let strangers = 3

  let number: Int
  let id: NodeID
  let stranger: NodeID
  private(set) var node: Node
  var dials: [UInt32] = []
  var sendsUnfinished = 0
  private var waiting: [(peer: NodeID, lane: Lane)] = []
  private var epoch: UInt64 = 0
  private var hostile: Int?
  private let other: NodeID
  private let identity: Identity

  init(_ number: Int) {
    self.number = number
    identity = Identity(UInt64(number))
    id = identity.id
    other = Identity(UInt64(1 - number)).id
    stranger = Identity(UInt64(2 + number)).id
    node = Self.node(identity, number, 1, .zero)
  }

  /// Starts the node again with a higher epoch, the number that orders the starts of a node.
  func begin(_ now: Instant) {
    epoch += 1
    node = Self.node(identity, number, epoch, now)
    dials = []
    sendsUnfinished = 0
    waiting = []
    hostile = nil
  }

  private static func node(_ identity: Identity, _ number: Int, _ epoch: UInt64, _ now: Instant) -> Node {
    let settings = NodeSettings(
      id: identity.id, epoch: epoch, point: identity.point, name: DisplayName("node \(number)"),
      serviceType: [UInt8]("fuzz".utf8), info: [], relays: number == 0, bypass: true, linksMax: 8,
      encryption: .optional)
    return Node(settings, StandInCryptography(identity), journal: .none, now: now)
  }

  // MARK: The hostile neighbour

  /// Connects the hostile neighbour. `name` selects the key that the hostile neighbour has proved.
  func meet(_ name: Int, _ bearer: BearerKind, _ now: Instant) {
    if hostile != nil { return }
    let peer = [stranger, other, id][name]
    hostile = node.openLink(peer: peer, bearer: bearer, dialled: nil, now: now)
    hear(frame(.hello, from: peer, helloPayload(peer)), now)
  }

  func hear(_ bytes: [UInt8], _ now: Instant) {
    guard let hostile else { return }
    bytes.withUnsafeBytes { node.receive($0, on: hostile, now: now) }
  }

  func hearSealed(_ bytes: [UInt8], _ now: Instant) {
    guard let hostile, bytes.count > FrameHeader.byteCount else { return }
    bytes.withUnsafeBytes { bytes in
      let header = UnsafeRawBufferPointer(rebasing: bytes.prefix(FrameHeader.byteCount))
      let payload = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(FrameHeader.byteCount))
      node.receiveSealed(header, payload, on: hostile, now: now)
    }
  }

  func turnAway(_ now: Instant) {
    if let hostile { closed(hostile, now) }
  }

  func closed(_ slot: Int, _ now: Instant) {
    if hostile == slot { hostile = nil }
    node.handle(.linkClosed(slot), now: now)
  }

  // MARK: Outputs of the node

  /// The frames that the node sends next over the link. The frames must be complete and legal. The result is empty if
  /// no frame is queued.
  func pop(_ slot: Int) -> [UInt8] {
    let count = node.pop(slot, into: scratch)
    let bytes = Array(scratch[..<count])
    expect(frames(in: bytes).reduce(0) { $0 + $1.header.frameByteCount } == count, "sends what is not a row of frames")
    return bytes
  }

  /// Handles an output that is meant for the application.
  func hear(_ output: Node.Output) {
    switch output {
    case .completed:
      sendsUnfinished -= 1
      expect(sendsUnfinished >= 0, "more ends of sends than sends")
    case .messageWaiting(let peer, let pending):
      let entry = (peer: peer, lane: pending.lane)
      expect(!waiting.contains { $0 == entry }, "a message is told of before the one before it was taken")
      waiting.append(entry)
    case .dial(let handle): dials.append(handle)
    case .transmit, .close, .peer, .decisionWanted, .datagram, .epochRaised, .session: break
    }
  }

  func checkPeers() {
    var ids: [NodeID] = []
    for peer in node.peers {
      expect(!ids.contains(peer.id), "a peer twice")
      expect(peer.id != id, "itself among its peers")
      ids.append(peer.id)
    }
  }

  /// Takes at most `count` received messages from the node.
  func read(_ count: Int, _ now: Instant) {
    let taken = waiting.prefix(count)
    waiting.removeFirst(taken.count)
    for (peer, lane) in taken {
      _ = node.takeMessage(from: peer, lane, now: now)
    }
  }
}

nonisolated(unsafe) private let scratch = UnsafeMutableRawBufferPointer.allocate(
  byteCount: 4 * Limits.frameBytesMax, alignment: 16)
