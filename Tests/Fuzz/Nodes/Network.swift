import Channel
import Frame
import FuzzSupport
import Journal
import Node
import Primitives
import TestSupport

/// Runs a script of events for two linked nodes. The links of these nodes open and close, and the nodes find candidates
/// and exchange messages. Each node also has a hostile neighbour whose bytes come from the script. Time then advances,
/// and both nodes must still fulfil the rules that `expect` checks.
func fuzzNetwork(_ input: UnsafeRawBufferPointer) {
  var script = Script(input)
  let network = Network()
  while !script.isOver { network.step(&script) }
  network.pass(.seconds(30))
}

private final class Network {
  private var now = Instant.zero + .seconds(1000)
  private let ends = [End(0), End(1)]
  private var pipes: [Pipe] = []

  /// A link between the two nodes: the link slot at each node, and the bytes in flight from each node.
  private struct Pipe {
    var slots: [Int]
    var underway: [[UInt8]] = [[], []]
  }
  private static let pipesMax = 4
  private static let underwayBytesMax = 65_536

  init() {
    for end in ends { end.begin(now) }
    join(.ethernet)
    settle()
  }

  func step(_ script: inout Script) {
    let what = script.u8()
    let end = ends[Int(what >> 7)]
    switch what & 15 {
    case 0: pass(.milliseconds(UInt64(script.u16() % 20_000)))
    case 1: join(BearerKind(rawValue: script.u8() % 5 + 1) ?? .ethernet)
    case 2: part(script.choice(Self.pipesMax))
    case 3: flow(script.choice(Self.pipesMax), from: end, byteCount: Int(script.u16()) + 1)
    case 4: end.meet(script.choice(End.strangers), BearerKind(rawValue: script.u8() % 5 + 1) ?? .ethernet, now)
    case 5: end.hear(Array(script.bytes(Int(script.u8()))), now)
    case 6: end.hear(frame(&script), now)
    case 7: end.hearSealed(frame(&script), now)
    case 8:
      let bearer = BearerKind(rawValue: script.u8() % 5 + 1) ?? .ethernet
      let hints = [0, ends[0].id.high, ends[1].id.high, UInt64(script.u8())]
      let (handle, kind) = (UInt32(script.u8() & 7), script.u8())
      let candidate = FoundCandidate(
        handle, bearer, domain: UInt32(kind & 3), hint: hints[script.choice(4)], relays: kind & 4 == 0)
      end.node.handle(.candidateFound(candidate), now: now)
    case 9: end.node.handle(.candidateLost(UInt32(script.u8() & 7)), now: now)
    case 10: answerDial(of: end, isGood: script.u8() & 1 == 0)
    case 11: send(from: end, &script)
    case 12: end.read(Int(script.u8()), now)
    case 13: restart(end)
    case 14: end.turnAway(now)
    default: end.node.shutDown(now: now)
    }
    settle()
  }

  func pass(_ span: TimeSpan) {
    let until = now + span
    var timeouts = 0
    while let next = ends.map({ $0.node.nextDeadline(now: now) }).min(), next <= until {
      now = max(now, next)
      for end in ends { end.node.handle(.timeout, now: now) }
      settle()
      // Time passes, so the bytes in flight arrive, as in a real network.
      for index in pipes.indices.reversed() {
        for end in ends { flow(index, from: end, byteCount: Self.underwayBytesMax) }
      }
      settle()
      timeouts += 1
      expect(timeouts < 20_000, "a deadline that does not go away")
    }
    now = until
  }

  // MARK: Links between the two nodes

  private func join(_ bearer: BearerKind, dialled: UInt32? = nil) {
    if pipes.count == Self.pipesMax { return }
    guard let first = ends[0].node.openLink(peer: ends[1].id, bearer: bearer, dialled: dialled ?? 100, now: now) else {
      return
    }
    if let second = ends[1].node.openLink(peer: ends[0].id, bearer: bearer, dialled: nil, now: now) {
      pipes.append(Pipe(slots: [first, second]))
    } else {
      ends[0].node.handle(.linkClosed(first), now: now)
    }
  }

