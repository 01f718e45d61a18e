import Frame
import Primitives
import TestSupport

/// The faults that a misbehaving relay currently applies to the frames that it sends.
struct Mischief {
  var kinds: [Fault] = []
  var until = Instant.zero
  /// The last frames sent, with the newest at the end. The fault `replay` sends these frames again.
  var kept: [[UInt8]] = []
  /// Frames held back by the fault `frameReorder`, so that later frames overtake them.
  var held: [[UInt8]] = []

  /// Whether the relay raises the ages of forwarded advertisements close to their lifetimes.
  var raisesAges = false
  /// Whether the relay lists invented neighbours in its own topology.
  var listsInvented = false

  static let keptMax = 16

  func does(_ fault: Fault, _ now: Instant) -> Bool { now < until && kinds.contains(fault) }
  func isIdle(_ now: Instant) -> Bool {
    (now >= until || kinds.isEmpty) && held.isEmpty && !raisesAges && !listsInvented
  }
}

/// An overloaded or malicious relay. The relay does not change frames between neighbours, because TLS protects these
/// frames. The relay changes payload bytes only in advertisements, whose signatures reveal the change.
extension Simulation {
  /// The frames that `machine` sends in place of `bytes`, which its node has sent.
  func mischief(_ bytes: [UInt8], _ machine: Int) -> [UInt8] {
    if machines[machine].mischief.isIdle(now) { return bytes }
    var result: [UInt8] = []
    for (header, payload) in frames(in: bytes) {
      let whole = encoded { output in header.write(to: &output) } + payload
      if !header.isRouted, header.knownType != .advertisement {
        result += whole
        continue
      }
      for frame in changed(header, payload, whole, machine) { result += frame }
    }
    return result
  }

  private func changed(_ header: FrameHeader, _ payload: [UInt8], _ whole: [UInt8], _ machine: Int) -> [[UInt8]] {
    func does(_ fault: Fault, perThousand: UInt64) -> Bool {
      guard machines[machine].mischief.does(fault, now), random.chance(perThousand: perThousand) else { return false }
      faultCounts[fault, default: 0] += 1
      return true
    }
    let isOwn = header.source == machines[machine].key.id
    var result = [whole]
    if machines[machine].mischief.raisesAges, !header.isRouted { result = [aged(header, payload)] }
    if machines[machine].mischief.listsInvented, isOwn, !header.isRouted {
      result = [
        restated(header, payload, machine, .optional) { $0 += branches(room: Limits.neighboursMax - $0.count) } ?? whole
      ]
    }
    if does(.falseLinks, perThousand: 1000), isOwn, let lie = falseLinks(header, payload, machine) { result = [lie] }
    if !header.isRouted, !isOwn, does(.downgrade, perThousand: 500) { result = [downgraded(header, payload) ?? whole] }
    if does(.alter, perThousand: 100) { result = [altered(header, payload)] }
    if header.isRouted, !isOwn, does(.blackHole, perThousand: 1000) { result = [] }
    if does(.frameLoss, perThousand: 200) { result = [] }
    if does(.frameDouble, perThousand: 150) { result += result }
    if does(.spoof, perThousand: 50) { result.append(spoofed()) }
    if does(.replay, perThousand: 100), let old = machines[machine].mischief.kept.randomElement(using: &random) {
      result.append(old)
    }
    machines[machine].mischief.kept.append(whole)
    if machines[machine].mischief.kept.count > Mischief.keptMax { machines[machine].mischief.kept.removeFirst() }
    if does(.frameReorder, perThousand: 200) {
      machines[machine].mischief.held += result
      result = []
    } else if !machines[machine].mischief.held.isEmpty,
      random.chance(perThousand: 300) || now >= machines[machine].mischief.until
    {
      result += machines[machine].mischief.held
      machines[machine].mischief.held = []
    }
    return result
  }

