import Frame
import Primitives

/// The frames queued for one link. Control frames between neighbours have a small memory of their own, which other
/// frames cannot fill. All other frames wait in the pool that all links share.
///
/// Classes have strict priority. Within a class the ingresses (neighbours and this node) take turns. Within an ingress,
/// frames that the neighbour originates take turns with frames that the neighbour relays. Within each of these two
/// kinds the flows take turns. A neighbour can invent sources and destinations, so many flows give a neighbour no
/// advantage over one flow. Ingresses and flows take turns in a `TurnRing`, whose quantum is the length of the longest
/// frame. A class that has waited for `Limits.passedOverBytesMax` bytes of more urgent frames may send one frame, so no
/// class starves.
///
/// Relayed frames cannot use all of their ingress's quota. For frames that the neighbour originates, one frame of
/// maximum length and an eighth of the frame count remain.
public struct FrameQueue {
  /// The classes of the frames that wait in the pool, most urgent first.
  private enum Class: Int {
    case realtime = 0
    case interactive = 1
    case bulk = 2

    /// The class of a routed frame. Control frames are exchanged only between neighbours, so a routed frame that claims
    /// control priority is treated as interactive.
    init(_ priority: FramePriority) {
      switch priority {
      case .realtime: self = .realtime
      case .control, .interactive: self = .interactive
      case .bulk: self = .bulk
      }
    }

    var flowBytesMax: Int {
      switch self {
      case .realtime: Limits.flowBytesMaxRealtime
      case .interactive: Limits.flowBytesMaxInteractive
      case .bulk: Limits.flowBytesMaxBulk
      }
    }
  }

  /// The ring of each class. The rings are in the pool's memory, so that the queue is a small value and reading a ring
  /// copies nothing.
  private struct Rings {
    let table: Table<QueueRing, UInt8>
    let first: UInt8

    var byteCount: Int { self[.realtime].byteCount + self[.interactive].byteCount + self[.bulk].byteCount }

    var mostUrgent: Class? {
      if self[.realtime].byteCount > 0 { return .realtime }
      if self[.interactive].byteCount > 0 { return .interactive }
      return self[.bulk].byteCount > 0 ? .bulk : nil
    }

    /// A class that has been passed over for too many bytes; nil if there is none.
    var overdue: Class? {
      if self[.bulk].passedOver >= Limits.passedOverBytesMax { return .bulk }
      if self[.interactive].passedOver >= Limits.passedOverBytesMax { return .interactive }
      return self[.realtime].passedOver >= Limits.passedOverBytesMax ? .realtime : nil
    }

    subscript(kind: Class) -> QueueRing {
      _read { yield table[first + UInt8(kind.rawValue)] }
      nonmutating _modify { yield &table[first + UInt8(kind.rawValue)] }
    }
  }

  /// The memory that the queue itself needs for control frames, in bytes.
  public static let byteCount = Limits.queueBytesMaxControl

  private var control: ByteQueue
  private let pool: FramePool
  private let rings: Rings
  private let number: UInt8
  /// The longest frame that the link accepts, in bytes. This length is also the quantum of a turn.
  public var frameBytesMax = Limits.frameHeaderBytes + Limits.framePayloadBytesFloor

