import Channel
import Primitives

/// The properties of one direction of the simulated path.
struct PathModel {
  var bitsPerSecond: UInt64 = 10_000_000
  var delayMilliseconds: UInt64 = 10
  /// The most bytes that wait for the bottleneck. A frame that finds more bytes waiting is dropped.
  var queueBytesMax = 65_536
  var lossPerThousand: UInt64 = 0
  var duplicatePerThousand: UInt64 = 0
  var reorderPerThousand: UInt64 = 0
  var reorderMilliseconds: UInt64 = 30
}

/// Two channels and a simulated path between them. The path has a bottleneck with a tail-drop queue, followed by a
/// delay. Each seed gives one reproducible run.
final class Network {
  private struct Flying {
    var arrival: Instant
    var order: UInt64
    var toA: Bool
    var type: PayloadType
    var bytes: [UInt8]
  }

  /// The length of a frame header in bytes. The path carries a header with each payload.
  static let frameHeaderBytes = 48

  var a: Channel
  var b: Channel
  var model: PathModel
  var random: SeededRandom
  private(set) var now = at(1_000)
  /// Called after every event, before the channels' frames are sent.
  var afterEvent: (Network) -> Void = { _ in }
  /// The longest time between two calls of `afterEvent`. After this time `afterEvent` is called even if no frame
  /// arrives and no timer expires.
  var applicationTick = TimeSpan.milliseconds(100)
  /// The errors that the channels have returned for received payloads.
  private(set) var refusals: [ChannelError] = []
  private(set) var framesCarried = 0
  private var flying: [Flying] = []
  private var order: UInt64 = 0
  private var freeAt = [Instant.zero, Instant.zero]
  private var buffer = [UInt8](repeating: 0, count: ChannelLimits.pathMTUMax)

  init(model: PathModel, seed: UInt64, pathMTU: Int = 1_400, settings: ChannelSettings = ChannelSettings()) {
    (a, b) = pair(pathMTU: pathMTU, settings: settings, now: at(1_000))
    self.model = model
    random = SeededRandom(seed: seed)
  }

  /// Runs until `end` or until `isDone` returns true, whichever comes first.
  func run(until end: Instant, isDone: () -> Bool = { false }) {
    handleTimeouts()
    drain()
    while !isDone() {
      let timer = min(a.nextDeadline, b.nextDeadline, now + applicationTick)
      let arrival = flying.first?.arrival ?? .never
      let next = min(timer, arrival)
      guard next < end else {
        now = max(now, end)
        return
      }
      now = max(now, next)
      if arrival <= timer { deliver(flying.removeFirst()) }
      handleTimeouts()
      drain()
    }
  }

  private func handleTimeouts() {
    a.handleTimeout(now: now)
    b.handleTimeout(now: now)
  }

  func drain() {
    afterEvent(self)
    take(from: a, toA: false)
    take(from: b, toA: true)
  }

  /// Drops all frames that are on their way.
  func cut() { flying.removeAll() }

  private func deliver(_ frame: Flying) {
    do throws(ChannelError) {
      try (frame.toA ? a : b).receive((frame.type, frame.bytes), now: now)
    } catch {
      refusals.append(error)
      guard case .otherDestinationEpoch(let meant) = error, frame.type == .segment else { return }
      let reset = Reset(meantEpoch: meant, currentEpoch: (frame.toA ? a : b).localEpoch)
      launch(.reset, encoded(Reset.byteCount) { reset.encode(into: $0) }, toA: !frame.toA)
    }
  }

  private func take(from channel: Channel, toA: Bool) {
    while let out = buffer.withUnsafeMutableBytes({ channel.nextFrame(into: $0, now: now) }) {
      launch(out.type, [UInt8](buffer[..<out.byteCount]), toA: toA)
    }
  }

  private func launch(_ type: PayloadType, _ bytes: [UInt8], toA: Bool) {
    framesCarried += 1
    let size = UInt64(bytes.count + Self.frameHeaderBytes)
    let direction = toA ? 1 : 0
    let start = max(freeAt[direction], now)
    let waiting = (start - now).nanoseconds / 1_000 * model.bitsPerSecond / 8_000_000
    guard waiting + size <= UInt64(model.queueBytesMax) else { return }
    freeAt[direction] = start + TimeSpan(nanoseconds: size * 8_000_000_000 / model.bitsPerSecond)
    guard !random.chance(perThousand: model.lossPerThousand) else { return }
    let copies = random.chance(perThousand: model.duplicatePerThousand) ? 2 : 1
    for _ in 0..<copies {
      var arrival = freeAt[direction] + .milliseconds(model.delayMilliseconds)
      if random.chance(perThousand: model.reorderPerThousand) {
        arrival = arrival + .milliseconds(random.below(model.reorderMilliseconds) + 1)
      }
      insert(Flying(arrival: arrival, order: order, toA: toA, type: type, bytes: bytes))
      order += 1
    }
  }

  private func insert(_ frame: Flying) {
    var index = flying.count
    while index > 0, flying[index - 1].arrival > frame.arrival { index -= 1 }
    flying.insert(frame, at: index)
  }
}
