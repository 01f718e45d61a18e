import Channel
import Frame
import Journal
import Node
import Primitives
import Seal
import SealSupport
import Testing
import TestSupport

private let canary = "the canary sings at noon"

@Suite struct SealingTests {
  @Test func `a relay between two nodes sees no plaintext of their messages`() {
    let row = Row(3)
    row.say(canary, from: 0, to: 2)
    row.say(canary, from: 2, to: 0, .bulk)
    row.pass(.seconds(1))
    #expect(row.boxes[2].texts == [canary] && row.boxes[0].texts == [canary])
    #expect(row.boxes[0].outcomes == [.delivered] && row.boxes[2].outcomes == [.delivered])
    #expect(!row.wireContains("canary") && !row.wireContains("at noon"))
    #expect(row.boxes[1].node.counters.framesForwarded > 4 && row.boxes[1].texts == [])
  }

  @Test func `encrypted frames have the flag, and only handshakes are unencrypted`() {
    let row = Row(3)
    var types: [UInt8: UInt8] = [:]
    row.onTheWay = { _, header, payload in
      types[header.type] = header.flags
      return payload
    }
    row.say(canary, from: 0, to: 2)
    row.pass(.seconds(1))
    #expect(types == [FrameType.handshake.rawValue: 0, FrameType.sealed.rawValue: FrameHeader.sealed])
  }

  @Test func `a message is sent together with a pending acknowledgement`() throws {
    let row = Row(2)
    row.say(canary, from: 0, to: 1)
    row.pass(.seconds(1))
    var froms: [Int] = []
    row.onTheWay = { from, header, payload in
      if header.type == FrameType.sealed.rawValue { froms.append(from) }
      return payload
    }
    let bytes = [UInt8](canary.utf8)
    for from in 0...1 {
      _ = try row.boxes[from].node.send(
        kind: 9, bytes.span.bytes, to: row.boxes[1 - from].identity.id, lane: .interactive, now: row.now)
    }
    row.settle()
    // Three frames pass. Node 0 sends its message. Node 1 sends its message together with the acknowledgement of node
    // 0's message. Node 0 acknowledges the message of node 1.
    #expect(froms == [0, 1, 0])
    #expect(row.boxes[0].texts == [canary] && row.boxes[1].texts == [canary, canary])
  }

  @Test func `an unreliable message is encrypted, too`() throws {
    let row = Row(3)
    let bytes = [UInt8](canary.utf8)
    func send() throws(AssociationError) -> Bool {
      try row.boxes[0].node.sendUnreliable(
        kind: 9, bytes.span.bytes, to: row.boxes[2].identity.id, now: row.now)
    }
    // No sealed session exists yet, so the message is dropped and the handshake begins.
    #expect(try send() == false)
    row.pass(.seconds(1))
    #expect(try send() == true)
    row.settle()
    let got = try #require(row.boxes[2].datagrams.first)
    #expect(got.from == row.boxes[0].identity.id && got.datagram.kind == 9 && got.datagram.bytes == bytes)
    #expect(row.boxes[2].datagrams.count == 1)
    #expect(!row.wireContains("canary"))
  }

  @Test func `a server requests a session with both epochs and nothing else`() {
    let row = Row(3)
    var first: (FrameHeader, [UInt8])?
    row.onTheWay = { _, header, payload in
      if first == nil { first = (header, payload) }
      return nil
    }
    let server = row.boxes[0].identity.id < row.boxes[2].identity.id ? 2 : 0
    row.say(canary, from: server, to: 2 - server)
    #expect(first?.0.knownType == .handshake && first?.0.flags == 0 && first?.0.priority == .interactive)
    #expect(first?.1 == hex("0000000000000003 0000000000000003"))
  }

  @Test func `a long message is encrypted in pieces that fit every bearer`() {
    let row = Row(3, bearers: [.bluetoothLE, .ethernet])
    var longest = 0
    row.onTheWay = { _, _, payload in
      longest = max(longest, payload.count)
      return payload
    }
    row.say(String(repeating: "x", count: 60_000), from: 0, to: 2, .bulk)
    row.pass(.seconds(5))
    #expect(row.boxes[2].texts.map(\.utf8.count) == [60_000])
    #expect(longest <= 4096 && longest > 4000)
  }

