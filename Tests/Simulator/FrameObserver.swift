import Frame
import Primitives

/// Looks at every frame that a node hands to a stream, and says what no node may do.
struct FrameObserver {
  private struct Name: Hashable {
    var sender: Int
    var life: Int
    var source: NodeID
    var identifier: UInt64
  }
  private struct News: Hashable {
    var sender: Int
    var receiver: Int
    var source: NodeID
    var kind: UInt8
    var epoch: UInt64
    var sequence: UInt64
  }
  private struct Routed: Hashable {
    var source: NodeID
    var identifier: UInt64
  }

  private var forwarded: Set<Name> = []
  private var hopsLeft: [Routed: UInt8] = [:]
  private struct Pair: Hashable {
    var sender: Int
    var receiver: Int
  }

  private var flooded: [News: Int] = [:]
  private var streams: [Pair: Set<Int>] = [:]
  private(set) var frameCount = 0

  /// `sender` in its `life` sends a frame to `receiver` over a stream. What is wrong with that, or nil.
  mutating func sent(
    _ header: FrameHeader, _ payload: RawSpan, by sender: Int, life: Int, id: NodeID, stream: Int, side: Int,
    to receiver: Int
  ) -> String? {
    frameCount += 1
    if header.isRouted { return routed(header, sender, life, id) }
    if header.knownType == .advertisement { return advertisement(header, payload, sender, stream, receiver) }
    return header.source == id ? nil : "sends a frame between neighbours in another's name"
  }

  private mutating func routed(_ header: FrameHeader, _ sender: Int, _ life: Int, _ id: NodeID) -> String? {
    if header.source != id {
      let name = Name(sender: sender, life: life, source: header.source, identifier: header.identifier)
      if !forwarded.insert(name).inserted { return "forwards a frame twice" }
    }
    let frame = Routed(source: header.source, identifier: header.identifier)
    if let before = hopsLeft[frame], header.ttl >= before { return "sends a frame on with as many hops as it had" }
    hopsLeft[frame] = header.ttl
    return nil
  }

  private mutating func advertisement(
    _ header: FrameHeader, _ payload: RawSpan, _ sender: Int, _ stream: Int, _ receiver: Int
  ) -> String? {
    guard let view = try? AdvertisementView(payload) else { return "sends a bad advertisement" }
    func news(_ sender: Int, _ receiver: Int) -> News {
      News(
        sender: sender, receiver: receiver, source: header.source, kind: view.kind.rawValue, epoch: view.epoch,
        sequence: view.sequence)
    }
    streams[Pair(sender: sender, receiver: receiver), default: []].insert(stream)
    flooded[news(sender, receiver), default: 0] += 1
    let times = streams[Pair(sender: sender, receiver: receiver)]?.count ?? 0
    if flooded[news(sender, receiver), default: 0] > times { return "tells a neighbour more often than it had streams" }
    if header.identifier >= UInt64(view.lifetimeSeconds) * 1000 { return "tells what is too old to hold" }
    return nil
  }
}
