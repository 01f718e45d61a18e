import Primitives
import Session

/// Observes both ends of every stream in a scenario and checks four rules:
/// - The received data is a prefix of the written data.
/// - Each end of a stream is notified once that the stream has ended.
/// - No node holds more bytes of streams than it granted.
/// - A reader that does not read delays no other stream.
public final class StreamWitness {
  /// An incarnation of a node, from a start to the next restart.
  public struct Incarnation: Hashable, Sendable {
    public var node: Int
    public var life: UInt64

    public init(_ node: Int, _ life: UInt64) {
      self.node = node
      self.life = life
    }
  }

  /// How an application treats an incoming stream.
  public enum Manner: CaseIterable {
    case reads
    /// The application reads a part of the available bytes from time to time.
    case readsLate
    case stops
    case refuses
    case undecided
  }

  /// The state of one stream at both ends.
  public final class Flow {
    let number: Int
    let writer: Incarnation
    /// The number of bytes that the writer will write. Nil if the writer is malicious: then only the amount of data is
    /// checked.
    let total: Int?
    let closes: Bool
    public let handle: StreamHandle
    var written = 0
    var isFinished = false
    public fileprivate(set) var writerEnd: StreamEnd?
    var manner: Manner?
    var reader: (incarnation: Incarnation, handle: StreamHandle)?
    public fileprivate(set) var heard = 0
    var taken = 0
    var isAllHeard = false
    public fileprivate(set) var readerEnd: StreamEnd?

    init(_ number: Int, _ writer: Incarnation, _ handle: StreamHandle, total: Int?, closes: Bool, _ manner: Manner?) {
      self.number = number
      self.writer = writer
      self.handle = handle
      self.total = total
      self.closes = closes
      self.manner = manner
    }

    func byte(_ offset: Int) -> UInt8 { UInt8(truncatingIfNeeded: number &* 31 &+ offset &* 7 &+ offset >> 8) }
  }

  /// The number of bytes that all streams to a node may hold together, not counting the first
  /// `SessionLimits.streamWindowSure` of each.
  private let pool: Int
  private var flows: [Flow] = []
  private var byWriter: [Incarnation: [StreamHandle: Flow]] = [:]
  private var byReader: [Incarnation: [StreamHandle: Flow]] = [:]
  /// The first violation of a rule, or nil.
  public private(set) var wrong: String?
  public private(set) var bytes = 0
  /// The number of streams that were read to their end.
  public private(set) var finishedCount = 0

  public init(pool: Int) { self.pool = pool }

  private func fail(_ what: String) { if wrong == nil { wrong = what } }

  // MARK: Actions of applications

  /// Opens a stream and writes as many bytes as are accepted. Returns nil if the stream is refused. Without `manner`,
  /// the reader chooses at random how to treat the stream.
  public func open(
    _ incarnation: Incarnation, _ sessions: Sessions, _ session: SessionHandle, to: MemberAddress, total: Int,
    closes: Bool = true,
    _ manner: Manner? = nil, now: Instant
  ) -> Flow? {
    guard
      let handle = try? sessions.openStream(Array("\(flows.count)".utf8), in: session, to: to, now: now)
    else { return nil }
    let flow = Flow(flows.count, incarnation, handle, total: total, closes: closes, manner)
    flows.append(flow)
    byWriter[incarnation, default: [:]][handle] = flow
    write(flow, sessions, now)
    return flow
  }

  private func write(_ flow: Flow, _ sessions: Sessions, _ now: Instant) {
    guard let total = flow.total else { return }
    while flow.written < total {
      let bytes = (flow.written..<min(total, flow.written + 20_000)).map { flow.byte($0) }
      guard let count = try? sessions.writeStream(flow.handle, bytes, now: now) else { return }
      flow.written += count
      if count < bytes.count { return }
    }
    guard flow.closes, !flow.isFinished else { return }
    flow.isFinished = true
    try? sessions.finishStream(flow.handle, now: now)
  }

  /// Lets the late readers of `incarnation` read a part of their available bytes.
  public func readLate(_ incarnation: Incarnation, _ sessions: Sessions, _ random: inout SeededRandom, now: Instant) {
    for flow in flows
    where flow.reader?.incarnation == incarnation && flow.manner == .readsLate && flow.readerEnd == nil {
      if flow.taken < flow.heard {
        take(flow, 1 + Int(random.below(UInt64(flow.heard - flow.taken))), sessions, now)
      }
    }
  }

  private func take(_ flow: Flow, _ count: Int, _ sessions: Sessions, _ now: Instant) {
    flow.taken += count
    if let reader = flow.reader { sessions.takenFromStream(reader.handle, count, now: now) }
  }

  // MARK: Events for applications

  /// Handles a stream event of the application of `incarnation`. `sender` is the number of the node that opened the
  /// stream, or nil for a malicious node.
  public func receive(
    _ incarnation: Incarnation, _ sessions: Sessions, _ handle: StreamHandle, _ event: StreamEvent, from sender: Int?,
    _ random: inout SeededRandom, now: Instant
  ) {
    if case .opened(_, _, let name, _) = event {
      isAsked(incarnation, sessions, handle, name, sender, &random, now)
    } else if let flow = byWriter[incarnation]?[handle] {
      writerHears(flow, sessions, event, now)
    } else if let flow = byReader[incarnation]?[handle] {
      readerHears(flow, sessions, event, now)
    } else {
      fail("node \(incarnation.node) receives an event of an unknown stream: \(event)")
    }
  }

