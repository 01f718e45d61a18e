import Frame
import Link
import Mesh
import Primitives

/// Advertisements over one link: the pace at which they are sent, and which of the neighbour's are owed a request.
struct LinkFlooding {
  /// How fast advertisements are sent to a neighbour: slower than a neighbour verifies those of a single link.
  static let sendingRate = TokenRate(perSecond: 150, burst: 16)
  /// How often a neighbour is asked.
  static let requestRate = TokenRate(perSecond: 1, burst: 1)
  /// How often a neighbour is answered. One early request is answered, because the way delays one more than the other.
  static let answerRate = TokenRate(perSecond: 1, burst: 2)
  /// A request waits for so long, so that it names what a burst left behind.
  static let requestDelay = TimeSpan.milliseconds(200)

  var sending = TokenBucket()
  var answers = TokenBucket()
  /// When advertisements that waited for their pace may be sent.
  var sendingDue = Instant.never
  /// When the request is due; `.never` when nothing is owed.
  private(set) var requestDue = Instant.never
  private var requests = TokenBucket()
  private var owed = FixedArray<64, NodeID>(repeating: .none)
  private var owedCount = 0
  /// More is owed than a request can name.
  private var owesAll = false

  var deadline: Instant { min(sendingDue, requestDue) }

  /// An advertisement of `node` was refused unverified; `.none`: of many nodes.
  mutating func owe(_ node: NodeID, now: Instant) {
    requestDue = min(requestDue, max(now + Self.requestDelay, requests.next(Self.requestRate)))
    if owesAll { return }
    for index in 0..<owedCount where owed[index] == node { return }
    if node == .none || owedCount == AdvertisementRequest.nodesMax {
      owesAll = true
      owedCount = 0
    } else {
      owed[owedCount] = node
      owedCount += 1
    }
  }

  var requestByteCount: Int { AdvertisementRequest.byteCount(owedCount) }

  @_lifetime(output: copy output)
  func writeRequest(to output: inout OutputRawSpan) {
    AdvertisementRequest.writeHead(count: owedCount, to: &output)
    for index in 0..<owedCount { output.append(owed[index]) }
  }

  /// The request was queued.
  mutating func asked(now: Instant) {
    _ = requests.take(Self.requestRate, now: now)
    requestDue = .never
    owedCount = 0
    owesAll = false
  }

  /// The request could not be queued.
  mutating func askLater(now: Instant) { requestDue = now + Self.requestRate.interval }
}

/// Requests for advertisements: those that this node owes, and those of neighbours.
extension Node {
  /// The neighbour asks for advertisements again.
  func receiveRequest(_ payload: RawSpan, on slot: Int, now: Instant) throws(FrameRefusal) {
    if !links[slot].isReceiving { throw .unexpected }
    let request = try AdvertisementRequest(payload)
    guard flooding[slot].answers.take(LinkFlooding.answerRate, now: now) else { throw .tooMany }
    if request.count == 0 { mesh.tellAgain(.none, on: slot) }
    for index in 0..<request.count { mesh.tellAgain(request.node(index), on: slot) }
  }

  /// Sends what is due: requests, and advertisements that waited for their pace.
  func handleFloodingTimeouts(_ now: Instant) {
    for slot in links.indices where flooding[slot].deadline <= now && links[slot].isReceiving {
      if flooding[slot].requestDue <= now { sendRequest(on: slot, now) }
      if flooding[slot].sendingDue <= now {
        flooding[slot].sendingDue = .never
        wantTransmit(slot)
      }
    }
  }

  /// Asks again for what was refused because the table of nodes was full.
  func askForRoom(_ now: Instant) {
    if linksWithoutRoom == 0 || !mesh.hasRoom { return }
    for slot in links.indices where linksWithoutRoom & 1 << UInt64(slot) != 0 { flooding[slot].owe(.none, now: now) }
    linksWithoutRoom = 0
  }

  /// Asks for nodes that a changed topology lists and that are not known: in a full database they were refused as long
  /// as nobody listed them.
  func askForUnknown(_ view: borrowing AdvertisementView, on slot: Int, _ now: Instant) {
    guard let topology = try? TopologyView(view.body) else { return }
    for index in 0..<topology.count {
      guard let entry = try? topology.entry(index) else { return }
      if mesh.index(of: entry.node) == nil { flooding[slot].owe(entry.node, now: now) }
    }
  }

  private func sendRequest(on slot: Int, _ now: Instant) {
    let buffer = UnsafeMutableRawBufferPointer(rebasing: payloadScratch[..<flooding[slot].requestByteCount])
    buffer.write { output in flooding[slot].writeRequest(to: &output) }
    let header = FrameHeader(
      type: .request, priority: .control, payloadByteCount: buffer.count, source: settings.id, identifier: 0)
    if links[slot].append(header, UnsafeRawBufferPointer(buffer).bytes, from: FramePool.ownIngress) {
      flooding[slot].asked(now: now)
      wantTransmit(slot)
    } else {
      flooding[slot].askLater(now: now)
    }
  }
}
