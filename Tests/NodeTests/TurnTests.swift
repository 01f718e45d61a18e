import Channel
import Node
import Primitives
import TestSupport
import Testing

/// Messages of several peers, and completions of sends to several peers, are handed over in turns.
@Suite struct TurnTests {
  @Test func `messages of two peers are read in turn`() throws {
    let bench = Bench()
    var partners = [Partner(bench, 1), Partner(bench, 2)]
    for index in partners.indices {
      for number in 0..<3 { try partners[index].say("\(index) \(number)") }
      bench.receive(partners[index].frames(), on: partners[index].slot)
    }
    #expect(read(bench) == ["0 0", "1 0", "0 1", "1 1", "0 2", "1 2"])
  }

  @Test func `a peer that sends without end leaves the others their turn`() throws {
    let bench = Bench()
    var loud = Partner(bench, 1), quiet = Partner(bench, 2)
    try loud.say("loud")
    bench.receive(loud.frames(), on: loud.slot)
    try quiet.say("quiet")
    bench.receive(quiet.frames(), on: quiet.slot)
    var read: [String] = []
    for _ in 0..<2 {
      // The loud peer sends another message before each read.
      try loud.say("loud")
      bench.receive(loud.frames(), on: loud.slot)
      read.append(String(decoding: bench.nextMessage()?.message.bytes ?? [], as: UTF8.self))
    }
    #expect(read.contains("quiet"))
  }

  @Test func `completions of two peers are taken in turn`() throws {
    let bench = Bench()
    var partners = [Partner(bench, 1), Partner(bench, 2)]
    for index in partners.indices {
      for _ in 0..<2 { try send("x", bench, to: partners[index].person) }
      _ = try partners[index].takeSent()
      while partners[index].channel.nextMessage() != nil {}
    }
    bench.now = bench.now + .milliseconds(50)
    bench.drains = false
    for index in partners.indices {
      partners[index].channel.handleTimeout(now: bench.now)
      bench.receive(partners[index].frames(), on: partners[index].slot)
    }
    bench.drains = true
    var peers: [NodeID] = []
    while let (peer, _) = bench.nextCompletion() { peers.append(peer) }
    #expect(peers.count == 4 && peers[0] != peers[1] && peers[1] != peers[2] && peers[2] != peers[3])
  }

  @Test func `unreliable messages of two peers are read in turn`() throws {
    let bench = Bench()
    var partners = [Partner(bench, 1), Partner(bench, 2)]
    bench.drains = false
    for index in partners.indices {
      for _ in 0..<2 { bench.receive(partners[index].unreliable("x"), on: partners[index].slot) }
    }
    bench.drains = true
    var peers: [NodeID] = []
    while let (peer, _) = bench.nextDatagram() { peers.append(peer) }
    #expect(peers.count == 4 && peers[0] != peers[1] && peers[1] != peers[2] && peers[2] != peers[3])
  }

  @Test func `the failures of sends are reported even if all channels are wanted by others`() throws {
    let bench = Bench(20)
    let crowd = Array(0..<Limits.channelsMax).map { Identity(UInt64(1000 + $0)) }
    let slot = bench.neighbour(1)
    bench.receivePaced(crowdTopologies(bench, crowd), on: slot)
    let text = [UInt8]("x".utf8)
    for identity in crowd {
      _ = try bench.node.send(kind: 3, text.span.bytes, to: identity.id, lane: .interactive, now: bench.now)
    }
    bench.handle(.linkClosed(slot))
    // Every send fails. A new peer sends a message before the failures are reported.
    bench.drains = false
    bench.pass(.seconds(120))
    var stranger = Partner(bench, 2)
    try stranger.say("me too")
    bench.receive(stranger.frames(), on: stranger.slot)
    bench.drains = true
    var ended: [NodeID] = []
    while let (peer, completion) = bench.nextCompletion() {
      #expect(completion.outcome == .failed(.timedOut))
      ended.append(peer)
    }
    #expect(ended.count == crowd.count && Set(ended) == Set(crowd.map(\.id)))
    // After the failures are reported, a channel is free for the new peer.
    try send("hello", bench, to: 2)
  }
}