  @Test func `each combination of encryption preferences has the documented result`() {
    let preferences: [EncryptionPreference] = [.none, .optional, .required]
    for left in preferences {
      for right in preferences {
        let row = Row(3) { number, settings in
          settings.encryption = number == 0 ? left : number == 2 ? right : .required
        }
        let refusal = row.say(canary, from: 0, to: 2)
        row.pass(.seconds(1))
        switch Set([left, right]) {
        case [.none, .required]:
          #expect(refusal == .refused(.preferences) && row.boxes[2].texts == [])
        case [.none], [.none, .optional]:
          #expect(row.boxes[2].texts == [canary] && row.wireContains("canary"))
        default:
          #expect(row.boxes[2].texts == [canary] && !row.wireContains("canary"))
        }
      }
    }
  }

  @Test func `an unencrypted frame is refused if encryption is due`() {
    let row = Row(3) { _, settings in settings.encryption = .optional }
    // The relay (node 1) forges a segment from node 0 to node 2.
    let made = frame(
      .segment, ttl: 9, priority: .interactive, to: row.boxes[2].identity.id, from: row.boxes[0].identity.id,
      identifier: 77, [UInt8](repeating: 0, count: 40))
    made.withUnsafeBytes { row.boxes[2].node.receive($0, on: row.boxes[2].slots[1]!, now: row.now) }
    #expect(row.boxes[2].node.counters.refusals[.inClear] == 1)
    // A frame in clear with the flag of sealed frames is malformed.
    made.with { $0[2] = 1 }.withUnsafeBytes {
      row.boxes[2].node.receive($0, on: row.boxes[2].slots[1]!, now: row.now)
    }
    #expect(row.boxes[2].node.counters.refusals[.malformed] == 1)
  }

  @Test func `frames that a relay alters are detected and not delivered`() {
    let row = Row(3)
    var random = SeededRandom(seed: 1)
    row.onTheWay = { from, header, payload in
      from == 1 && header.type == FrameType.sealed.rawValue && random.below(1000) < 150
        ? payload.with { $0[$0.count / 2] ^= 0x40 } : payload
    }
    for _ in 0..<20 { row.say(canary, from: 0, to: 2) }
    row.pass(.seconds(30))
    #expect(row.boxes[2].texts == [String](repeating: canary, count: 20))
    let noticed = row.boxes[0].node.counters.refusals[.notOpened] + row.boxes[2].node.counters.refusals[.notOpened]
    #expect(noticed > 0)
    #expect(row.boxes[0].node.counters.sessionsOpened < 4)
  }

  @Test func `frames that a relay replays are not delivered again`() {
    let row = Row(3)
    var identifier: UInt64 = 1 << 40
    row.onTheWay = { [unowned row] from, header, payload in
      guard from == 1 else { return payload }
      var again = header
      identifier += 1
      again.identifier = identifier
      let to = header.destination == row.boxes[2].identity.id ? 2 : 0
      let bytes = encoded { output in again.write(to: &output) } + payload
      bytes.withUnsafeBytes { row.boxes[to].node.receive($0, on: row.boxes[to].slots[1]!, now: row.now) }
      return payload
    }
    for number in 0..<10 { row.say("text \(number)", from: 0, to: 2) }
    row.pass(.seconds(10))
    #expect(row.boxes[2].texts == (0..<10).map { "text \($0)" })
    #expect(row.boxes[2].node.counters.refusals[.notOpened] > 0)
  }

  @Test func `a handshake completes on a path that loses a fifth of its frames`() {
    for seed in 1...20 as ClosedRange<UInt64> {
      let row = Row(4)
      var random = SeededRandom(seed: seed)
      row.onTheWay = { _, _, payload in random.below(1000) < 70 ? nil : payload }
      row.say(canary, from: seed % 2 == 0 ? 0 : 3, to: seed % 2 == 0 ? 3 : 0)
      row.pass(.seconds(40))
      #expect(row.boxes[seed % 2 == 0 ? 3 : 0].texts == [canary], "seed \(seed)")
    }
  }

