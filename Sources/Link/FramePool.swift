import Frame
import Primitives

/// Memory in which frames wait, shared by all links of a node: blocks of one size, and the flows that hold them.
///
/// Whoever a frame came from, a neighbour or this node itself, holds its blocks until the frame leaves. An ingress may
/// have as much as is still free, up to its quota (the dynamic threshold of Choudhury and Hahne, 1998): one alone gets
/// plenty, and however many are greedy, one that comes later finds half as much room as each of them has at once, and as
/// much when frames have left.
///
/// Free blocks and flows are taken last in, first out, and new ones only when none was given back: the pool touches as
/// many pages as once waited at the same time. Copies of the value share the pool.
public struct FramePool {
  /// Who put a frame in: a link slot, or this for the node itself.
  public static let ownIngress = Limits.linksMax

  public static let byteCount =
    stateBytes + holderBytes + nextBytes + flowBytes + Limits.queueBlocksMax * Limits.queueBlockBytes
  private static let stateBytes = aligned(MemoryLayout<State>.stride)
  private static let holderBytes = aligned((Limits.linksMax + 1) * MemoryLayout<Ingress>.stride)
  private static let nextBytes = aligned(Limits.queueBlocksMax * MemoryLayout<UInt16>.stride)
  private static let flowBytes = aligned(Limits.flowsMax * MemoryLayout<Flow>.stride)
  private static func aligned(_ count: Int) -> Int { (count + 63) / 64 * 64 }

  static let none = UInt16.max

  private struct State {
    var freeBlock = FramePool.none
    var freshBlock: UInt16 = 0
    var freeFlow = FramePool.none
    var freshFlow: UInt16 = 0
    var freeBlockCount = Limits.queueBlocksMax
    var drops = QueueDropCounters()
  }

  /// What somebody holds of the pool.
  struct Ingress {
    var blocks: UInt16 = 0
    var frames: UInt16 = 0
    var flows: UInt16 = 0
  }

  private let state: UnsafeMutablePointer<State>
  private let ingresses: UnsafeMutablePointer<Ingress>
  /// The block behind each block, in its flow or among the free ones.
  private let next: UnsafeMutablePointer<UInt16>
  let flows: UnsafeMutablePointer<Flow>
  private let blocks: UnsafeMutableRawPointer

