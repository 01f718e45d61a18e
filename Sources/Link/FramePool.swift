import Frame
import Primitives

/// Memory for queued frames, shared by all links of a node: blocks of equal size and the flows that own them.
///
/// The ingress of a frame is the neighbour that delivered it, or this node itself. The blocks of a frame are charged to
/// its ingress until the frame is sent or dropped. An ingress may hold as many blocks as are free (`FairShare`), up to
/// its quota. So a single busy ingress has ample memory. When several ingresses hold their full share, a new ingress
/// immediately gets half as much memory as each of them. After some queued frames have left, the new ingress gets as
/// much as the others.
///
/// Free blocks and flows are reused last in, first out, before memory that was never used. So the pool touches only as
/// many pages as its greatest number of queued frames needed. Copies of the value share the pool.
public struct FramePool {
  /// The ingress number of this node itself. A neighbour's ingress number is the slot of its link.
  public static let ownIngress = FairShare.ownHolder

  public static let byteCount =
    Table<Contents, UInt8>.byteCount(1) + Table<Ingress, Int>.byteCount(FairShare.holders)
    + Table<QueueRing, UInt8>.byteCount(classes * Limits.linksMax) + Table<FairShare, UInt8>.byteCount(Limits.linksMax)
    + Table<UInt16, UInt16>.byteCount(Limits.queueBlocksMax) + Table<Flow, UInt16>.byteCount(Limits.queueBlocksMax)
    + Table<FlowGroup, UInt16>.byteCount(Limits.queueBlocksMax)
    + ByteTable<UInt16>.byteCount(Limits.queueBlocksMax, recordBytes: Limits.queueBlockBytes)

  static let none = TurnRing.none

  /// The number of priority classes of a queue.
  static let classes = 3

  /// The state of the pool. The state is stored behind one pointer, so that the pool is a small value to pass.
  private struct Contents {
    var freeBlock = FramePool.none
    var freshBlock: UInt16 = 0
    var freeFlow = FramePool.none
    var freshFlow: UInt16 = 0
    var freeGroup = FramePool.none
    var freshGroup: UInt16 = 0
    var queues: UInt8 = 0
    var share = FairShare(capacity: Limits.queueBlocksMax)
    var drops = QueueDropCounters()
    let ingresses: Table<Ingress, Int>
    /// The successor of each block, in its flow or in the free list.
    let next: Table<UInt16, UInt16>
    let flows: Table<Flow, UInt16>
    let groups: Table<FlowGroup, UInt16>
    let rings: Table<QueueRing, UInt8>
    let shares: Table<FairShare, UInt8>
    let blocks: ByteTable<UInt16>

    init(in arena: inout Arena) {
      ingresses = Table(count: FairShare.holders, in: &arena)
      next = Table(count: Limits.queueBlocksMax, in: &arena)
      flows = Table(count: Limits.queueBlocksMax, in: &arena)
      groups = Table(count: Limits.queueBlocksMax, in: &arena)
      rings = Table(count: FramePool.classes * Limits.linksMax, in: &arena)
      shares = Table(count: Limits.linksMax, in: &arena)
      blocks = ByteTable(count: Limits.queueBlocksMax, recordBytes: Limits.queueBlockBytes, in: &arena)
      ingresses.fill(Ingress())
      rings.fill(QueueRing())
      shares.fill(FairShare(capacity: Limits.linkQueueBytesMax / Limits.queueBlockBytes))
    }
  }

  /// The number of frames that one ingress has queued. The blocks of an ingress are counted in `Contents.share`.
  struct Ingress {
    var frames: UInt16 = 0
  }

  private let contents: Table<Contents, UInt8>