  @Test func `a restart of either end during a handshake is survived`() {
    for victim in [0, 2] {
      let row = Row(3)
      var handshakes = 0
      row.onTheWay = { _, header, payload in
        if header.type == FrameType.handshake.rawValue { handshakes += 1 }
        return handshakes > 5 ? nil : payload
      }
      row.say("lost or not", from: 0, to: 2)
      #expect(handshakes > 5)
      row.restart(victim)
      row.onTheWay = { _, _, payload in payload }
      row.pass(.seconds(5))
      row.say(canary, from: 0, to: 2)
      row.say(canary, from: 2, to: 0)
      row.pass(.seconds(20))
      #expect(row.boxes[2].texts.last == canary && row.boxes[0].texts.last == canary)
    }
  }

  @Test(arguments: [0, 2], [EncryptionPreference.required, .none])
  func `messages to a peer that lost its epoch counter are delivered once its former epoch expires`(
    _ victim: Int, _ preference: EncryptionPreference
  ) {
    let row = Row(3) { _, settings in settings.encryption = preference }
    row.say("before", from: 0, to: 2)
    row.say("before", from: 2, to: 0)
    row.pass(.seconds(5))
    row.restart(victim, epochStep: -1)
    row.pass(.seconds(900))
    // The messages after the restart can fail, but each end learns from them that the other end has a new channel.
    row.say("finds out", from: 0, to: 2)
    row.say("finds out", from: 2, to: 0)
    row.pass(.seconds(5))
    row.say(canary, from: 0, to: 2)
    row.say(canary, from: 2, to: 0)
    row.pass(.seconds(20))
    #expect(row.boxes[2].texts.last == canary && row.boxes[0].texts.last == canary)
  }

  @Test func `a handshake of a former epoch is refused`() {
    let row = Row(3)
    var first: (to: Int, FrameHeader, [UInt8])?
    row.onTheWay = { from, header, payload in
      if first == nil, header.type == FrameType.handshake.rawValue, payload.count > 16, from != 1 {
        first = (2 - from, header, payload)
      }
      return payload
    }
    row.say(canary, from: 0, to: 2)
    row.pass(.seconds(5))
    guard let (victim, header, payload) = first else {
      Issue.record("no handshake")
      return
    }
    row.restart(victim)
    row.pass(.seconds(5))
    let before = row.boxes[victim].node.counters.refusals[.stale]
    let bytes = encoded { output in header.write(to: &output) } + payload
    bytes.withUnsafeBytes { row.boxes[victim].node.receive($0, on: row.boxes[victim].slots[1]!, now: row.now) }
    #expect(row.boxes[victim].node.counters.refusals[.stale] == before + 1)
  }

  @Test func `a frame that was encrypted for a former epoch is refused`() {
    let row = Row(3)
    var last: (FrameHeader, [UInt8])?
    row.onTheWay = { _, header, payload in
      if header.type == FrameType.sealed.rawValue, header.source == row.boxes[0].identity.id {
        last = (header, payload)
      }
      return payload
    }
    row.say(canary, from: 0, to: 2)
    row.pass(.seconds(5))
    row.restart(2)
    row.pass(.seconds(5))
    guard let (header, payload) = last else {
      Issue.record("nothing was sealed")
      return
    }
    let before = row.boxes[2].node.counters.refusals[.notOpened]
    let bytes = encoded { output in header.write(to: &output) } + payload
    bytes.withUnsafeBytes { row.boxes[2].node.receive($0, on: row.boxes[2].slots[1]!, now: row.now) }
    #expect(row.boxes[2].node.counters.refusals[.notOpened] == before + 1 && row.boxes[2].texts == [])
    row.say("again", from: 0, to: 2)
    row.pass(.seconds(5))
    #expect(row.boxes[2].texts == ["again"])
  }

