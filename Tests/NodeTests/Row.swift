import Channel
import Frame
import Journal
import Node
import NodeSupport
import Primitives
import Seal
import SealSupport
import Session
import Testing
import TestSupport

/// Nodes in a line, each linked with the next. A frame arrives at once unless the test interferes.
final class Row {
  final class Box {
    let identity: Identity
    let cryptography: StandInCryptography
    var node: Node
    /// The link slot to each neighbour, by the number of the neighbour.
    var slots: [Int: Int] = [:]
    var epoch: UInt64
    var texts: [String] = []
    var outcomes: [Completion.Outcome] = []
    var datagrams: [(from: NodeID, datagram: ReceivedDatagram)] = []
    var asked: [(peer: NodeID, chain: [[UInt8]])] = []
    /// Called for each session event of this node.
    var application: (SessionEvent) -> Void = { _ in }

    init(_ identity: Identity, _ cryptography: StandInCryptography, _ node: Node, epoch: UInt64) {
      self.identity = identity
      self.cryptography = cryptography
      self.node = node
      self.epoch = epoch
    }
  }

  var boxes: [Box] = []
  var now = Instant.zero + .seconds(1000)
  /// All bytes that passed between two nodes, in order.
  var wire: [UInt8] = []
  /// Inspects each frame between two nodes. Returns the payload, changed or unchanged, or nil to drop the frame.
  var onTheWay: (_ from: Int, FrameHeader, [UInt8]) -> [UInt8]? = { _, _, payload in payload }
  private let trust: [Int: any NodeTrust]
  private let configure: (Int, inout NodeSettings) -> Void
  private let bearers: [BearerKind]

  init(
    _ count: Int, bearers: [BearerKind] = [], trust: [Int: any NodeTrust] = [:],
    _ configure: @escaping (Int, inout NodeSettings) -> Void = { _, _ in }
  ) {
    self.trust = trust
    self.configure = configure
    self.bearers = bearers
    // The last node has a lower id than the first, so that tests cover both directions of the handshake.
    for number in 0..<count { boxes.append(make(number, Bench.people[count - number], epoch: 3)) }
    for number in 1..<count { link(number - 1, number) }
    pass(.seconds(2))
  }

  private func make(_ number: Int, _ identity: Identity, epoch: UInt64) -> Box {
    let cryptography = StandInCryptography(identity)
    var settings = NodeSettings(
      id: identity.id, epoch: epoch, point: identity.point, name: DisplayName("n\(number)"),
      serviceType: [UInt8]("chat".utf8), info: [], relays: true, bypass: false)
    configure(number, &settings)
    return Box(
      identity, cryptography, Node(settings, cryptography, trust: trust[number], journal: .none, now: now), epoch: epoch
    )
  }

  private func link(_ left: Int, _ right: Int) {
    let bearer = bearers.isEmpty ? .ethernet : bearers[left]
    boxes[left].slots[right] = boxes[left].node.openLink(
      peer: boxes[right].identity.id, bearer: bearer, dialled: 1, now: now)
    boxes[right].slots[left] = boxes[right].node.openLink(
      peer: boxes[left].identity.id, bearer: bearer, dialled: nil, now: now)
    settle()
  }

  /// Restarts a node after a crash. The epoch of the restarted node grows by `epochStep`.
  func restart(_ number: Int, epochStep: Int = 1) {
    let old = boxes[number]
    for (other, slot) in old.slots {
      _ = slot
      if let theirs = boxes[other].slots[number] { boxes[other].node.handle(.linkClosed(theirs), now: now) }
      boxes[other].slots[number] = nil
    }
    boxes[number] = make(number, old.identity, epoch: UInt64(Int(old.epoch) + epochStep))
    for other in old.slots.keys.sorted() { link(min(other, number), max(other, number)) }
  }

  func settle() {
    for _ in 0..<5000 {
      var hasMoved = false
      for number in boxes.indices where step(number) { hasMoved = true }
      if !hasMoved { return }
    }
    Issue.record("nodes keep each other busy")
  }

  private func step(_ number: Int) -> Bool {
    let box = boxes[number]
    var hasMoved = false
    while let output = box.node.nextOutput(now: now) {
      switch output {
      case .transmit(let slot):
        guard let other = box.slots.first(where: { $0.value == slot })?.key else { continue }
        carry(from: number, slot, to: other)
        hasMoved = true
      case .messageWaiting(let peer, let pending):
        guard let message = box.node.takeMessage(from: peer, pending.lane, now: now) else { continue }
        box.texts.append(String(decoding: message.bytes, as: UTF8.self))
        hasMoved = true
      case .completed(_, let completion): box.outcomes.append(completion.outcome)
      case .datagram(let peer, let datagram): box.datagrams.append((peer, datagram))
      case .decisionWanted(let peer, let chain): box.asked.append((peer, chain))
      case .session(let event):
        box.application(event)
        hasMoved = true
      case .dial, .close, .peer, .epochRaised: break
      }
    }
    return hasMoved
  }

  private func carry(from number: Int, _ slot: Int, to other: Int) {
    var buffer = [UInt8](repeating: 0, count: 70_000)
    while true {
      let count = buffer.withUnsafeMutableBytes { boxes[number].node.pop(slot, into: $0) }
      if count == 0 { return }
      wire += buffer[..<count]
      for (header, payload) in frames(in: [UInt8](buffer[..<count])) {
        guard let payload = header.isRouted ? onTheWay(number, header, payload) : payload,
          let theirs = boxes[other].slots[number]
        else { continue }
        let bytes = encoded { output in header.write(to: &output) } + payload
        bytes.withUnsafeBytes { boxes[other].node.receive($0, on: theirs, now: now) }
      }
    }
  }

  func pass(_ span: TimeSpan) {
    let end = now + span
    settle()
    for _ in 0..<20_000 {
      let next = boxes.map { $0.node.nextDeadline(now: now) }.min() ?? .never
      if next > end {
        now = end
        return
      }
      now = max(now, next)
      for box in boxes where box.node.nextDeadline(now: now) <= now { box.node.handle(.timeout, now: now) }
      settle()
    }
    Issue.record("a deadline that does not go away")
  }

  @discardableResult
  func say(_ text: String, from: Int, to: Int, _ lane: Lane = .interactive) -> AssociationError? {
    let bytes = [UInt8](text.utf8)
    do throws(AssociationError) {
      _ = try boxes[from].node.send(
        kind: 7, bytes.span.bytes, to: boxes[to].identity.id, lane: lane, now: now)
      settle()
      return nil
    } catch {
      return error
    }
  }

  func wireContains(_ text: String) -> Bool {
    let needle = [UInt8](text.utf8)
    return wire.indices.contains { wire[$0] == needle[0] && wire[$0...].starts(with: needle) }
  }
}

/// Trusts all nodes except `revoked`.
final class Revocation: NodeTrust {
  var revoked: NodeID?
  func refuses(_ node: NodeID) -> Bool { node == revoked }
  func refuses(_ node: NodeID, named name: DisplayName, proof: KeyProof?) -> Bool { node == revoked }
  func wouldRefuse(_ node: NodeID, named name: DisplayName) -> Bool { refuses(node) }
  func isKnown(_ node: NodeID) -> Bool { false }
  func isPinnedByOperator(_ node: NodeID) -> Bool { false }
  func wantsDenyList(_ payload: RawSpan, from issuer: NodeID) -> Bool { false }
  func takeDenyList(_ payload: RawSpan, from issuer: NodeID) -> DenyListAnswer { .notStored }
  func forEachDenyList(_ body: (NodeID, RawSpan) -> Void) {}
}
