import Frame
import Primitives

/// Frames waiting for one link. What neighbours say to each other has a small memory of its own, so that it never
/// starves; everything else waits in the pool that all links share.
///
/// The more urgent class goes first. Within a class flows take turns, each with as many bytes as the longest frame has
/// (deficit round robin: Shreedhar and Varghese, 1995). A class that was passed over for long gets one frame through, so
/// that nobody can shut out what is less urgent than his own.
public struct FrameQueue {
  /// Classes that wait in the pool, the most urgent first.
  private enum Class: Int {
    case realtime = 0
    case interactive = 1
    case bulk = 2

    /// The class of a routed frame. Only neighbours have control frames: a routed one that says so is interactive.
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

  /// The flows of one class, in a ring: the one behind the last is the one whose turn it is.
  private struct Ring {
    var last = FramePool.none
    var byteCount = 0
    /// Of these bytes, those of this node's own.
    var ownByteCount = 0
    /// Bytes of more urgent frames that were sent since one of this class was, while some waited.
    var passedOver = 0
  }

  /// The ring of each class.
  private struct Rings {
    private var rings = FixedArray<3, Ring>(repeating: Ring())

    var byteCount: Int { self[.realtime].byteCount + self[.interactive].byteCount + self[.bulk].byteCount }

    subscript(kind: Class) -> Ring {
      get { rings[kind.rawValue] }
      _modify { yield &rings[kind.rawValue] }
    }
  }

  /// The queue's own memory, for control frames.
  public static let byteCount = Limits.queueBytesMaxControl

  private var control: ByteQueue
  private let pool: FramePool
  private var rings = Rings()
  private var blocks = 0
  /// The longest frame that the link takes, and what a flow may send in one turn.
  public var frameBytesMax = Limits.frameHeaderBytes + Limits.framePayloadBytesFloor