  @Test func `the first message to a node that has removed its channel arrives`() {
    let row = Row(3) { number, settings in settings.asksApplication = number == 0 }
    let ids = row.boxes.map(\.identity.id)
    // Node 0 refuses node 1, and the message to node 1 fails. After the refusal node 0 removes its channel to node 1.
    row.say("refused", from: 0, to: 1)
    row.boxes[0].node.decide(ids[1], isAccepted: false, now: row.now)
    row.pass(.seconds(61))
    row.say("begins again", from: 0, to: 1)
    row.say(canary, from: 2, to: 0)
    row.boxes[0].node.decide(ids[2], isAccepted: true, now: row.now)
    row.pass(.seconds(5))
    #expect(row.boxes[0].texts == [canary] && row.boxes[2].outcomes == [.delivered])
  }

  @Test func `a flood of hellos creates no sessions`() {
    let row = Row(3)
    let server = row.boxes[0].identity.id < row.boxes[2].identity.id ? 2 : 0
    let client = 2 - server
    let epochs: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3]
    for number in 0..<1000 as Range<UInt64> {
      let hello = StandInSession.hello(random: number)
      let bytes = frame(
        .handshake, ttl: 9, priority: .interactive, to: row.boxes[server].identity.id,
        from: row.boxes[client].identity.id, identifier: 1 << 50 | number, epochs + hello)
      bytes.withUnsafeBytes { row.boxes[server].node.receive($0, on: row.boxes[server].slots[1]!, now: row.now) }
      row.settle()
    }
    #expect(row.boxes[server].cryptography.sessionCount == 0)
    row.say(canary, from: client, to: server)
    row.pass(.seconds(2))
    #expect(row.boxes[server].texts == [canary])
  }

  @Test func `the application decides before any message is exchanged`() {
    let row = Row(3) { number, settings in settings.asksApplication = number == 2 }
    row.say(canary, from: 0, to: 2)
    row.pass(.seconds(10))
    #expect(row.boxes[2].texts == [])
    let asked = row.boxes[2].asked
    #expect(asked.map(\.peer) == [row.boxes[0].identity.id] && asked.first?.chain == [row.boxes[0].identity.point])
    row.boxes[2].node.decide(row.boxes[0].identity.id, isAccepted: true, now: row.now)
    row.pass(.seconds(5))
    #expect(row.boxes[2].texts == [canary])
  }

  @Test func `a message to a peer that rejects this node fails with the reason`() {
    let row = Row(3) { number, settings in settings.asksApplication = number == 2 }
    row.say(canary, from: 0, to: 2)
    row.pass(.seconds(1))
    row.boxes[2].node.decide(row.boxes[0].identity.id, isAccepted: false, now: row.now)
    row.pass(.seconds(1))
    #expect(row.boxes[0].outcomes == [.failed(.closed)])
    #expect(row.say("again", from: 0, to: 2) == .refused(.rejected))
    // When the refusal is over, the application of node 2 is asked again.
    row.pass(SealLimits.refusedTime)
    #expect(row.say("again", from: 0, to: 2) == nil)
    row.pass(.seconds(1))
    row.boxes[2].node.decide(row.boxes[0].identity.id, isAccepted: true, now: row.now)
    row.pass(.seconds(5))
    #expect(row.boxes[2].texts == ["again"])
  }

  @Test func `a peer whose key was revoked before any exchange receives nothing`() {
    let revocation = Revocation()
    let row = Row(3, trust: [0: revocation])
    revocation.revoked = row.boxes[2].identity.id
    row.boxes[0].node.trustChanged(now: row.now)
    row.settle()
    #expect(row.say("hello", from: 0, to: 2) == .refused(.rejected))
    row.pass(.seconds(1))
    #expect(row.boxes[2].texts == [])
  }

  @Test func `a peer whose key is revoked receives nothing more`() {
    let revocation = Revocation()
    let row = Row(3, trust: [0: revocation])
    row.say("before", from: 0, to: 2)
    row.pass(.seconds(1))
    #expect(row.boxes[2].texts == ["before"])
    revocation.revoked = row.boxes[2].identity.id
    row.boxes[0].node.trustChanged(now: row.now)
    row.settle()
    #expect(row.say("after", from: 0, to: 2) == .refused(.rejected))
    row.say("from the revoked", from: 2, to: 0)
    row.pass(.seconds(5))
    #expect(row.boxes[0].texts == [] && row.boxes[2].texts == ["before"])
  }
}
