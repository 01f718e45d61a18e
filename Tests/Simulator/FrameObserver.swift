import Frame
import Primitives

/// Inspects every frame that a node hands to a stream, and reports a violation of the protocol.
struct FrameObserver {
  /// Whether the tables of nodes are full. A node with a full table evicts advertisements, and forwards an evicted
  /// advertisement that arrives again.
  var tablesAreFull = false
  private struct Incarnation: Hashable {
    var machine: Int
    var life: Int
  }
  private struct Name: Hashable {
    var incarnation: Incarnation
    var source: NodeID
    var identifier: UInt64
  }
  private struct News: Hashable {
    var sender: Incarnation
    var receiver: NodeID
    var source: NodeID
    var kind: UInt8
    var epoch: UInt64
    var sequence: UInt64
  }
  private struct Pair: Hashable {
    var sender: Incarnation
    var receiver: NodeID
  }

  /// The number of frames that each node has forwarded, in total (`forwardCounts`) and for each frame (`forwarded`).
  private var forwardCounts: [Incarnation: Int] = [:]
  private var forwarded: [Name: Int] = [:]
  /// For each frame and each receiving node: the number of copies received, and the highest remaining hop count among
  /// them.
  private var copies: [Name: (count: Int, hops: UInt8)] = [:]
  /// For each advertisement that a node sent to a neighbour: the number of times, the last age in milliseconds, and the
  /// time at which the neighbour's copy expires. `streams` holds the streams over which the node has sent to this
  /// neighbour. `requests` holds the number of requests for advertisements that the neighbour has sent to the node.
  /// Neighbours are counted by their ids, because two machines with one key are one neighbour to the node: if the link
  /// to one of them ends, the node sends all its advertisements over the link to the other one.
  private var told: [News: (count: Int, age: UInt64, until: Instant)] = [:]
  private var streams: [Pair: Set<Int>] = [:]
  private var requests: [[NodeID]: Int] = [:]
  private var windows = WindowObserver()
  /// The latest topology advertisement of each node, by the number of the machine.
  private(set) var topologies: [Int: Topology] = [:]
  private(set) var frameCount = 0
  private(set) var sealedCount = 0

  /// The contents of a topology advertisement as its own node sent it.
  struct Topology {
    var life: Int
    var sequence: UInt64
    var relays: Bool
    var neighbours: [Neighbour]
  }

  /// Checks a frame that `sender`, in its incarnation `life`, sends over a stream. Returns the violation, or nil.
  mutating func sent(
    _ header: FrameHeader, _ payload: RawSpan, by sender: Int, life: Int, id: NodeID, stream: Int, to receiver: NodeID,
    now: Instant
  ) -> String? {
    frameCount += 1
    if header.knownType == .sealed { sealedCount += 1 }
    let incarnation = Incarnation(machine: sender, life: life)
    // A stream that carried only a hello is counted, too. While a stream with only a hello was up, the node had to send
    // its new advertisements over the stream.
    streams[Pair(sender: incarnation, receiver: receiver), default: []].insert(stream)
    if header.isRouted { return routed(header, payload, incarnation, id) }
    if header.knownType == .advertisement { return advertisement(header, payload, incarnation, id, receiver, now) }
    if header.knownType == .denyList { return nil }
    if header.knownType == .request { requests[[receiver, id], default: 0] += 1 }
    return header.source == id ? nil : "sends a link-local frame in another node's name"
  }

  /// Records that `receiver` is sent a frame, from any source.
  mutating func heard(_ header: FrameHeader, by receiver: Int, life: Int) {
    guard header.isRouted else { return }
    let name = Name(
      incarnation: Incarnation(machine: receiver, life: life), source: header.source, identifier: header.identifier)
    let known = copies[name, default: (0, 0)]
    copies[name] = (known.count + 1, max(header.ttl, known.hops))
  }

  /// The number of frames that a machine has forwarded in one incarnation.
  func forwardCount(of machine: Int, life: Int) -> Int {
    forwardCounts[Incarnation(machine: machine, life: life), default: 0]
  }

  private mutating func routed(_ header: FrameHeader, _ payload: RawSpan, _ incarnation: Incarnation, _ id: NodeID)
    -> String?
  {
    if header.source == id {
      return header.ttl == Limits.hopsMax
        ? windows.sent(header, payload) : "sends its own frame with a reduced hop limit"
    }
    let name = Name(incarnation: incarnation, source: header.source, identifier: header.identifier)
    forwardCounts[incarnation, default: 0] += 1
    forwarded[name, default: 0] += 1
    guard let known = copies[name] else { return "forwards a frame that it never received" }
    if forwarded[name, default: 0] > known.count { return "forwards a frame more often than it received it" }
    // Each copy has fewer hops left than a received copy. With the rule above, this limits the transmissions of a frame
    // to `Limits.hopsMax`, even if routes form a loop.
    return header.ttl < min(known.hops, Limits.hopsMax) ? nil : "forwards a frame without reducing its hop limit"
  }

  private mutating func advertisement(
    _ header: FrameHeader, _ payload: RawSpan, _ incarnation: Incarnation, _ id: NodeID, _ receiver: NodeID,
    _ now: Instant
  ) -> String? {
    guard let view = try? AdvertisementView(payload) else { return "sends an invalid advertisement" }
    if header.source == id { remember(view, incarnation) }
    let pair = Pair(sender: incarnation, receiver: receiver)
    let news = News(
      sender: incarnation, receiver: receiver, source: header.source, kind: view.kind.rawValue, epoch: view.epoch,
      sequence: view.sequence)
    var known = told[news, default: (0, .max, .zero)]
    // After its expiry no node knows the advertisement, so it may be sent once more.
    if known.until <= now { known.count = 0 }
    // A repetition with at least 5 s more remaining lifetime is allowed, so it does not increase the number.
    if known.count == 0 || header.identifier + 5_000 > known.age { known.count += 1 }
    known.age = header.identifier
    let lifetime = UInt64(view.lifetimeSeconds) * 1000
    known.until = max(known.until, now + .milliseconds(lifetime - min(header.identifier, lifetime)))
    told[news] = known
    if !tablesAreFull, known.count > streams[pair, default: []].count + requests[[id, receiver], default: 0] {
      return "repeats an advertisement without a new stream or a request"
    }
    return header.identifier < lifetime ? nil : "sends an expired advertisement"
  }

  private mutating func remember(_ view: borrowing AdvertisementView, _ incarnation: Incarnation) {
    guard view.kind == .topology, let body = try? TopologyView(view.body) else { return }
    if let known = topologies[incarnation.machine], (known.life, known.sequence) >= (incarnation.life, view.sequence) {
      return
    }
    var topology = Topology(
      life: incarnation.life, sequence: view.sequence, relays: body.flags.relays, neighbours: [])
    for index in 0..<body.count {
      if let neighbour = try? body.entry(index) { topology.neighbours.append(neighbour) }
    }
    topologies[incarnation.machine] = topology
  }
}
