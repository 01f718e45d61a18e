import LocalAPI
import Primitives
import Session
import Testing

private let start = Instant.zero + .seconds(1000)
private let chat = Array("chat".utf8)

@Suite struct SignatureTurnsTests {
  @Test func `each wake-up carries out one request with signatures, for all users together`() {
    var turns = SignatureTurns()
    #expect(turns.turn(of: 1000, now: start) == .now)
    turns.spend(2, of: 1000, now: start)
    #expect(turns.turn(of: 1000, now: start) == .nextWakeUp)
    #expect(turns.turn(of: 1001, now: start) == .nextWakeUp)
    #expect(turns.turn(of: 1001, now: start + .milliseconds(1)) == .now)
  }

  @Test func `a request without signatures takes no turn`() {
    var turns = SignatureTurns()
    turns.spend(0, of: 1000, now: start)
    #expect(turns.turn(of: 1000, now: start) == .now)
  }

  @Test func `a user gets 64 signatures at once and then 20 per second`() {
    var turns = SignatureTurns()
    var count = 0
    for wakeUp in UInt64(1)...3_000 {
      let now = start + .milliseconds(wakeUp)
      guard turns.turn(of: 1000, now: now) == .now else { continue }
      turns.spend(1, of: 1000, now: now)
      count += 1
    }
    #expect((122...125).contains(count), "\(count)")
    let end = start + .milliseconds(3_000)
    let turn = turns.turn(of: 1000, now: end)
    #expect(turn != .now && turn != .nextWakeUp)
    #expect(turns.turn(of: 1000, now: end + .milliseconds(50)) == .now)
    // A client of another user does not wait for the turn of user 1000.
    #expect(turns.turn(of: 1001, now: end + .milliseconds(1)) == .now)
  }

  @Test func `all users together get 128 signatures at once and then 100 per second, in equal shares`() {
    var turns = SignatureTurns()
    var counts = [Int](repeating: 0, count: 10)
    for wakeUp in UInt64(1)...3_000 {
      let now = start + .milliseconds(wakeUp)
      let users = counts.indices.sorted { turns.order(of: UInt32($0) + 1000) < turns.order(of: UInt32($1) + 1000) }
      for user in users where turns.turn(of: UInt32(user) + 1000, now: now) == .now {
        turns.spend(1, of: UInt32(user) + 1000, now: now)
        counts[user] += 1
      }
    }
    #expect((425...430).contains(counts.reduce(0, +)), "\(counts)")
    #expect(counts.min()! >= 35, "\(counts)")
  }

  @Test func `requests that may sign wait for their turn, except those of the operator`() {
    let house = House(1)
    let clients = house.boxes[0].clients!
    let first = Application(house, 0), second = Application(house, 0, user: 1001)
    let root = Application(house, 0, user: 0, isOperator: true)
    #expect(first.outcome(.open(type: chat, SessionRules())) == .done)
    func turn(_ body: LocalRequest.Body, _ application: Application) -> SignatureTurns.Turn {
      let packet = LocalRequest(99, body).packet
      return clients.turn(of: packet.span.bytes.extracting(4...), from: application.clientIndex, now: house.now)
    }
    let address = MemberAddress(node: house.boxes[0].sessions.local, endpoint: 1)
    let signing: [LocalRequest.Body] = [
      .open(type: chat, SessionRules()), .invite(session: 1, address, milliseconds: 0, context: []),
      .connect(session: 1, address, milliseconds: 0), .answer(invitation: 1, into: 1, text: []),
      .leave(session: 1, text: []), .eject(session: 1, address, text: []),
    ]
    for body in signing {
      #expect(turn(body, second) == .nextWakeUp)
      #expect(turn(body, root) == .now)
    }
    #expect(turn(.browse(type: chat), second) == .now)
    #expect(turn(.window(session: 1, limit: 1), first) == .now)
  }

  @Test func `the only member of a session leaves it without a signature`() {
    let house = House(1)
    let client = Application(house, 0)
    let session = client.ask(.open(type: chat, SessionRules()))
    let before = house.boxes[0].sessions.signaturesMade
    #expect(before == 2)
    #expect(client.outcome(.leave(session: session, text: [])) == .done)
    #expect(house.boxes[0].sessions.signaturesMade == before)
  }
}
