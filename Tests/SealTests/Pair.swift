import Frame
import Primitives
import Seal
import SealSupport
import Testing
import TestSupport

let required = TopologyFlags(relays: true, encryption: .required)
let optional = TopologyFlags(relays: true, encryption: .optional)

/// A client and a server, and a path between these ends that the test controls. Each end has a seal: the state of its
/// encrypted sessions.
final class Pair {
  final class End {
    let seal: Seal
    let cryptography: StandInCryptography
    var events: [SealEvent] = []
    var received: [[UInt8]] = []
    var notOpened = 0
    var channelEpochHeard: UInt64?

    init(_ seal: Seal, _ cryptography: StandInCryptography) {
      self.seal = seal
      self.cryptography = cryptography
    }
  }

  var client: End
  var server: End
  var now = Instant.zero + .seconds(1000)
  var random: SeededRandom
  var lossPerThousand: UInt64 = 0
  /// Inspects every frame. Returns its payload, changed or unchanged, or nil to drop the frame. The type is 36
  /// (handshake) or 37 (sealed).
  var onTheWay: (_ fromClient: Bool, _ type: UInt8, [UInt8]) -> [UInt8]? = { _, _, payload in payload }

  init(
    seed: UInt64 = 1, clientFlags: (own: TopologyFlags, seen: TopologyFlags) = (required, required),
    serverFlags: (own: TopologyFlags, seen: TopologyFlags) = (required, required),
    lifetime: SessionLifetime = SessionLifetime(), asks: Bool = false,
    epochs: (client: UInt64, server: UInt64) = (5, 9),
    known: (client: UInt64, server: UInt64)? = nil
  ) {
    let people = [Identity(1), Identity(2)].sorted { $0.id < $1.id }
    let known = known ?? epochs
    client = End(
      Seal(
        local: people[0].id, peer: people[1].id, localEpoch: epochs.client, peerEpoch: known.server,
        ownFlags: clientFlags.own, peerFlags: serverFlags.seen, lifetime: lifetime), StandInCryptography(people[0]))
    server = End(
      Seal(
        local: people[1].id, peer: people[0].id, localEpoch: epochs.server, peerEpoch: known.client,
        ownFlags: serverFlags.own, peerFlags: clientFlags.seen, lifetime: lifetime, asksApplication: asks),
      StandInCryptography(people[1]))
    random = SeededRandom(seed: seed)
  }

  func other(_ end: End) -> End { end === client ? server : client }

  private func receive(_ payload: [UInt8], _ type: UInt8, at end: End) {
    if type == 37 {
      var plaintext = [UInt8](repeating: 0, count: payload.count)
      let opened = plaintext.withUnsafeMutableBytes { end.seal.open(payload.span.bytes, into: $0, now: now) }
      switch opened {
      case .payload(_, let count): end.received.append([UInt8](plaintext[1..<1 + count]))
      case .hello(let epoch): end.channelEpochHeard = epoch ?? end.channelEpochHeard
      case nil:
        end.notOpened += 1
        end.seal.noteUndecryptable(now: now)
      }
      return
    }
    let datagram = [UInt8](payload[16...])
    if datagram.isEmpty { return end.seal.noteUndecryptable(now: now) }
    var reply = [UInt8](repeating: 0, count: 2048)
    let name = end.seal.sessionName
    let answer =
      name.isClient
      ? .refused
      : reply.withUnsafeMutableBytes { end.cryptography.answerHello(datagram.span.bytes, name, reply: $0, now: now) }
    switch answer {
    case .refused: _ = end.seal.receiveHandshake(datagram.span.bytes, now: now)
    case .reply(let count): carry([UInt8](repeating: 0, count: 16) + reply[..<count], 36, from: end)
    case .accepted:
      if end.seal.receiveAgain(datagram.span.bytes, now: now) { return }
      if end.seal.mayAccept(now: now), let made = end.cryptography.acceptSession(datagram.span.bytes, name, now: now) {
        end.seal.accept(made, now: now)
      }
    }
  }

  private func carry(_ payload: [UInt8], _ type: UInt8, from end: End) {
    if random.below(1000) < lossPerThousand { return }
    if let payload = onTheWay(end === client, type, payload) { receive(payload, type, at: other(end)) }
  }

  /// Does steps 1 to 3 of the drain rule, in the comment of `Seal`, at one end. Returns true if a frame was sent.
  private func drain(_ end: End) -> Bool {
    if end.seal.needsSession(now: now) {
      end.seal.begin(end.cryptography.beginSession(end.seal.sessionName, now: now), now: now)
    }
    var buffer = [UInt8](repeating: 0, count: 2048)
    var hasMoved = false
    while let frame = buffer.withUnsafeMutableBytes({ end.seal.nextFrame(into: $0, now: now) }) {
      hasMoved = true
      switch frame {
      case .handshake(let count): carry([UInt8](buffer[..<count]), 36, from: end)
      case .sealed(let count): carry([UInt8](buffer[..<count]), 37, from: end)
      }
    }
    while let event = end.seal.nextEvent() { end.events.append(event) }
    return hasMoved
  }

  func settle() {
    for _ in 0..<200 {
      let hasMoved = drain(client)
      if !drain(server) && !hasMoved { return }
    }
    Issue.record("two seals keep each other busy")
  }

  func pass(_ span: TimeSpan) {
    let end = now + span
    settle()
    var steps = 0
    while true {
      let next = min(client.seal.nextDeadline(hasRoute: true), server.seal.nextDeadline(hasRoute: true))
      if next > end { break }
      now = max(now, next)
      for side in [client, server] { side.seal.handleTimeout(now: now) }
      settle()
      steps += 1
      if steps == 5000 {
        Issue.record("a deadline that does not go away")
        break
      }
    }
    now = end
  }

  func say(_ text: [UInt8], from end: End) {
    var record = [UInt8](repeating: 0, count: text.count + 1 + SealLimits.overheadBytesMax)
    let plaintext = [32] + text
    let count = record.withUnsafeMutableBytes { record in
      plaintext.withUnsafeBytes { end.seal.seal($0, into: record) }
    }
    if count > 0 { carry([UInt8](record[..<count]), 37, from: end) }
  }

  var areOpen: Bool { client.seal.isOpen && server.seal.isOpen }

  static func open(_ lifetime: SessionLifetime = SessionLifetime()) throws -> Pair {
    let pair = Pair(lifetime: lifetime)
    pair.client.seal.isWanted = true
    pair.settle()
    try #require(pair.areOpen)
    return pair
  }
}
