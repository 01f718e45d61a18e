import Frame
import Link
import Mesh
import Primitives

/// The state of advertisements on one link: the rate of sending, and the advertisements that must be requested from the
/// neighbour.
struct LinkFlooding {
  /// The rate at which advertisements are sent to a neighbour. This rate is not higher than the rate at which a
  /// neighbour verifies the advertisements of a single link.
  static let sendingRate = TokenRate(perSecond: 150, burst: 16)
  /// The rate of requests to a neighbour.
  static let requestRate = TokenRate(perSecond: 1, burst: 1)
  /// The rate of replies to a neighbour's requests. A second request that arrives early is answered too, because delays
  /// on the path vary.
  static let answerRate = TokenRate(perSecond: 1, burst: 2)
  /// The delay of a request, so that one request names all nodes whose advertisements were rejected in a burst.
  static let requestDelay = TimeSpan.milliseconds(200)

  var sending = TokenBucket()
  var answers = TokenBucket()
  /// When advertisements that exceeded `sendingRate` may be sent.
  var sendingDue = Instant.never
  /// When the request for advertisements is due. The time is `.never` if there is nothing to request.
  private(set) var requestDue = Instant.never
  private var requests = TokenBucket()
  private var owed = FixedArray<64, NodeID>(repeating: .none)
  private var owedCount = 0
  /// Whether one request cannot name all nodes. The request then asks for all advertisements.
  private var owesAll = false

  var deadline: Instant { min(sendingDue, requestDue) }

  /// Notes that an advertisement of `node` was rejected unverified and must be requested again. `.none` stands for all
  /// nodes.
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

  /// Records that the request for advertisements was queued.
  mutating func asked(now: Instant) {
    _ = requests.take(Self.requestRate, now: now)
    requestDue = .never
    owedCount = 0
    owesAll = false
  }

  /// Reschedules a request that could not be queued.
  mutating func askLater(now: Instant) { requestDue = now + Self.requestRate.interval }
}

/// Requests for advertisements, by this node and by its neighbours.
extension Node {
  /// Handles a neighbour's request to resend advertisements.
  func receiveRequest(_ payload: RawSpan, on slot: Int, now: Instant) throws(FrameError) {
    if !links[slot].isReceiving { throw .unexpected }
    let request = try AdvertisementRequest(payload)
    guard flooding[slot].answers.take(LinkFlooding.answerRate, now: now) else { throw .tooMany }
    if request.count == 0 { mesh.markUnsentAgain(.none, on: slot) }
    for index in 0..<request.count { mesh.markUnsentAgain(request.node(index), on: slot) }
  }

  /// Sends what is due: requests, and advertisements that exceeded the rate.
  func handleFloodingTimeouts(_ now: Instant) {
    for slot in links.indices where flooding[slot].deadline <= now && links[slot].isReceiving {
      if flooding[slot].requestDue <= now { sendRequest(on: slot, now) }
      if flooding[slot].sendingDue <= now {
        flooding[slot].sendingDue = .never
        wantTransmit(slot)
      }
    }
  }

  /// Requests the advertisements that were rejected because the node table was full, if the table has room again.
  func askForRoom(_ now: Instant) {
    if linksWithoutRoom == 0 || !mesh.hasRoom { return }
    for slot in links.indices where linksWithoutRoom & 1 << UInt64(slot) != 0 { flooding[slot].owe(.none, now: now) }
    linksWithoutRoom = 0
  }

  /// Lets another neighbour be asked in place of the one whose link in `slot` is closing. Every neighbour has the
  /// advertisements of the whole mesh.
  func passOnRequest(of slot: Int) {
    guard linksWithoutRoom & 1 << UInt64(slot) != 0 else { return }
    linksWithoutRoom &= ~(1 << UInt64(slot))
    let other = links.indices.first { $0 != slot && links[$0].state == .up }
    if let other { linksWithoutRoom |= 1 << UInt64(other) }
  }

  /// Requests the advertisements of unknown nodes that a changed topology of `source` lists. A full database rejected
  /// these advertisements while no topology listed the nodes. The neighbour on the route to `source` is asked. The
  /// neighbour on `slot`, which delivered the topology, may be farther away and have rejected them as well.
  func askForUnknown(_ view: borrowing AdvertisementView, of source: NodeID, on slot: Int, _ now: Instant) {
    guard let topology = try? TopologyView(view.body) else { return }
    let slot = mesh.route(to: source).map { Int($0.link) } ?? slot
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