  /// `memory` has `byteCount` bytes, is aligned as an `Arena` requires, and must not be used for anything else.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    var arena = Arena(memory)
    contents = Table(count: 1, in: &arena)
    contents.fill(Contents(in: &arena))
  }

  private var state: Contents {
    _read { yield contents[0] }
    nonmutating _modify { yield &contents[0] }
  }

  private var ingresses: Table<Ingress, Int> { state.ingresses }
  private var next: Table<UInt16, UInt16> { state.next }
  private var blocks: ByteTable<UInt16> { state.blocks }
  /// The table of flows has as many entries as there are blocks. Each flow holds at least one block, so an ingress
  /// cannot use up the flows of others.
  var flows: Table<Flow, UInt16> { state.flows }
  /// The table of groups has as many entries as the table of flows. Each group has at least one flow.
  var groups: Table<FlowGroup, UInt16> { state.groups }
  /// The rings of all queues. The rings of queue n are the `classes` entries from `n * classes` on.
  var rings: Table<QueueRing, UInt8> { state.rings }
  /// The blocks that each queue holds, by ingress.
  var shares: Table<FairShare, UInt8> { state.shares }

  /// Registers a queue and returns its number. Traps beyond `Limits.linksMax` queues.
  func addQueue() -> UInt8 {
    precondition(Int(state.queues) < Limits.linksMax)
    defer { state.queues += 1 }
    return state.queues
  }

  /// Counters of dropped frames, by reason.
  public var drops: QueueDropCounters { state.drops }
  /// The free memory of the pool, in bytes.
  public var freeBytes: Int { state.share.free * Limits.queueBlockBytes }
  /// The bytes of the blocks that an ingress (a link slot or this node) holds.
  public func heldBytes(by ingress: Int) -> Int { state.share.held(by: ingress) * Limits.queueBlockBytes }

  func count(_ drop: QueueDrop) { state.drops.count(drop) }

  // MARK: Flows

  /// Allocates a flow. The caller must append a frame to the flow immediately, and a block must be free.
  func makeFlow(_ header: FrameHeader, ingress: Int, isRelayed: Bool) -> UInt16 {
    var number = state.freeFlow
    if number != Self.none {
      state.freeFlow = flows[number].next
    } else {
      number = state.freshFlow
      state.freshFlow += 1
    }
    flows[number] = Flow(
      source: header.source, destination: header.destination, ingress: UInt8(ingress), isRelayed: isRelayed)
    return number
  }

  /// Frees a flow, which must be empty.
  func release(_ number: UInt16) {
    flows[number].next = state.freeFlow
    state.freeFlow = number
  }

  /// Allocates an empty group for the first flow of an ingress.
  func makeGroup(ingress: UInt8) -> UInt16 {
    var number = state.freeGroup
    if number != Self.none {
      state.freeGroup = groups[number].next
    } else {
      number = state.freshGroup
      state.freshGroup += 1
    }
    groups[number] = FlowGroup(ingress: ingress)
    return number
  }

  /// Frees a group, which must be empty.
  func release(group number: UInt16) {
    groups[number].next = state.freeGroup
    state.freeGroup = number
  }

  /// Advances the turn in a group until a flow may send its first frame, and returns that flow.
  func readyFlow(of group: UInt16, quantum: Int) -> UInt16 {
    if groups[group].hasRelayedTurn {
      groups[group].relayed.ready(in: flows, quantum: quantum) { frameByteCount($0) }
    } else {
      groups[group].own.ready(in: flows, quantum: quantum) { frameByteCount($0) }
    }
  }

  /// The number of further blocks that a flow needs for `byteCount` bytes. A nil `number` is a flow that does not exist
  /// yet, and has no partly used block.
  func blocksNeeded(_ number: UInt16?, for byteCount: Int) -> Int {
    var room = 0
    if let number, flows[number].tail != Self.none { room = Limits.queueBlockBytes - Int(flows[number].tailEnd) }
    return (max(byteCount - room, 0) + Limits.queueBlockBytes - 1) / Limits.queueBlockBytes
  }

  /// The reason why an ingress may not queue another frame that needs `blocks` more blocks; nil if it may. `kept` is
  /// the number of blocks and frames that must remain free in the ingress's quotas.
  func refusal(_ ingress: Int, blocks: Int, kept: (blocks: Int, frames: Int)) -> QueueDrop? {
    if blocks > state.share.free { return .poolFull }
    let more = blocks + kept.blocks
    let held = state.share.held(by: ingress) + more
    if !state.share.mayTake(more, by: ingress) || held > Limits.neighbourQueueBytesMax / Limits.queueBlockBytes {
      return .neighbourQuota
    }
    return Int(ingresses[ingress].frames) + kept.frames < Limits.neighbourFramesMax ? nil : .neighbourQuota
  }

  // MARK: Frames

  /// Appends a frame's header and payload to a flow. Enough blocks must be free.
  func append(_ number: UInt16, _ head: RawSpan, _ payload: RawSpan) {
    head.withUnsafeBytes { write(number, $0) }
    payload.withUnsafeBytes { write(number, $0) }
    flows[number].frames += 1
    flows[number].byteCount += UInt32(head.byteCount + payload.byteCount)
    ingresses[Int(flows[number].ingress)].frames += 1
  }

  /// The length of a flow's first frame. The flow must not be empty.
  func frameByteCount(_ number: UInt16) -> Int {
    FrameHeader.frameByteCount { byte(number, $0) }
  }

  /// Removes a flow's first frame, and copies the frame to `output` unless `output` is nil. Returns the length of the
  /// frame.
  func take(_ number: UInt16, into output: UnsafeMutableRawPointer?) -> Int {
    let byteCount = frameByteCount(number)
    var done = 0
    while done < byteCount {
      let head = flows[number].head, offset = Int(flows[number].headOffset)
      let count = min(byteCount - done, Limits.queueBlockBytes - offset)
      if let output {
        UnsafeMutableRawBufferPointer(start: output + done, count: count)
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: blocks[head][offset..<offset + count]))
      }
      done += count
      flows[number].headOffset += UInt16(count)
      if offset + count == Limits.queueBlockBytes && head != flows[number].tail {
        flows[number].head = next[head]
        flows[number].headOffset = 0
        giveBack(head, of: number)
      }
    }
    flows[number].frames -= 1
    flows[number].byteCount -= UInt32(byteCount)
    ingresses[Int(flows[number].ingress)].frames -= 1
    if flows[number].frames == 0 {
      // The last, partly used block is freed too.
      giveBack(flows[number].head, of: number)
      flows[number].head = Self.none
      flows[number].tail = Self.none
    }
    return byteCount
  }

  private func write(_ number: UInt16, _ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty {
      if flows[number].tail == Self.none || Int(flows[number].tailEnd) == Limits.queueBlockBytes {
        let block = takeBlock(for: number)
        if flows[number].tail == Self.none {
          flows[number].head = block
          flows[number].headOffset = 0
        } else {
          next[flows[number].tail] = block
        }
        flows[number].tail = block
        flows[number].tailEnd = 0
      }
      let offset = Int(flows[number].tailEnd)
      let count = min(rest.count, Limits.queueBlockBytes - offset)
      UnsafeMutableRawBufferPointer(rebasing: blocks[flows[number].tail][offset..<offset + count])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
      flows[number].tailEnd += UInt16(count)
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  /// The byte at `offset` of a flow's first frame. `offset` is less than a block.
  private func byte(_ number: UInt16, _ offset: Int) -> UInt8 {
    let head = flows[number].head, position = Int(flows[number].headOffset) + offset
    return position < Limits.queueBlockBytes
      ? blocks[head][position] : blocks[next[head]][position - Limits.queueBlockBytes]
  }

  // MARK: Blocks

  private func takeBlock(for flow: UInt16) -> UInt16 {
    var block = state.freeBlock
    if block != Self.none {
      state.freeBlock = next[block]
    } else {
      block = state.freshBlock
      precondition(block < blocks.count)
      state.freshBlock += 1
    }
    state.share.take(1, by: Int(flows[flow].ingress))
    flows[flow].blocks += 1
    return block
  }

  private func giveBack(_ block: UInt16, of flow: UInt16) {
    next[block] = state.freeBlock
    state.freeBlock = block
    state.share.giveBack(1, by: Int(flows[flow].ingress))
    flows[flow].blocks -= 1
  }
}

/// The flow groups of one class of a queue.
struct QueueRing {
  var groups = TurnRing()
  var byteCount = 0
  /// The part of `byteCount` in frames from this node itself.
  var ownByteCount = 0
  /// The bytes of more urgent frames that were sent since this class last sent, while this class had queued frames.
  var passedOver = 0
}

/// The queued frames of one class on one link with the same source, destination and ingress.
struct Flow: TakesTurns {
  let source: NodeID
  let destination: NodeID
  let ingress: UInt8
  let isRelayed: Bool
  /// The next flow in its ring, or the next free flow.
  var next = FramePool.none
  // The first and the last block, or `FramePool.none` when the flow is empty.
  var head = FramePool.none
  var tail = FramePool.none
  var headOffset: UInt16 = 0
  var tailEnd: UInt16 = 0
  var blocks: UInt16 = 0
  var frames: UInt16 = 0
  var byteCount: UInt32 = 0
  var deficit: Int32 = 0

  init(source: NodeID, destination: NodeID, ingress: UInt8, isRelayed: Bool) {
    self.source = source
    self.destination = destination
    self.ingress = ingress
    self.isRelayed = isRelayed
  }
}

/// The flows of one class on one link with the same ingress. One ring holds the flows whose source is the neighbour
/// itself, whose identity its link proves. The second ring holds the flows that the neighbour relays. The two rings
/// take turns by bytes.
struct FlowGroup: TakesTurns {
  let ingress: UInt8
  /// The next group in the ring of its link and class, or the next free group.
  var next = FramePool.none
  var own = TurnRing()
  var relayed = TurnRing()
  var deficit: Int32 = 0
  /// The bytes that own flows sent in excess of relayed flows, while both rings had frames. Negative if relayed flows
  /// sent more.
  private var ownLead: Int32 = 0

  init(ingress: UInt8) { self.ingress = ingress }

  var isEmpty: Bool { own.isEmpty && relayed.isEmpty }
  /// Whether the next frame of the group comes from the ring of relayed flows.
  var hasRelayedTurn: Bool { own.isEmpty || !relayed.isEmpty && ownLead > 0 }

  /// Charges a frame of `byteCount` bytes to the turn of the group, and to that of one of its rings.
  mutating func charge(_ byteCount: Int, isRelayed: Bool) {
    deficit -= Int32(byteCount)
    let isAlone = own.isEmpty || relayed.isEmpty
    ownLead = isAlone ? 0 : isRelayed ? ownLead - Int32(byteCount) : ownLead + Int32(byteCount)
  }
}