  /// `memory` has `byteCount` bytes, aligned to 64, and is the pool's alone.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= Self.byteCount)
    let base = memory.baseAddress!
    state = base.bindMemory(to: State.self, capacity: 1)
    state.initialize(to: State())
    ingresses = (base + Self.stateBytes).bindMemory(to: Ingress.self, capacity: Limits.linksMax + 1)
    ingresses.initialize(repeating: Ingress(), count: Limits.linksMax + 1)
    let rest = base + Self.stateBytes + Self.holderBytes
    next = rest.bindMemory(to: UInt16.self, capacity: Limits.queueBlocksMax)
    flows = (rest + Self.nextBytes).bindMemory(to: Flow.self, capacity: Limits.flowsMax)
    blocks = rest + Self.nextBytes + Self.flowBytes
  }

  /// Frames dropped, by reason.
  public var drops: QueueDropCounters { state.pointee.drops }
  /// Bytes that nobody holds.
  public var freeBytes: Int { state.pointee.freeBlockCount * Limits.queueBlockBytes }
  /// Bytes that a link slot's neighbour, or the node itself, holds in blocks.
  public func heldBytes(by ingress: Int) -> Int { Int(ingresses[ingress].blocks) * Limits.queueBlockBytes }

  func count(_ drop: QueueDrop) { state.pointee.drops.count(drop) }

  // MARK: Flows

  /// A flow without frames; nil when `ingress` has too many, or all have.
  func makeFlow(_ header: FrameHeader, ingress: Int) -> UInt16? {
    if Int(ingresses[ingress].flows) == Limits.flowsMaxPerNeighbour { return nil }
    var number = state.pointee.freeFlow
    if number != Self.none {
      state.pointee.freeFlow = flows[Int(number)].next
    } else {
      if Int(state.pointee.freshFlow) == Limits.flowsMax { return nil }
      number = state.pointee.freshFlow
      state.pointee.freshFlow += 1
    }
    (flows + Int(number)).initialize(
      to: Flow(source: header.source, destination: header.destination, ingress: UInt8(ingress)))
    ingresses[ingress].flows += 1
    return number
  }

  /// Give back a flow without frames.
  func release(_ number: UInt16) {
    ingresses[Int(flows[Int(number)].ingress)].flows -= 1
    flows[Int(number)].next = state.pointee.freeFlow
    state.pointee.freeFlow = number
  }

  /// How many further blocks a flow needs for `byteCount` bytes.
  func blocksNeeded(_ number: UInt16, for byteCount: Int) -> Int {
    let flow = flows[Int(number)]
    let room = flow.tail == Self.none ? 0 : Limits.queueBlockBytes - Int(flow.tailEnd)
    return (max(byteCount - room, 0) + Limits.queueBlockBytes - 1) / Limits.queueBlockBytes
  }

  /// Why an ingress may not have so many further blocks; nil when it may.
  func refusal(_ ingress: Int, blocks: Int) -> QueueDrop? {
    let free = state.pointee.freeBlockCount
    if blocks > free { return .poolFull }
    let held = Int(ingresses[ingress].blocks) + blocks
    if held > min(free, Limits.neighbourQueueBytesMax / Limits.queueBlockBytes) { return .neighbourQuota }
    return Int(ingresses[ingress].frames) < Limits.neighbourFramesMax ? nil : .neighbourQuota
  }

  // MARK: Frames

  /// Add a frame's head and payload to a flow. There must be blocks for them.
  func append(_ number: UInt16, _ head: RawSpan, _ payload: RawSpan) {
    head.withUnsafeBytes { write(number, $0) }
    payload.withUnsafeBytes { write(number, $0) }
    flows[Int(number)].frames += 1
    flows[Int(number)].byteCount += UInt32(head.byteCount + payload.byteCount)
    ingresses[Int(flows[Int(number)].ingress)].frames += 1
  }

  /// The length of a flow's first frame. There must be one.
  func frameByteCount(_ number: UInt16) -> Int {
    FrameHeader.frameByteCount { byte(number, $0) }
  }

  /// Remove a flow's first frame, copied to `output` unless that is nil. Returns its length.
  func take(_ number: UInt16, into output: UnsafeMutableRawPointer?) -> Int {
    let byteCount = frameByteCount(number)
    let flow = flows + Int(number)
    var done = 0
    while done < byteCount {
      let offset = Int(flow.pointee.headOffset)
      let count = min(byteCount - done, Limits.queueBlockBytes - offset)
      if let output { (output + done).copyMemory(from: address(flow.pointee.head) + offset, byteCount: count) }
      done += count
      flow.pointee.headOffset += UInt16(count)
      if Int(flow.pointee.headOffset) == Limits.queueBlockBytes && flow.pointee.head != flow.pointee.tail {
        let following = next[Int(flow.pointee.head)]
        giveBack(flow.pointee.head, flow)
        flow.pointee.head = following
        flow.pointee.headOffset = 0
      }
    }
    flow.pointee.frames -= 1
    flow.pointee.byteCount -= UInt32(byteCount)
    ingresses[Int(flow.pointee.ingress)].frames -= 1
    if flow.pointee.frames == 0 {
      // The last block, partly used, goes as well.
      giveBack(flow.pointee.head, flow)
      flow.pointee.head = Self.none
      flow.pointee.tail = Self.none
    }
    return byteCount
  }

  private func write(_ number: UInt16, _ bytes: UnsafeRawBufferPointer) {
    let flow = flows + Int(number)
    var rest = bytes
    while !rest.isEmpty {
      if flow.pointee.tail == Self.none || Int(flow.pointee.tailEnd) == Limits.queueBlockBytes {
        let block = takeBlock(flow)
        if flow.pointee.tail == Self.none {
          flow.pointee.head = block
          flow.pointee.headOffset = 0
        } else {
          next[Int(flow.pointee.tail)] = block
        }
        flow.pointee.tail = block
        flow.pointee.tailEnd = 0
      }
      let offset = Int(flow.pointee.tailEnd)
      let count = min(rest.count, Limits.queueBlockBytes - offset)
      (address(flow.pointee.tail) + offset).copyMemory(from: rest.baseAddress!, byteCount: count)
      flow.pointee.tailEnd += UInt16(count)
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  /// Byte `offset` of a flow's first frame; `offset` is less than a block.
  private func byte(_ number: UInt16, _ offset: Int) -> UInt8 {
    let flow = flows[Int(number)]
    let place = Int(flow.headOffset) + offset
    if place < Limits.queueBlockBytes { return address(flow.head).load(fromByteOffset: place, as: UInt8.self) }
    return address(next[Int(flow.head)]).load(fromByteOffset: place - Limits.queueBlockBytes, as: UInt8.self)
  }

  // MARK: Blocks

  private func address(_ block: UInt16) -> UnsafeMutableRawPointer { blocks + Int(block) * Limits.queueBlockBytes }

  private func takeBlock(_ flow: UnsafeMutablePointer<Flow>) -> UInt16 {
    var block = state.pointee.freeBlock
    if block != Self.none {
      state.pointee.freeBlock = next[Int(block)]
    } else {
      precondition(Int(state.pointee.freshBlock) < Limits.queueBlocksMax)
      block = state.pointee.freshBlock
      state.pointee.freshBlock += 1
    }
    state.pointee.freeBlockCount -= 1
    ingresses[Int(flow.pointee.ingress)].blocks += 1
    flow.pointee.blocks += 1
    return block
  }

  private func giveBack(_ block: UInt16, _ flow: UnsafeMutablePointer<Flow>) {
    next[Int(block)] = state.pointee.freeBlock
    state.pointee.freeBlock = block
    state.pointee.freeBlockCount += 1
    ingresses[Int(flow.pointee.ingress)].blocks -= 1
    flow.pointee.blocks -= 1
  }
}

/// Frames of one priority on one link that have source, destination and ingress in common.
struct Flow {
  let source: NodeID
  let destination: NodeID
  let ingress: UInt8
  /// The next flow of the link and priority, in a ring; among free flows the next free one.
  var next = FramePool.none
  // The first and the last block, `FramePool.none` while it has none.
  var head = FramePool.none
  var tail = FramePool.none
  var headOffset: UInt16 = 0
  var tailEnd: UInt16 = 0
  var blocks: UInt16 = 0
  var frames: UInt16 = 0
  var byteCount: UInt32 = 0
  /// Bytes that it may still send in its turn.
  var deficit: Int32 = 0

  init(source: NodeID, destination: NodeID, ingress: UInt8) {
    self.source = source
    self.destination = destination
    self.ingress = ingress
  }
}
