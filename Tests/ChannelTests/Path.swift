@testable import Channel
import Primitives

/// One hop of a path, with the same properties in both directions.
struct Hop {
  var bytesPerSecond: UInt64
  /// The time from the end of a frame's transmission to its arrival. This time is random between the two limits, but no
  /// frame overtakes another frame.
  var delay: (least: TimeSpan, most: TimeSpan)
  /// The longest frame payload in bytes.
  var mtu: Int

  /// The limits of the queue of a relay's link, in bytes for each class.
  static let urgentBytesMax = 65_536
  static let bulkBytesMax = 262_144

  init(_ bytesPerSecond: UInt64, _ least: TimeSpan, _ most: TimeSpan? = nil, mtu: Int = ChannelLimits.pathMTUMax) {
    self.bytesPerSecond = bytesPerSecond
    delay = (least, most ?? least)
    self.mtu = mtu
  }

  static let bluetooth = Hop(125_000, .milliseconds(30), mtu: 4_096)
  static let wifi = Hop(6_250_000, .milliseconds(5))
  /// A Wi-Fi hop whose round trip varies between 5 and 20 ms.
  static let restlessWifi = Hop(6_250_000, .microseconds(2_500), .milliseconds(10))
  static let ethernet = Hop(125_000_000, .microseconds(150))
}

/// One direction of one hop: a queue with two classes, a transmitter that sends one frame at a time, and a delay.
private struct Line {
  struct Frame {
    var type: PayloadType
    var isBulk: Bool
    var bytes: [UInt8]
    var size: Int { bytes.count + 48 }
  }

  let hop: Hop
  private var urgent: [Frame] = []
  private var bulk: [Frame] = []
  private(set) var urgentBytes = 0
  private(set) var bulkBytes = 0
  private var sending: (frame: Frame, until: Instant)?
  private var flying: [(frame: Frame, at: Instant)] = []
  private var lastArrival = Instant.zero

  init(_ hop: Hop) { self.hop = hop }

  var next: Instant { min(sending?.until ?? .never, flying.first?.at ?? .never) }

  /// Queues a frame. Returns false if the queue of the frame's class is full.
  mutating func append(_ frame: Frame, now: Instant) -> Bool {
    if frame.isBulk {
      guard bulkBytes + frame.size <= Hop.bulkBytesMax else { return false }
      bulk.append(frame)
      bulkBytes += frame.size
    } else {
      guard urgentBytes + frame.size <= Hop.urgentBytesMax else { return false }
      urgent.append(frame)
      urgentBytes += frame.size
    }
    sendNext(now)
    return true
  }

  mutating func advance(_ now: Instant, _ random: inout SeededRandom) -> [Frame] {
    if let (frame, until) = sending, until <= now {
      let span = hop.delay.most.microseconds - hop.delay.least.microseconds
      let extra = span == 0 ? 0 : random.below(span)
      lastArrival = max(lastArrival, until + hop.delay.least + .microseconds(extra))
      flying.append((frame, lastArrival))
      sending = nil
      sendNext(now)
    }
    var arrived: [Frame] = []
    while let first = flying.first, first.at <= now { arrived.append(flying.removeFirst().frame) }
    return arrived
  }

  private mutating func sendNext(_ now: Instant) {
    guard sending == nil, !(urgent.isEmpty && bulk.isEmpty) else { return }
    let frame = urgent.isEmpty ? bulk.removeFirst() : urgent.removeFirst()
    if frame.isBulk { bulkBytes -= frame.size } else { urgentBytes -= frame.size }
    sending = (frame, now + TimeSpan(nanoseconds: UInt64(frame.size) * 1_000_000_000 / hop.bytesPerSecond))
  }
}

/// Two channels that are connected by relays. The relays queue frames by class as links do: urgent frames leave first,
/// and a frame that finds its class full is dropped. The first link of each end takes frames from its channel, as in a
/// node.
final class Path {
  let a: Channel
  let b: Channel
  private(set) var now = at(1_000)
  /// The loss of each direction, in thousandths of all frames.
  var lossPerThousand: UInt64 = 0
  /// Called after every event, before the channels' frames are sent. The closure can change `wakeAt`.
  var afterEvent: (Path) -> Void = { _ in }
  /// The time at which `afterEvent` is called if no other event comes first.
  var wakeAt = Instant.never
  /// The errors that the channels have returned for received payloads.
  private(set) var refusals: [ChannelError] = []
  private(set) var dropsQueueFull = 0
  private(set) var bulkQueueMax = 0
  private var random: SeededRandom
  /// The hops from a to b in order, and the hops from b to a.
  private var lines: [[Line]]
  private var buffer = [UInt8](repeating: 0, count: ChannelLimits.pathMTUMax)

  init(_ hops: [Hop], lossPerThousand: UInt64 = 0, seed: UInt64 = 1, settings: ChannelSettings = ChannelSettings()) {
    let mtu = hops.map(\.mtu).min() ?? 1_000
    (a, b) = pair(pathMTU: mtu, hops: hops.count, settings: settings, now: at(1_000))
    self.lossPerThousand = lossPerThousand
    random = SeededRandom(seed: seed)
    lines = [hops.map { Line($0) }, hops.reversed().map { Line($0) }]
  }

