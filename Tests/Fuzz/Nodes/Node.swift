import Channel
import Frame
import Journal
import Node
import NodeSupport
import Primitives
import Seal
import SealSupport
import TestSupport

/// Sends any bytes to a complete node from a neighbour that has sent its hello. The node has a second neighbour. Every
/// signature is accepted, so that the input reaches the code behind the check. Time then advances, and the node must
/// still fulfil the rules that `expect` checks.
func fuzzNode(_ input: UnsafeRawBufferPointer) {
  let rig = Rig()
  rig.receive(input)
  rig.pass(.seconds(30))
}

/// Accepts every signature. The end-to-end sessions of this class are stand-ins without encryption.
private final class Credulous: NodeCryptography {
  private let sessions = StandInCryptography(Identity(1))

  func digest(_ bytes: RawSpan) -> InlineArray<32, UInt8> { sessions.digest(bytes) }
  func sign(_ message: RawSpan) -> InlineArray<64, UInt8> { InlineArray(repeating: 7) }
  func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool { true }

  func beginSession(_ name: SessionName, now: Instant) -> (any PeerSession)? { sessions.beginSession(name, now: now) }
  func answerHello(
    _ datagram: RawSpan, _ name: SessionName, reply: UnsafeMutableRawBufferPointer, now: Instant
  ) -> HelloAnswer {
    sessions.answerHello(datagram, name, reply: reply, now: now)
  }
  func refuseHello(_ datagram: RawSpan, reply: UnsafeMutableRawBufferPointer) -> Int {
    sessions.refuseHello(datagram, reply: reply)
  }
  func acceptSession(_ datagram: RawSpan, _ name: SessionName, now: Instant) -> (any PeerSession)? {
    sessions.acceptSession(datagram, name, now: now)
  }
}

private let here = NodeID(high: 0x1010_1010_1010_1010, low: 1)
private let left = NodeID(high: 0x2020_2020_2020_2020, low: 2)
private let right = NodeID(high: 0x3030_3030_3030_3030, low: 3)
nonisolated(unsafe) private let scratch = UnsafeMutableRawBufferPointer.allocate(
  byteCount: 4 * Limits.frameBytesMax, alignment: 16)

private final class Rig {
  private var now = Instant.zero + .seconds(1000)
  private let node: Node

  init() {
    let settings = NodeSettings(
      id: here, epoch: 1, point: [4] + [UInt8](repeating: 1, count: 64), name: DisplayName("here"),
      serviceType: [UInt8]("fuzz".utf8), info: [], relays: true, bypass: false,
      encryption: .optional)
    node = Node(settings, Credulous(), journal: .none, now: now)
    for (slot, peer) in [(0, left), (1, right)] {
      guard node.openLink(peer: peer, bearer: .ethernet, dialled: nil, now: now) == slot else { fatalError("no slot") }
      let hello = frame(.hello, from: peer, helloPayload(peer))
      hello.withUnsafeBytes { node.receive($0, on: slot, now: now) }
    }
    drain()
  }

  /// Receives the input in pieces. The first byte of the input is the size of a piece in units of 4 bytes. A size of 0
  /// means one piece.
  func receive(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first else { return }
    var rest = input.dropFirst()
    let step = first == 0 ? rest.count : Int(first) * 4
    while !rest.isEmpty {
      node.receive(UnsafeRawBufferPointer(rebasing: rest.prefix(step)), on: 0, now: now)
      drain()
      rest = rest.dropFirst(step)
    }
  }

  func pass(_ span: TimeSpan) {
    let end = now + span
    var timeouts = 0
    while node.nextDeadline(now: now) <= end {
      now = max(now, node.nextDeadline(now: now))
      node.handle(.timeout, now: now)
      drain()
      timeouts += 1
      if timeouts > 5000 { fatalError("a deadline that does not go away") }
    }
  }

  private func drain() {
    var outputCount = 0
    while let output = node.nextOutput(now: now) {
      outputCount += 1
      if outputCount > 5000 { fatalError("outputs without an end") }
      switch output {
      case .transmit(let slot): take(slot)
      case .close(let slot):
        take(slot)
        node.handle(.linkClosed(slot), now: now)
      case .messageWaiting(let peer, let pending): _ = node.takeMessage(from: peer, pending.lane, now: now)
      case .dial: fatalError("dials nobody")
      case .peer, .decisionWanted, .completed, .datagram, .epochRaised, .session: break
      }
    }
  }

  /// Takes the bytes that the node sends on a link. The node must send only complete, legal frames, whatever bytes
  /// arrived at this node.
  private func take(_ slot: Int) {
    while true {
      let count = node.pop(slot, into: scratch)
      if count == 0 { return }
      let sent = frames(in: Array(scratch[..<count]))
      if sent.reduce(0, { $0 + $1.header.frameByteCount }) != count { fatalError("sends what is not a row of frames") }
    }
  }
}
