import Channel
import Primitives
import Session
import Testing

@testable import SessionStories

@Suite struct SessionMessageTests {
  private func send(_ hall: Hall, _ number: Int, _ session: SessionHandle, _ data: [UInt8], to: [MemberAddress]? = nil)
    throws -> SessionMessageID
  {
    let message = try hall.stations[number].sessions.send(
      data, in: session, to: to, now: hall.now, canSend: { _, _, _ in true })
    for output in message.outputs { hall.post(output, from: hall.stations[number]) }
    return message.id
  }

  /// Each end sends a message and opens a stream as soon as it is notified that the member at the other end is
  /// connected.
  @Test func `a member is reported as connected before its first message or stream`() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      let hall = Hall(2, seed: seed)
      hall.delay = (1, 400)
      let sessions = (0..<2).map { hall.open($0) }
      _ = try hall.stations[0].sessions.invite(
        hall.stations[1].address, into: sessions[0], timeout: .seconds(20), now: hall.now)
      var invitation: Invitation?
      _ = hall.run(upTo: 5) {
        invitation = hall.invited(1)
        return invitation != nil
      }
      try hall.stations[1].sessions.accept(#require(invitation).handle, into: sessions[1], now: hall.now)
      var isConnected = [false, false], heard = 0
      _ = hall.run(upTo: 5) {
        for (number, station) in hall.stations.enumerated() {
          let other = hall.stations[1 - number].address
          for event in station.events {
            if case .member(_, _, .connected) = event {
              isConnected[number] = true
              _ = try? send(hall, number, sessions[number], [1], to: [other])
              _ = try? station.sessions.openStream([0x78], in: sessions[number], to: other, now: hall.now)
            }
            var isFromMember = false
            if case .message = event { isFromMember = true }
            if case .stream(_, .opened) = event { isFromMember = true }
            if isFromMember {
              #expect(isConnected[number], "seed \(seed)")
              heard += 1
            }
          }
          station.events = []
        }
        return heard == 4
      }
      #expect(heard == 4, "seed \(seed)")
    }
  }

  @Test func `a message to all members has a result for each member`() throws {
    let (hall, sessions) = joined(3)
    let id = try send(hall, 0, sessions[0], [7, 8])
    hall.run(seconds: 1)
    for number in 1..<3 {
      #expect(
        hall.stations[number].events.contains(.message(sessions[number], from: hall.stations[0].address, [7, 8])))
      #expect(hall.stations[0].events.contains(.sent(id, to: hall.stations[number].address, isDelivered: true)))
    }
  }

  @Test func `a single application may have 319 pending messages`() throws {
    let (hall, sessions) = joined(2)
    for _ in 0..<2 {
      var count = 0
      while (try? send(hall, 0, sessions[0], [1])) != nil { count += 1 }
      #expect(count == 319)
      hall.run(seconds: 1)
      for _ in 0..<count {
        hall.stations[1].sessions.taken(1, of: hall.stations[0].address, in: sessions[1], now: hall.now)
      }
      hall.run(seconds: 1)
    }
  }

  @Test func `a message to one member reaches no other member`() throws {
    let (hall, sessions) = joined(3)
    _ = try send(hall, 0, sessions[0], [1], to: [hall.stations[2].address])
    hall.run(seconds: 1)
    #expect(hall.stations[2].events.contains(.message(sessions[2], from: hall.stations[0].address, [1])))
    #expect(!hall.stations[1].events.contains(.message(sessions[1], from: hall.stations[0].address, [1])))
  }

  @Test func `a member whose application does not read is sent at most its share and one loan`() throws {
    let (hall, sessions) = joined(3)
    var counts: [Int] = []
    for _ in 0..<10 {
      counts.append(0)
      while (try? send(
        hall, 0, sessions[0], [UInt8](repeating: 0, count: 10_000), to: [hall.stations[1].address])) != nil
      {
        counts[counts.count - 1] += 1
      }
      hall.run(seconds: 1)
    }
    // The share of a member is 96 KiB. Beyond the member's share, the receiver grants a reservation of 65,192 bytes in
    // steps.
    #expect(counts == [9, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    // Messages to all other members still have credit.
    _ = try send(hall, 0, sessions[0], [1], to: [hall.stations[2].address])
    hall.stations[1].sessions.taken(10_000, of: hall.stations[0].address, in: sessions[1], now: hall.now)
    for _ in 0..<4 {
      hall.stations[1].sessions.taken(10_000, of: hall.stations[0].address, in: sessions[1], now: hall.now)
    }
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.stations[0].events.contains(.room(sessions[0], hall.stations[1].address)))
    _ = try send(hall, 0, sessions[0], [1], to: [hall.stations[1].address])
  }

  @Test func `a message to a member that becomes unreachable fails`() throws {
    let (hall, sessions) = joined(2)
    hall.stations[1].island = 1
    let id = try send(hall, 0, sessions[0], [1])
    hall.run(seconds: 1)
    #expect(hall.stations[0].events.contains(.sent(id, to: hall.stations[1].address, isDelivered: false)))
    #expect(throws: SessionError.unavailable) {
      try send(hall, 0, sessions[0], [1], to: [hall.stations[1].address])
    }
  }

  @Test func `two applications of one node share a session`() throws {
    let hall = Hall(2)
    let sessions = hall.stations[0].sessions
    try sessions.advertise(Service(endpoint: 2, type: Array("story".utf8)))
    let a = hall.open(0)
    let b = try sessions.open(2, SessionRules(), now: hall.now)
    let second = MemberAddress(node: hall.stations[0].id, endpoint: 2)
    _ = try sessions.invite(second, into: a, now: hall.now)
    hall.settle()
    let asked = try #require(hall.invited(0))
    try sessions.accept(asked.handle, into: b, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(sessions.members(of: a).map { $0.state } == [.connected])
    _ = try send(hall, 0, a, [5])
    hall.settle()
    #expect(hall.stations[0].events.contains(.message(b, from: hall.stations[0].address, [5])))
  }

  @Test func `a member whose application has not read for half a minute is shown as paused`() throws {
    let (hall, sessions) = joined(2)
    let reader = hall.stations[1].address
    _ = try send(hall, 0, sessions[0], [1])
    hall.run(seconds: 29)
    #expect(hall.stations[0].sessions.members(of: sessions[0]).map { $0.state } == [.connected])
    hall.run(seconds: 3)
    #expect(hall.stations[0].sessions.members(of: sessions[0]).map { $0.state } == [.paused])
    #expect(hall.stations[0].events.contains(.member(sessions[0], reader, .paused)))
    hall.stations[1].sessions.taken(1, of: hall.stations[0].address, in: sessions[1], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.stations[0].sessions.members(of: sessions[0]).map { $0.state } == [.connected])
  }

  @Test func `unread bytes still count after the members connect again`() throws {
    let (hall, sessions) = joined(2)
    var count = 0
    for _ in 0..<3 {
      while (try? send(hall, 0, sessions[0], [UInt8](repeating: 0, count: 10_000))) != nil { count += 1 }
      hall.run(seconds: 1)
      hall.stations[1].island = 1
      hall.run(seconds: 1)
      hall.stations[1].island = 0
      hall.run(seconds: 3)
      #expect(hall.view(0, sessions[0]) == [0, 1])
    }
    #expect(count == 9)
    for _ in 0..<9 {
      hall.stations[1].sessions.taken(10_000, of: hall.stations[0].address, in: sessions[1], now: hall.now)
    }
    hall.settle()
    hall.run(seconds: 1)
    _ = try send(hall, 0, sessions[0], [UInt8](repeating: 0, count: 60_000))
  }
}