  /// Switches both channels to a path over `hops`. If `oldPathLives`, frames that are on their way still arrive.
  func handOver(to hops: [Hop], oldPathLives: Bool) {
    let mtu = hops.map(\.mtu).min() ?? 1_000
    if oldPathLives { old += lines.indices.map { ($0, lines[$0]) } }
    lines = [hops.map { Line($0) }, hops.reversed().map { Line($0) }]
    a.routeChanged(pathMTU: mtu, hops: hops.count, oldPathLives: oldPathLives, now: now)
    b.routeChanged(pathMTU: mtu, hops: hops.count, oldPathLives: oldPathLives, now: now)
  }

  private var old: [(direction: Int, lines: [Line])] = []

  /// Drops all frames that are on their way.
  func cut() { lines = lines.map { $0.map { Line($0.hop) } } }

  /// Runs until `end` or until `isDone` returns true, whichever comes first.
  func run(until end: Instant, isDone: () -> Bool = { false }) {
    settle()
    while !isDone() {
      var next = min(wakeAt, a.nextDeadline, b.nextDeadline)
      for lines in lines { for line in lines { next = min(next, line.next) } }
      for (_, lines) in old { for line in lines { next = min(next, line.next) } }
      guard next < end else { return now = end }
      now = max(now, next)
      for direction in 0...1 { carry(&lines[direction], direction) }
      for index in old.indices { carry(&old[index].lines, old[index].direction) }
      a.handleTimeout(now: now)
      b.handleTimeout(now: now)
      settle()
    }
  }

  private func settle() {
    afterEvent(self)
    pump(a, 0)
    pump(b, 1)
  }

  private func carry(_ lines: inout [Line], _ direction: Int) {
    for index in lines.indices {
      for frame in lines[index].advance(now, &random) {
        if index + 1 < lines.count {
          if !lines[index + 1].append(frame, now: now) { dropsQueueFull += 1 }
          bulkQueueMax = max(bulkQueueMax, lines[index + 1].bulkBytes)
        } else if !random.chance(perThousand: lossPerThousand) {
          do throws(ChannelError) {
            try (direction == 0 ? b : a).receive((frame.type, frame.bytes), now: now)
          } catch {
            refusals.append(error)
          }
        }
      }
    }
  }

  private func pump(_ channel: Channel, _ direction: Int) {
    while true {
      let ahead = 2 * (lines[direction][0].hop.mtu + 48)
      guard lines[direction][0].urgentBytes < ahead else { return }
      let isBulkFull = lines[direction][0].bulkBytes >= ahead
      let out = buffer.withUnsafeMutableBytes { channel.nextFrame(into: $0, now: now, interactiveOnly: isBulkFull) }
      guard let out else { return }
      let isBulk = out.lane == .bulk && out.type == .segment
      let frame = Line.Frame(type: out.type, isBulk: isBulk, bytes: [UInt8](buffer[..<out.byteCount]))
      if !lines[direction][0].append(frame, now: now) { dropsQueueFull += 1 }
    }
  }
}

/// The results of a bulk transfer and of interactive messages beside it.
struct Measurement {
  var bulkBytesPerSecond = 0.0
  /// The time from sending to arrival of each interactive message, in microseconds.
  var latencies: [UInt64] = []
  var dropsQueueFull = 0
  var bulkQueueMax = 0
  var statistics = LaneStatistics()
  var refusals: [ChannelError] = []

  func percentile(_ percent: Int) -> UInt64 {
    latencies.isEmpty ? 0 : latencies.sorted()[min(latencies.count - 1, latencies.count * percent / 100)]
  }
}

/// Sends bulk data from a to b for `milliseconds`, to a reader that never pauses. Also sends 397 short interactive
/// messages at equal intervals.
func measure(
  _ hops: [Hop], lossPerThousand: UInt64, milliseconds: UInt64, withBulk: Bool = true, seed: UInt64 = 1
) -> Measurement {
  let path = Path(hops, lossPerThousand: lossPerThousand, seed: seed)
  var result = Measurement()
  let chunk = [UInt8](repeating: 0x55, count: 15_360)
  let interval = TimeSpan.microseconds(milliseconds * 1_000 / 397)
  var sentAt: [Instant] = []
  var bulkBytes = 0
  path.wakeAt = path.now + interval
  path.afterEvent = { path in
    while withBulk, path.a.canSend(byteCount: chunk.count, lane: .bulk) {
      guard (try? path.a.send(chunk, lane: .bulk, now: path.now)) != nil else { break }
    }
    if path.wakeAt <= path.now {
      if (try? path.a.send([7], lane: .interactive, now: path.now)) != nil { sentAt.append(path.now) }
      path.wakeAt = path.now + interval
    }
    while let message = path.b.nextMessage(.bulk) { bulkBytes += message.bytes.count }
    while path.b.nextMessage(.interactive) != nil {
      result.latencies.append((path.now - sentAt[result.latencies.count]).microseconds)
    }
    while path.a.nextCompletion() != nil {}
  }
  path.run(until: path.now + .milliseconds(milliseconds))
  result.refusals = path.refusals
  result.bulkBytesPerSecond = Double(bulkBytes) * 1_000 / Double(milliseconds)
  result.dropsQueueFull = path.dropsQueueFull
  result.bulkQueueMax = path.bulkQueueMax
  result.statistics = path.a.statistics(.bulk)
  return result
}