  /// `memory` has `byteCount` bytes and must not be used for anything else.
  public init(_ memory: UnsafeMutableRawBufferPointer, _ pool: FramePool) {
    precondition(memory.count >= Self.byteCount)
    control = ByteQueue(UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.byteCount]))
    self.pool = pool
    number = pool.addQueue()
    rings = Rings(table: pool.rings, first: number * UInt8(FramePool.classes))
  }

  /// The blocks of the pool that the queue holds, by ingress.
  private var share: FairShare {
    _read { yield pool.shares[number] }
    nonmutating _modify { yield &pool.shares[number] }
  }

  // MARK: Contents

  public var byteCount: Int { control.count + rings.byteCount }
  public var isEmpty: Bool { byteCount == 0 }
  public var controlByteCount: Int { control.count }

  /// The number of bytes queued with one priority.
  public func byteCount(_ priority: FramePriority) -> Int {
    priority == .control ? control.count : rings[Class(priority)].byteCount
  }

  /// The number of bytes queued with one priority in frames from this node itself.
  public func ownByteCount(_ priority: FramePriority) -> Int {
    priority == .control ? control.count : rings[Class(priority)].ownByteCount
  }

  /// Whether frames of one priority from this node to `destination` are queued. `priority` must not be control.
  public func hasOwn(_ priority: FramePriority, to destination: NodeID) -> Bool {
    let kind = Class(priority)
    guard rings[kind].ownByteCount > 0, let group = group(kind, FramePool.ownIngress) else { return false }
    return pool.groups[group].own.first(in: pool.flows) { $0.destination == destination } != nil
  }

  /// Whether frames from `ingress` are queued, control frames excepted.
  public func hasFrames(from ingress: Int) -> Bool { share.held(by: ingress) > 0 }

  /// Whether the pool and the link have room for a frame of maximum length from `ingress`.
  public func hasRoom(for ingress: Int) -> Bool {
    share.mayTake(longestFrameBlocks, by: ingress)
      && pool.refusal(ingress, blocks: longestFrameBlocks, kept: (0, 0)) == nil
  }

  private var longestFrameBlocks: Int { (frameBytesMax + Limits.queueBlockBytes - 1) / Limits.queueBlockBytes }

  // MARK: In

  /// Queues a frame from `ingress`, which is a link slot or `FramePool.ownIngress`. `isRelayed` means that the frame's
  /// source is not the neighbour that delivered it. Returns false if the frame was dropped; the pool counts the reason.
  public mutating func append(_ header: FrameHeader, _ payload: RawSpan, from ingress: Int, isRelayed: Bool) -> Bool {
    var bytes = InlineArray<48, UInt8>(repeating: 0)
    var head = bytes.mutableSpan
    head.withUnsafeMutableBytes { buffer in
      var output = OutputRawSpan(buffer: buffer, initializedCount: 0)
      header.write(to: &output)
    }
    if !header.isRouted { return appendControl(bytes.span.bytes, payload) }
    let drop = append(header, bytes.span.bytes, payload, Class(header.priority), ingress, isRelayed)
    if let drop { pool.count(drop) }
    return drop == nil
  }

  private mutating func appendControl(_ head: RawSpan, _ payload: RawSpan) -> Bool {
    if control.free < head.byteCount + payload.byteCount {
      pool.count(.controlFull)
      return false
    }
    control.append(head)
    control.append(payload)
    return true
  }

  private mutating func append(
    _ header: FrameHeader, _ head: RawSpan, _ payload: RawSpan, _ kind: Class, _ ingress: Int, _ isRelayed: Bool
  ) -> QueueDrop? {
    let byteCount = head.byteCount + payload.byteCount
    let known = find(header, kind, ingress, isRelayed)
    while let drop = refusal(known, byteCount, kind, ingress, isRelayed) {
      guard let victim = victim(of: drop, known, kind, ingress, isRelayed) else {
        if let known, pool.flows[known].frames == 0 { leave(known, kind) }
        return drop
      }
      pool.count(.overtaken)
      remove(victim, .realtime, into: nil)
      // A flow whose own frame was dropped for the new frame keeps its turn.
      if victim != known && pool.flows[victim].frames == 0 { leave(victim, .realtime) }
    }
    let flow = known ?? enter(header, kind, ingress, isRelayed)
    share.take(pool.blocksNeeded(flow, for: byteCount), by: ingress)
    pool.append(flow, head, payload)
    rings[kind].byteCount += byteCount
    if ingress == FramePool.ownIngress { rings[kind].ownByteCount += byteCount }
    return nil
  }

  /// The realtime flow whose oldest frame is dropped to make room for a new frame; nil if there is none. A new realtime
  /// frame displaces only a frame of its own flow. A new interactive or bulk frame displaces a realtime frame of this
  /// link. If the pool is full, that frame is of any flow; if a quota is reached, of the same ingress.
  private func victim(
    of drop: QueueDrop, _ flow: UInt16?, _ kind: Class, _ ingress: Int, _ isRelayed: Bool
  ) -> UInt16? {
    switch kind {
    case .realtime:
      guard let flow, pool.flows[flow].frames > 0 else { return nil }
      return flow
    case .interactive, .bulk:
      switch drop {
      case .poolFull: return turn(.realtime)
      case .linkQuota, .neighbourQuota:
        guard let group = group(.realtime, ingress) else { return nil }
        if !isRelayed { return turn(of: group) }
        let relayed = pool.groups[group].relayed
        return relayed.isEmpty ? nil : relayed.turn(in: pool.flows)
      case .flowQuota, .overtaken, .controlFull: return nil
      }
    }
  }

  /// The reason why a flow may not queue another frame of `byteCount` bytes; nil if it may. A nil `flow` has not been
  /// created yet.
  private func refusal(
    _ flow: UInt16?, _ byteCount: Int, _ kind: Class, _ ingress: Int, _ isRelayed: Bool
  ) -> QueueDrop? {
    var blocksHeld = 0
    if let flow {
      let held = pool.flows[flow]
      if Int(held.byteCount) + byteCount > kind.flowBytesMax || Int(held.frames) >= Limits.flowFramesMax {
        return .flowQuota
      }
      blocksHeld = Int(held.blocks)
    }
    let needed = pool.blocksNeeded(flow, for: byteCount)
    // A flow may hold only as much as its ingress may still take. So other flows that the same neighbour relays find
    // room.
    let left = share.free - share.held(by: ingress)
    // `needed` is added, because each block that is taken is also one fewer free block.
    let kept = isRelayed && needed > 0 ? longestFrameBlocks + needed : 0
    if needed > 0 && blocksHeld + needed + kept > left { return .linkQuota }
    return pool.refusal(ingress, blocks: needed, kept: (kept, isRelayed ? Limits.neighbourFramesMax / 8 : 0))
  }

  // MARK: Out

  /// Moves complete frames into `output`, at most `framesMax`. Stops when the next frame does not fit, or when the
  /// bytes would exceed the link's maximum frame length. The caller repeats the call for more frames, so that an urgent
  /// frame that has arrived since is sent first. Returns the number of bytes written.
  public mutating func pop(
    into output: UnsafeMutableRawBufferPointer, framesMax: Int = .max, controlOnly: Bool = false
  ) -> Int {
    guard let base = output.baseAddress else { return 0 }
    var written = 0
    var frames = 0
    while frames < framesMax {
      frames += 1
      let overdue = controlOnly ? nil : rings.overdue
      if overdue == nil && !control.isEmpty {
        let byteCount = FrameHeader.frameByteCount { control[$0] }
        if !fits(byteCount, behind: written, output.count) { return written }
        control.pop(byteCount, into: base + written)
        passOver(nil, byteCount)
        written += byteCount
        continue
      }
      if controlOnly { return written }
      guard let kind = overdue ?? rings.mostUrgent else { return written }
      let flow = ready(kind)
      let byteCount = pool.frameByteCount(flow)
      if !fits(byteCount, behind: written, output.count) { return written }
      charge(flow, kind, byteCount)
      remove(flow, kind, into: base + written)
      if pool.flows[flow].frames == 0 { leave(flow, kind) }
      passOver(kind, byteCount)
      written += byteCount
    }
    return written
  }

  public mutating func removeControl() { control.removeAll() }

  public mutating func removeAll() {
    control.removeAll()
    while let flow = turn(.realtime) { leave(flow, .realtime) }
    while let flow = turn(.interactive) { leave(flow, .interactive) }
    while let flow = turn(.bulk) { leave(flow, .bulk) }
  }

  private func fits(_ byteCount: Int, behind written: Int, _ room: Int) -> Bool {
    written + byteCount <= (written == 0 ? room : min(room, frameBytesMax))
  }

  /// Updates `passedOver` of each class after a frame of class `kind` was sent. A nil `kind` is a control frame.
  private mutating func passOver(_ kind: Class?, _ byteCount: Int) {
    passOver(.realtime, kind, byteCount)
    passOver(.interactive, kind, byteCount)
    passOver(.bulk, kind, byteCount)
  }

  private mutating func passOver(_ waiting: Class, _ sent: Class?, _ byteCount: Int) {
    if waiting.rawValue > sent?.rawValue ?? -1 && rings[waiting].byteCount > 0 {
      rings[waiting].passedOver += byteCount
    } else if waiting == sent || rings[waiting].byteCount == 0 {
      rings[waiting].passedOver = 0
    }
  }

  // MARK: Flows

  private func group(_ kind: Class, _ ingress: Int) -> UInt16? {
    rings[kind].groups.first(in: pool.groups) { Int($0.ingress) == ingress }
  }

  private func find(_ header: FrameHeader, _ kind: Class, _ ingress: Int, _ isRelayed: Bool) -> UInt16? {
    guard let group = group(kind, ingress) else { return nil }
    let ring = isRelayed ? pool.groups[group].relayed : pool.groups[group].own
    return ring.first(in: pool.flows) { $0.source == header.source && $0.destination == header.destination }
  }

  /// The flow that has the turn in a class; nil if the class is empty.
  private func turn(_ kind: Class) -> UInt16? {
    rings[kind].groups.isEmpty ? nil : turn(of: rings[kind].groups.turn(in: pool.groups))
  }

  private func turn(of group: UInt16) -> UInt16 {
    let group = pool.groups[group]
    return (group.hasRelayedTurn ? group.relayed : group.own).turn(in: pool.flows)
  }

  /// Advances the turn in a class until a flow may send its first frame, and returns that flow. The class must not be
  /// empty.
  private mutating func ready(_ kind: Class) -> UInt16 {
    let (pool, quantum) = (pool, frameBytesMax)
    let group = rings[kind].groups.ready(in: pool.groups, quantum: quantum) {
      pool.frameByteCount(pool.readyFlow(of: $0, quantum: quantum))
    }
    return turn(of: group)
  }

  /// Charges a frame to the turn of its flow and of the flow's group.
  private func charge(_ flow: UInt16, _ kind: Class, _ byteCount: Int) {
    pool.flows[flow].deficit -= Int32(byteCount)
    let group = rings[kind].groups.turn(in: pool.groups)
    pool.groups[group].charge(byteCount, isRelayed: pool.flows[flow].isRelayed)
  }

  /// Creates a flow in the group of its ingress, and the group if there is none.
  private mutating func enter(_ header: FrameHeader, _ kind: Class, _ ingress: Int, _ isRelayed: Bool) -> UInt16 {
    let flow = pool.makeFlow(header, ingress: ingress, isRelayed: isRelayed)
    let group = group(kind, ingress) ?? enterGroup(UInt8(ingress), kind)
    if isRelayed {
      pool.groups[group].relayed.enter(flow, in: pool.flows, quantum: frameBytesMax)
    } else {
      pool.groups[group].own.enter(flow, in: pool.flows, quantum: frameBytesMax)
    }
    return flow
  }

  private mutating func enterGroup(_ ingress: UInt8, _ kind: Class) -> UInt16 {
    let group = pool.makeGroup(ingress: ingress)
    rings[kind].groups.enter(group, in: pool.groups, quantum: frameBytesMax)
    return group
  }

  /// Removes a flow and drops its frames. Also removes the flow's group if no flow is left in that group.
  private mutating func leave(_ flow: UInt16, _ kind: Class) {
    while pool.flows[flow].frames > 0 { remove(flow, kind, into: nil) }
    guard let group = group(kind, Int(pool.flows[flow].ingress)) else { preconditionFailure("a flow without a group") }
    if pool.flows[flow].isRelayed {
      pool.groups[group].relayed.leave(flow, in: pool.flows, quantum: frameBytesMax)
    } else {
      pool.groups[group].own.leave(flow, in: pool.flows, quantum: frameBytesMax)
    }
    pool.release(flow)
    guard pool.groups[group].isEmpty else { return }
    rings[kind].groups.leave(group, in: pool.groups, quantum: frameBytesMax)
    pool.release(group: group)
    if rings[kind].groups.isEmpty { rings[kind] = QueueRing() }
  }

  /// Removes the first frame of a flow, and copies the frame to `output` unless `output` is nil. The flow stays in its
  /// ring.
  private mutating func remove(_ flow: UInt16, _ kind: Class, into output: UnsafeMutableRawPointer?) {
    let before = Int(pool.flows[flow].blocks)
    let byteCount = pool.take(flow, into: output)
    let ingress = Int(pool.flows[flow].ingress)
    share.giveBack(before - Int(pool.flows[flow].blocks), by: ingress)
    rings[kind].byteCount -= byteCount
    if ingress == FramePool.ownIngress { rings[kind].ownByteCount -= byteCount }
  }
}
