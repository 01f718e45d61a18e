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
    var place: Int
    var side: Int
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
  private var flooded: Set<News> = []
  private var heard: [News: UInt8] = [:]
  private(set) var frameCount = 0

  /// `sender` in its `life` sends a frame to `receiver` over a stream. What is wrong with that, or nil.
  mutating func sent(
    _ header: FrameHeader, _ payload: RawSpan, by sender: Int, life: Int, id: NodeID, stream: Int, side: Int,
    to receiver: Int
  ) -> String? {
    frameCount += 1
    if header.isRouted { return routed(header, sender, life, id) }
    if header.knownType == .advertisement { return advertisement(header, payload, sender, stream, side, receiver) }
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
    _ header: FrameHeader, _ payload: RawSpan, _ sender: Int, _ stream: Int, _ side: Int, _ receiver: Int
  ) -> String? {
    guard let view = try? AdvertisementView(payload) else { return "sends a bad advertisement" }
    func news(_ place: Int, _ side: Int) -> News {
      News(
        place: place, side: side, source: header.source, kind: view.kind.rawValue, epoch: view.epoch,
        sequence: view.sequence)
    }
    if !flooded.insert(news(stream, side)).inserted { return "sends an advertisement twice over one stream" }
    let isAnew = header.ttl == Limits.hopsMax
    if !isAnew, header.ttl >= heard[news(sender, -1), default: 0] {
      return "passes an advertisement on with as many hops as it had"
    }
    heard[news(receiver, -1)] = max(header.ttl, heard[news(receiver, -1), default: 0])
    return nil
  }
}
