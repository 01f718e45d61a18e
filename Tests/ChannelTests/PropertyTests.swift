import Channel
import Primitives
import Testing

/// The messages sent and received in one direction of one lane. Each run compares the channels with these values.
private struct Flow {
  var sent: [(id: MessageID, kind: UInt8, length: Int, seed: UInt64)] = []
  var received = 0
  var completed = 0
  var delivered = 0
}

private func content(_ length: Int, seed: UInt64) -> [UInt8] {
  var random = SeededRandom(seed: seed)
  var result = [UInt8](repeating: 0, count: length)
  var index = 0
  while index < length {
    var word = random.next()
    for _ in 0..<min(8, length - index) {
      result[index] = UInt8(truncatingIfNeeded: word)
      word >>= 8
      index += 1
    }
  }
  return result
}

private func messageLength(_ random: inout SeededRandom) -> Int {
  switch random.below(10) {
  case 0: 0
  case 1...5: Int(random.below(200))
  case 6...8: Int(random.below(6_000))
  default: Int(random.below(65_537))
  }
}

/// Plays one random run. Returns the first violation as text, or nil.
private func play(seed: UInt64) -> String? {
  var random = SeededRandom(seed: seed)
  var model = PathModel()
  model.bitsPerSecond = [200_000, 1_000_000, 20_000_000][Int(random.below(3))]
  model.delayMilliseconds = [1, 20, 200][Int(random.below(3))]
  model.queueBytesMax = [20_000, 65_536, 400_000][Int(random.below(3))]
  if random.below(2) == 0 { model.lossPerThousand = random.below(200) }
  if random.below(2) == 0 { model.duplicatePerThousand = random.below(200) }
  if random.below(2) == 0 { model.reorderPerThousand = random.below(300) }
  model.reorderMilliseconds = 1 + random.below(300)
  let isFlapping = random.below(3) == 0
  let readsSlowly = random.below(3) == 0
  var mtu = 128 + Int(random.below(2_000))
  var settings = ChannelSettings()
  settings.deliveryDeadline = .seconds(600)
  let network = Network(model: model, seed: random.next(), pathMTU: mtu, settings: settings)

  // Indices of `flows` and `toSend`: 0 is a→b interactive, 1 is a→b bulk, 2 is b→a interactive, 3 is b→a bulk.
  var flows = [Flow](repeating: Flow(), count: 4)
  var toSend = (0..<4).map { _ in Int(random.below(30)) }
  var problem: String?
  network.afterEvent = { network in
    guard problem == nil else { return }
    for index in 0..<4 {
      let (sender, receiver) = index < 2 ? (network.a, network.b) : (network.b, network.a)
      let lane = Lane(rawValue: UInt8(index & 1))!
      while toSend[index] > 0 {
        let message = (kind: UInt8(random.below(256)), length: messageLength(&random), seed: random.next())
        let can = sender.canSend(byteCount: message.length, lane: lane)
        do throws(SendError) {
          let id = try sender.send(
            content(message.length, seed: message.seed), kind: message.kind, lane: lane, now: network.now)
          if !can { problem = "send took what canSend denied" }
          flows[index].sent.append((id, message.kind, message.length, message.seed))
          toSend[index] -= 1
        } catch {
          if can || error != .full { problem = "send refused \(error) what canSend promised" }
          break
        }
      }
      while problem == nil, !readsSlowly || random.below(20) == 0 {
        guard let got = receiver.nextMessage(lane) else { break }
        guard flows[index].received < flows[index].sent.count else { return problem = "more arrived than was sent" }
        let want = flows[index].sent[flows[index].received]
        if got.kind != want.kind || got.bytes != content(want.length, seed: want.seed) {
          return problem = "message \(flows[index].received) of flow \(index) is not what was sent"
        }
        flows[index].received += 1
      }
    }
    for (channel, base) in [(network.a, 0), (network.b, 2)] {
      while let completion = channel.nextCompletion() {
        let index = base + Int(completion.lane.rawValue)
        guard flows[index].completed < flows[index].sent.count else { return problem = "a completion too many" }
        if completion.message != flows[index].sent[flows[index].completed].id {
          return problem = "completions out of order"
        }
        if completion.outcome != .delivered { return problem = "failed: \(completion.outcome)" }
        flows[index].completed += 1
      }
      for lane in Lane.allCases {
        let statistics = channel.statistics(lane)
        let ring = lane == .bulk ? ChannelLimits.bulkRingBytes : ChannelLimits.interactiveRingBytes
        if statistics.bytesInFlight > UInt64(ring) || statistics.windowBytes > UInt64(ring) {
          return problem = "more in flight than the ring holds"
        }
      }
      if channel.nextDeadline <= network.now { return problem = "a deadline that has passed" }
    }
  }
  func isDone() -> Bool {
    problem != nil
      || (0..<4).allSatisfy {
        toSend[$0] == 0 && flows[$0].received == flows[$0].sent.count && flows[$0].completed == flows[$0].sent.count
      }
  }
  // At first the path drops, duplicates and reorders frames. After this phase the path has no more faults, and every
  // message must arrive.
  var end = network.now
  for _ in 0..<20 where !isDone() {
    end = end + .milliseconds(200 + random.below(2_000))
    network.run(until: end, isDone: isDone)
    if isFlapping {
      network.a.routeLost()
      if random.below(2) == 0 { network.b.routeLost() }
      network.cut()
      end = end + .milliseconds(random.below(3_000))
      network.run(until: end, isDone: isDone)
      mtu = 128 + Int(random.below(2_000))
      network.a.routeChanged(pathMTU: mtu, now: network.now)
      network.b.routeChanged(pathMTU: 128 + Int(random.below(2_000)), now: network.now)
    }
  }
  network.model.lossPerThousand = 0
  network.run(until: end + .seconds(1_200), isDone: isDone)
  if problem == nil, !network.refusals.isEmpty { problem = "refused \(network.refusals[0])" }
  if problem == nil, !isDone() {
    let left = flows.map { "\($0.sent.count)/\($0.received)/\($0.completed)" }
    problem = "not finished after healing: sent/received/completed \(left), to send \(toSend)"
  }
  return problem
}