  /// The frame with one changed byte in a signed payload, with more hops, or with another id. The change may have no
  /// effect but the loss of this frame.
  private func altered(_ header: FrameHeader, _ payload: [UInt8]) -> [UInt8] {
    var header = header
    var payload = payload
    switch random.below(3) {
    case 0 where !header.isRouted: payload[Int(random.below(UInt64(payload.count)))] ^= 1 << UInt8(random.below(8))
    case 1: header.ttl = UInt8(min(255, UInt64(header.ttl) + 1 + random.below(40)))
    default:
      if header.isRouted {
        header.destination = anyID()
      } else {
        header.source = anyID()
      }
    }
    return encoded { output in header.write(to: &output) } + payload
  }

  /// The advertisement with an age up to one second below its lifetime, or in one of five cases with the highest age.
  private func aged(_ header: FrameHeader, _ payload: [UInt8]) -> [UInt8] {
    guard let view = try? AdvertisementView(payload.span.bytes) else { return [] }
    var header = header
    let lifetime = UInt64(view.lifetimeSeconds) * 1000
    header.identifier = random.chance(perThousand: 200) ? .max : lifetime - 1 - random.below(1000)
    return encoded { output in header.write(to: &output) } + payload
  }

  /// Another node's topology with a changed encryption preference and its old signature, which no longer matches.
  private func downgraded(_ header: FrameHeader, _ payload: [UInt8]) -> [UInt8]? {
    guard let view = try? AdvertisementView(payload.span.bytes), view.kind == .topology else { return nil }
    let flags = payload.count - Self.signatureBytes - view.body.byteCount
    let change = UInt8(1 + random.below(3)) << 1
    return encoded { output in header.write(to: &output) } + payload.with { $0[flags] ^= change }
  }

  private static let signatureBytes = 64

  private func spoofed() -> [UInt8] {
    let types: [FrameType] = [.segment, .acknowledgement, .reset]
    let type = types[Int(random.below(3))]
    let length = type == .reset ? 16 : 40
    let payload = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    return frame(
      type, ttl: Limits.hopsMax, priority: .interactive, to: anyID(), from: anyID(), identifier: random.next(), payload)
  }

  func anyID() -> NodeID { machines[Int(random.below(UInt64(machines.count)))].key.id }

  /// The machine's own topology with invented links, false costs, and a random encryption preference. The signature of
  /// this topology is valid, and each neighbour gets a different version.
  private func falseLinks(_ header: FrameHeader, _ payload: [UInt8], _ machine: Int) -> [UInt8]? {
    let wish: [EncryptionPreference] = [.required, .optional, .none]
    return restated(header, payload, machine, wish[Int(random.below(3))]) { neighbours in
      for index in neighbours.indices where random.chance(perThousand: 500) {
        neighbours[index].cost = random.chance(perThousand: 500) ? 1 : .max
      }
      for _ in 0..<3 {
        let id = anyID()
        if id == header.source || neighbours.contains(where: { $0.node == id }) { continue }
        neighbours.append(Neighbour(node: id, cost: 1, payloadBytesMax: 16_640, bearer: .ethernet))
      }
    }
  }

  /// The machine's own topology with changed neighbours and a valid signature, or nil if the frame is not a topology.
  private func restated(
    _ header: FrameHeader, _ payload: [UInt8], _ machine: Int, _ encryption: @autoclosure () -> EncryptionPreference,
    _ change: (inout [Neighbour]) -> Void
  ) -> [UInt8]? {
    guard !header.isRouted, let view = try? AdvertisementView(payload.span.bytes), view.kind == .topology,
      let body = try? TopologyView(view.body)
    else { return nil }
    var neighbours: [Neighbour] = []
    for index in 0..<body.count {
      if let neighbour = try? body.entry(index) { neighbours.append(neighbour) }
    }
    let (lifetime, epoch, sequence, point) = (view.lifetimeSeconds, view.epoch, view.sequence, view.point.array)
    change(&neighbours)
    let statement = topologyBody(relays: true, encryption: encryption(), neighbours)
    let signed = encoded { output in
      Advertisement.writeHead(
        .topology, lifetimeSeconds: lifetime, epoch: epoch, sequence: sequence, point: point.span.bytes, to: &output)
      output.append(bytes: statement.span.bytes)
    }
    let signature = machines[machine].key.sign(signed.span.bytes)
    var header = header
    let lie = signed + signature.span.bytes.array
    header.payloadByteCount = lie.count
    return encoded { output in header.write(to: &output) } + lie
  }
}