  private func isAsked(
    _ incarnation: Incarnation, _ sessions: Sessions, _ handle: StreamHandle, _ name: [UInt8], _ sender: Int?,
    _ random: inout SeededRandom, _ now: Instant
  ) {
    let flow: Flow
    if let sender {
      guard let number = Int(String(decoding: name, as: UTF8.self)), flows.indices.contains(number),
        flows[number].writer.node == sender, flows[number].reader == nil
      else { return fail("node \(incarnation.node) is offered a stream that no node opened") }
      flow = flows[number]
    } else {
      flow = Flow(flows.count, Incarnation(-1, 0), StreamHandle(number: 0), total: nil, closes: false, nil)
      flows.append(flow)
    }
    flow.reader = (incarnation, handle)
    byReader[incarnation, default: [:]][handle] = flow
    let manner = flow.manner ?? (random.chance(perThousand: 400) ? .reads : Manner.allCases[Int(random.below(5))])
    flow.manner = manner
    switch manner {
    case .reads, .readsLate, .stops: try? sessions.acceptStream(handle, now: now)
    case .refuses: try? sessions.resetStream(handle, now: now)
    case .undecided: break
    }
  }

  private func writerHears(_ flow: Flow, _ sessions: Sessions, _ event: StreamEvent, _ now: Instant) {
    switch event {
    case .room: write(flow, sessions, now)
    case .ended(let end):
      if flow.writerEnd != nil { fail("stream \(flow.number) ends twice for its writer") }
      if end == .finished && !flow.isFinished {
        fail("stream \(flow.number) is finished, but its writer has not finished it")
      }
      flow.writerEnd = end
    case .opened, .bytes, .finished: fail("the writer of stream \(flow.number) receives \(event)")
    }
  }

  private func readerHears(_ flow: Flow, _ sessions: Sessions, _ event: StreamEvent, _ now: Instant) {
    if flow.readerEnd != nil { return fail("stream \(flow.number) continues after its end") }
    switch event {
    case .bytes(let data):
      if flow.manner == .undecided || flow.manner == .refuses { return fail("bytes arrive before credit was granted") }
      for (offset, byte) in data.enumerated() where flow.total != nil && byte != flow.byte(flow.heard + offset) {
        return fail("the received bytes of stream \(flow.number) are no prefix of the written ones")
      }
      if flow.total != nil && flow.heard + data.count > flow.written {
        return fail("more bytes arrive than were written")
      }
      flow.heard += data.count
      bytes += data.count
      checkHeld(flow)
      if flow.manner == .reads { take(flow, data.count, sessions, now) }
    case .finished:
      if let total = flow.total, flow.heard != total || !flow.isFinished {
        fail("stream \(flow.number) is finished after \(flow.heard) of \(total) bytes")
      }
      flow.isAllHeard = true
    case .ended(let end):
      if end == .finished && !(flow.isAllHeard && flow.taken == flow.heard) {
        fail("stream \(flow.number) ends before its last byte")
      }
      flow.readerEnd = end
      if end == .finished { finishedCount += 1 }
    case .opened, .room: fail("the reader of stream \(flow.number) receives \(event)")
    }
  }

  /// Checks that the reader's node holds no more bytes than it granted, for this stream and for all its streams.
  private func checkHeld(_ flow: Flow) {
    guard let incarnation = flow.reader?.incarnation else { return }
    if flow.heard - flow.taken > SessionLimits.streamWindow {
      fail("node \(incarnation.node) holds too many bytes of a stream")
    }
    var pooled = 0
    for flow in (byReader[incarnation] ?? [:]).values where flow.readerEnd == nil {
      pooled += max(0, flow.heard - flow.taken - Int(SessionLimits.streamWindowSure))
    }
    if pooled > pool { fail("node \(incarnation.node) holds \(pooled) bytes of its streams' pool") }
  }

  // MARK: The end

  /// Checks which streams must have ended, once no message is on its way. `isPresent` returns whether that incarnation
  /// of a node still runs.
  public func check(isPresent: (Incarnation) -> Bool) {
    for flow in flows where flow.total != nil && isPresent(flow.writer) {
      let isReaderPresent = flow.reader.map { isPresent($0.incarnation) } ?? false
      if flow.writerEnd == .finished && flow.reader != nil && !(flow.isAllHeard && flow.taken == flow.heard) {
        fail("stream \(flow.number) is finished only for its writer")
      }
      let mustEnd = flow.manner == .refuses || (flow.manner == .reads && flow.isFinished)
      if mustEnd && (flow.writerEnd == nil || (isReaderPresent && flow.readerEnd == nil)) {
        fail("stream \(flow.number) never ends: \(flow.heard) of \(flow.written) bytes arrived")
      }
    }
  }

  /// Checks that all bytes of a stream have arrived. The stream of a race was opened in the quiet phase and its
  /// application reads, so no other stream may delay it.
  public func checkRace(_ flow: Flow) {
    if flow.writerEnd != .finished || flow.readerEnd != .finished {
      fail("a stream is delayed by another one: \(flow.heard) of \(flow.written) bytes arrived")
    }
  }
}