@Test(arguments: 0..<10) func `every message arrives once, whole and in order, over any path`(_ block: UInt64) {
  for seed in block * 30..<(block + 1) * 30 {
    if let problem = play(seed: seed) { Issue.record("seed \(seed): \(problem)") }
  }
}

/// Plays one random run in which both ends restart. No message may arrive twice or out of order, and every send must
/// end once.
private func playRestarts(seed: UInt64) -> String? {
  var random = SeededRandom(seed: seed)
  var model = PathModel()
  model.lossPerThousand = random.below(100)
  model.duplicatePerThousand = random.below(300)
  model.reorderPerThousand = random.below(300)
  model.reorderMilliseconds = 3_000
  let network = Network(model: model, seed: random.next(), pathMTU: 600)
  var problem: String?
  var epoch: UInt64 = 1_000
  var counter: UInt64 = 0
  var lastArrived = [UInt64](repeating: 0, count: 2)
  var open = Set<MessageID>()
  network.afterEvent = { network in
    if network.a.canSend(byteCount: 3_000, lane: .bulk), random.below(3) == 0 {
      counter += 1
      var message = content(Int(8 + random.below(2_000)), seed: counter)
      for index in 0..<8 { message[index] = UInt8(truncatingIfNeeded: counter >> UInt64(56 - 8 * index)) }
      if let id = try? network.a.send(message, lane: .bulk, now: network.now) { open.insert(id) }
    }
    while let got = network.b.nextMessage() {
      let number = got.bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      var want = content(got.bytes.count, seed: number)
      want.replaceSubrange(..<8, with: got.bytes[..<8])
      if want != got.bytes { problem = "message \(number) is damaged" }
      if number <= lastArrived[1] { problem = "message \(number) after \(lastArrived[1])" }
      lastArrived[1] = number
    }
    while let completion = network.a.nextCompletion() {
      if open.remove(completion.message) == nil { problem = "send \(completion.message.number) ended twice" }
    }
  }
  for _ in 0..<15 where problem == nil {
    network.run(until: network.now + .milliseconds(100 + random.below(1_500)), isDone: { problem != nil })
    epoch += 1
    if random.below(2) == 0 {
      // Channel b restarts. Channel a learns that later from a reset, or at once by `remoteRestarted`.
      network.b = Channel(localEpoch: epoch, remoteEpoch: network.a.localEpoch)
      network.b.routeChanged(pathMTU: 600, now: network.now)
      if random.below(2) == 0 { network.a.remoteRestarted(epoch: epoch) }
    } else {
      network.a = Channel(localEpoch: epoch, remoteEpoch: network.b.localEpoch)
      network.a.routeChanged(pathMTU: 600, now: network.now)
      network.b.remoteRestarted(epoch: epoch)
      open.removeAll()
    }
  }
  network.run(until: network.now + .seconds(5), isDone: { problem != nil })
  if problem == nil {
    // The path has no more faults, so new messages must arrive.
    network.model = PathModel()
    let before = lastArrived[1]
    network.run(until: network.now + .seconds(30), isDone: { problem != nil || lastArrived[1] > before + 20 })
    if problem == nil, lastArrived[1] <= before + 20 { problem = "nothing arrives after healing" }
  }
  return problem
}

@Test func `restarts neither duplicate nor reorder a message, and every send completes once`() {
  for seed: UInt64 in 0..<40 {
    if let problem = playRestarts(seed: seed) { Issue.record("seed \(seed): \(problem)") }
  }
}