  private func part(_ index: Int) {
    guard pipes.indices.contains(index) else { return }
    let pipe = pipes.remove(at: index)
    for end in ends { end.node.handle(.linkClosed(pipe.slots[end.number]), now: now) }
  }

  private func flow(_ index: Int, from end: End, byteCount: Int) {
    guard pipes.indices.contains(index) else { return }
    let bytes = Array(pipes[index].underway[end.number].prefix(byteCount))
    pipes[index].underway[end.number].removeFirst(bytes.count)
    let slot = pipes[index].slots[1 - end.number]
    bytes.withUnsafeBytes { ends[1 - end.number].node.receive($0, on: slot, now: now) }
    fill(index, from: end)
  }

  /// Fills the link with frames up to its limit of bytes in flight.
  private func fill(_ index: Int, from end: End) {
    while pipes[index].underway[end.number].count < Self.underwayBytesMax {
      let frames = end.pop(pipes[index].slots[end.number])
      if frames.isEmpty { return }
      pipes[index].underway[end.number] += frames
    }
  }

  private func answerDial(of end: End, isGood: Bool) {
    guard let handle = end.dials.popLast() else { return }
    if isGood, end.number == 0 {
      join(.ethernet, dialled: handle)
    } else {
      end.node.handle(.dialFailed(handle), now: now)
    }
  }

  private func restart(_ end: End) {
    while !pipes.isEmpty { part(0) }
    end.begin(now)
  }

  private func send(from end: End, _ script: inout Script) {
    let receivers = [ends[1 - end.number].id, end.id, end.stranger, NodeID(high: 9, low: 9)]
    let to = receivers[script.choice(4)]
    let lane = script.u8() & 1 == 0 ? Lane.interactive : .bulk
    let message = [UInt8](repeating: script.u8(), count: Int(script.u16()))
    let wouldTake = end.node.canSend(byteCount: message.count, to: to, lane: lane)
    do throws(AssociationError) {
      _ = try end.node.send(kind: script.u8(), message.span.bytes, to: to, lane: lane, now: now)
      end.sendsUnfinished += 1
    } catch {
      expect(!wouldTake || error != .channel(.full), "what can be sent is refused")
    }
  }

  /// A legal frame with the changes that the script makes.
  private func frame(_ script: inout Script) -> [UInt8] {
    let nodes = [NodeID.none, ends[0].id, ends[1].id, ends[0].stranger, ends[1].stranger, NodeID(high: 9, low: 9)]
    let type = script.u8()
    let flags = script.u8()
    let destination = nodes[script.choice(nodes.count)]
    let source = nodes[script.choice(nodes.count)]
    let payload = script.bytes(Int(script.u8()))
    let header = FrameHeader(
      type: FrameType(rawValue: type) ?? .segment, flags: flags & 1, ttl: flags >> 4,
      priority: FramePriority(rawValue: flags >> 1 & 3) ?? .control, payloadByteCount: payload.count,
      destination: destination, source: source, identifier: UInt64(flags))
    var bytes = encoded { output in header.write(to: &output) } + Array(payload)
    bytes[1] = type
    return bytes
  }

  // MARK: Outputs

  private func settle() {
    for end in ends {
      var outputs = 0
      while let output = end.node.nextOutput(now: now) {
        outputs += 1
        expect(outputs < 20_000, "outputs without an end")
        end.hear(output)
        switch output {
        case .transmit(let slot):
          if let index = pipes.firstIndex(where: { $0.slots[end.number] == slot }) {
            fill(index, from: end)
          } else {
            while !end.pop(slot).isEmpty {}
          }
        case .close(let slot):
          if let index = pipes.firstIndex(where: { $0.slots[end.number] == slot }) {
            part(index)
          } else {
            end.closed(slot, now)
          }
        case .dial, .peer, .decisionWanted, .completed, .messageWaiting, .datagram, .epochRaised, .session: break
        }
      }
      end.checkPeers()
    }
  }
}