  /// `memory` has `byteCount` bytes and is the queue's alone.
  public init(_ memory: UnsafeMutableRawBufferPointer, _ pool: FramePool) {
    precondition(memory.count >= Self.byteCount)
    control = ByteQueue(UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.byteCount]))
    self.pool = pool
  }

  // MARK: What waits

  public var byteCount: Int { control.count + rings.byteCount }
  public var isEmpty: Bool { byteCount == 0 }
  public var controlByteCount: Int { control.count }

  /// Bytes waiting in one priority.
  public func byteCount(_ priority: FramePriority) -> Int {
    priority == .control ? control.count : rings[Class(priority)].byteCount
  }

  /// Bytes of this node's own waiting in one priority.
  public func ownByteCount(_ priority: FramePriority) -> Int {
    priority == .control ? control.count : rings[Class(priority)].ownByteCount
  }

  /// Whether the pool and the link have room for a longest frame of `ingress`.
  public func hasRoom(for ingress: Int) -> Bool {
    let needed = (frameBytesMax + Limits.queueBlockBytes - 1) / Limits.queueBlockBytes
    return (blocks + needed) * Limits.queueBlockBytes <= Limits.linkQueueBytesMax
      && pool.refusal(ingress, blocks: needed) == nil
  }

  // MARK: In

  /// Queue a frame that came from `ingress`: a link slot, or `FramePool.ownIngress`. False when it was dropped; the pool
  /// counts why.
  public mutating func append(_ header: FrameHeader, _ payload: RawSpan, from ingress: Int) -> Bool {
    var bytes = InlineArray<48, UInt8>(repeating: 0)
    var head = bytes.mutableSpan
    head.withUnsafeMutableBytes { buffer in
      var output = OutputRawSpan(buffer: buffer, initializedCount: 0)
      header.write(to: &output)
    }
    if !header.isRouted { return appendControl(bytes.span.bytes, payload) }
    let drop = append(header, bytes.span.bytes, payload, Class(header.priority), ingress)
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
    _ header: FrameHeader, _ head: RawSpan, _ payload: RawSpan, _ kind: Class, _ ingress: Int
  ) -> QueueDrop? {
    let byteCount = head.byteCount + payload.byteCount
    let known = find(header, kind, ingress)
    guard let flow = known ?? pool.makeFlow(header, ingress: ingress) else { return .flowsFull }
    if known == nil { enter(flow, kind) }
    while let drop = refusal(flow, byteCount, kind, ingress) {
      guard let victim = victim(of: drop, flow, kind, ingress) else {
        if pool.flows[flow].frames == 0 { leave(flow, kind) }
        return drop
      }
      pool.count(.overtaken)
      remove(victim, .realtime, into: nil)
      if victim != flow && pool.flows[victim].frames == 0 { leave(victim, .realtime) }
    }
    blocks += pool.blocksNeeded(flow, for: byteCount)
    pool.append(flow, head, payload)
    rings[kind].byteCount += byteCount
    if ingress == FramePool.ownIngress { rings[kind].ownByteCount += byteCount }
    return nil
  }

  /// The realtime flow whose oldest frame gives way: to a later one of its own, or to a frame that must arrive.
  private func victim(of drop: QueueDrop, _ flow: UInt16, _ kind: Class, _ ingress: Int) -> UInt16? {
    switch kind {
    case .realtime: return pool.flows[flow].frames > 0 ? flow : nil
    case .interactive, .bulk:
      guard let oldest = turn(.realtime) else { return nil }
      switch drop {
      case .poolFull, .linkQuota: return oldest
      case .neighbourQuota: return Int(pool.flows[oldest].ingress) == ingress ? oldest : nil
      case .flowQuota, .flowsFull, .overtaken, .controlFull: return nil
      }
    }
  }

  private func refusal(_ flow: UInt16, _ byteCount: Int, _ kind: Class, _ ingress: Int) -> QueueDrop? {
    let held = pool.flows[flow]
    if Int(held.byteCount) + byteCount > kind.flowBytesMax || Int(held.frames) >= Limits.flowFramesMax {
      return .flowQuota
    }
    let needed = pool.blocksNeeded(flow, for: byteCount)
    if (blocks + needed) * Limits.queueBlockBytes > Limits.linkQueueBytesMax { return .linkQuota }
    return pool.refusal(ingress, blocks: needed)
  }

  // MARK: Out

  /// Move whole frames into `output`, until the next one does not fit or what was moved is as long as the link's
  /// longest frame: whoever wants more asks again, and an urgent frame that came meanwhile goes first. Returns the bytes
  /// written.
  public mutating func pop(into output: UnsafeMutableRawBufferPointer) -> Int {
    guard let base = output.baseAddress else { return 0 }
    var written = 0
    while true {
      let overdue = overdue
      if overdue == nil && !control.isEmpty {
        let byteCount = FrameHeader.frameByteCount { control[$0] }
        if !fits(byteCount, behind: written, output.count) { return written }
        control.pop(byteCount, into: base + written)
        passOver(nil, byteCount)
        written += byteCount
        continue
      }
      guard let kind = overdue ?? mostUrgent else { return written }
      let flow = ready(kind)
      let byteCount = pool.frameByteCount(flow)
      if !fits(byteCount, behind: written, output.count) { return written }
      remove(flow, kind, into: base + written)
      pool.flows[flow].deficit -= Int32(byteCount)
      if pool.flows[flow].frames == 0 { leave(flow, kind) }
      passOver(kind, byteCount)
      written += byteCount
    }
  }

  public mutating func removeAll() {
    control.removeAll()
    while let flow = turn(.realtime) { leave(flow, .realtime) }
    while let flow = turn(.interactive) { leave(flow, .interactive) }
    while let flow = turn(.bulk) { leave(flow, .bulk) }
  }

  private func fits(_ byteCount: Int, behind written: Int, _ room: Int) -> Bool {
    written + byteCount <= (written == 0 ? room : min(room, frameBytesMax))
  }

  private var mostUrgent: Class? {
    if rings[.realtime].byteCount > 0 { return .realtime }
    if rings[.interactive].byteCount > 0 { return .interactive }
    return rings[.bulk].byteCount > 0 ? .bulk : nil
  }

  /// The class that was passed over for too long.
  private var overdue: Class? {
    if rings[.bulk].passedOver >= Limits.passedOverBytesMax { return .bulk }
    if rings[.interactive].passedOver >= Limits.passedOverBytesMax { return .interactive }
    return rings[.realtime].passedOver >= Limits.passedOverBytesMax ? .realtime : nil
  }

  /// A frame of `kind`, or of control when it is nil, was sent.
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

  private func find(_ header: FrameHeader, _ kind: Class, _ ingress: Int) -> UInt16? {
    let last = rings[kind].last
    if last == FramePool.none { return nil }
    var flow = last
    repeat {
      let known = pool.flows[flow]
      if known.source == header.source && known.destination == header.destination && Int(known.ingress) == ingress {
        return flow
      }
      flow = known.next
    } while flow != last
    return nil
  }

  /// The flow whose turn it is.
  private func turn(_ kind: Class) -> UInt16? {
    let last = rings[kind].last
    return last == FramePool.none ? nil : pool.flows[last].next
  }

  /// The flow whose turn it is, once turns have passed on until one may send its first frame. There must be a flow.
  private mutating func ready(_ kind: Class) -> UInt16 {
    while true {
      let flow = pool.flows[rings[kind].last].next
      if Int(pool.flows[flow].deficit) >= pool.frameByteCount(flow) { return flow }
      rings[kind].last = flow
      pool.flows[pool.flows[flow].next].deficit += Int32(frameBytesMax)
    }
  }

  /// A new flow is the last of its ring.
  private mutating func enter(_ flow: UInt16, _ kind: Class) {
    let last = rings[kind].last
    if last == FramePool.none {
      pool.flows[flow].next = flow
      pool.flows[flow].deficit = Int32(frameBytesMax)
    } else {
      pool.flows[flow].next = pool.flows[last].next
      pool.flows[last].next = flow
    }
    rings[kind].last = flow
  }

  /// A flow goes, and what waits in it.
  private mutating func leave(_ flow: UInt16, _ kind: Class) {
    while pool.flows[flow].frames > 0 { remove(flow, kind, into: nil) }
    let last = rings[kind].last
    let following = pool.flows[flow].next
    var before = last
    while pool.flows[before].next != flow { before = pool.flows[before].next }
    if following == flow {
      rings[kind] = Ring()
    } else {
      pool.flows[before].next = following
      // Its turn is over: the next one's begins.
      if before == last { pool.flows[following].deficit += Int32(frameBytesMax) }
      if flow == last { rings[kind].last = before }
    }
    pool.release(flow)
  }

  /// The first frame of a flow goes, copied or not. The flow stays in its ring.
  private mutating func remove(_ flow: UInt16, _ kind: Class, into output: UnsafeMutableRawPointer?) {
    let before = Int(pool.flows[flow].blocks)
    let byteCount = pool.take(flow, into: output)
    blocks -= before - Int(pool.flows[flow].blocks)
    rings[kind].byteCount -= byteCount
    if Int(pool.flows[flow].ingress) == FramePool.ownIngress { rings[kind].ownByteCount -= byteCount }
  }
}
