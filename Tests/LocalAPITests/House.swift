import Channel
import LocalAPI
import Primitives
import SealSupport
import Session
import SessionSupport
import TestSupport

/// Nodes in one process, each with clients of its local API. There are no channels and no sockets. A message arrives at
/// the time of sending.
final class House {
  final class Box: LocalNode {
    let cryptography: StandInCryptography
    let sessions: Sessions
    private(set) var clients: ClientRecords!
    unowned let house: House
    let name: [UInt8]
    var told: [UInt8] = [0]
    /// The certificate chain that every other node has. The value is nil while the keys of the other nodes are not
    /// proved.
    var chain: [[UInt8]]? = []

    init(_ house: House, _ number: Int, _ restrictions: [LocalRestriction]) {
      self.house = house
      name = Array("box \(number)".utf8)
      cryptography = StandInCryptography(Identity(UInt64(number) + 1))
      let point = cryptography.identity.point
      sessions = Sessions(
        local: cryptography.identity.id, point: PublicPoint(InlineArray { point[$0] }), cryptography,
        seed: UInt64(number))
      clients = ClientRecords(self, restrictions: restrictions)
    }

    func peer(_ node: NodeID) -> LocalPeer? {
      guard let box = house.boxes.first(where: { $0.sessions.local == node }) else { return nil }
      return LocalPeer(name: box.name, hops: box === self ? 0 : 1, isVerified: false)
    }

    func certificates(of node: NodeID) -> [[UInt8]]? { chain }

    func endpoint(user: UInt32, type: [UInt8], instance: [UInt8]) -> UInt32 {
      MemberAddress.endpoint(user: user, type: type, instance: instance, cryptography)
    }

    func advertise(_ service: Service, now: Instant) throws(SessionError) { try sessions.advertise(service) }
    func withdraw(_ endpoint: UInt32, now: Instant) { sessions.withdraw(endpoint, now: now) }

    func send(
      _ data: [UInt8], in session: SessionHandle, to: MemberAddress, lane: Lane, now: Instant
    ) throws(SessionError) -> SessionMessageID {
      let hasRoom = house.hasRoom
      let (id, outputs) = try sessions.send(
        data, in: session, to: [to], lane: lane, now: now, canSend: { _, _, _ in hasRoom })
      for output in outputs { house.post(output, self) }
      return id
    }

    func sendUnreliably(
      _ data: [UInt8], in session: SessionHandle, to: MemberAddress, now: Instant
    ) throws(SessionError) {
      for output in try sessions.sendUnreliably(data, in: session, to: [to], now: now) { house.post(output, self) }
    }
  }

  private(set) var boxes: [Box] = []
  var now = Instant.zero + .seconds(1000)
  /// Whether the channels between the nodes accept messages of applications.
  var hasRoom = true

  init(_ count: Int, _ restrictions: [LocalRestriction] = []) {
    for number in 0..<count { boxes.append(Box(self, number, restrictions)) }
    for box in boxes {
      for other in boxes where other !== box { box.sessions.peerFound(other.sessions.local, epoch: 1, now: now) }
    }
  }

  func post(_ output: SessionOutput, _ from: Box) {
    guard let box = boxes.first(where: { $0.sessions.local == output.to }) else { return }
    try? box.sessions.receive(
      output.kind.rawValue, output.bytes.span.bytes, from: from.sessions.local, over: output.lane,
      now: now)
    if output.lane != nil { from.sessions.completed(output.tag, isDelivered: true, now: now) }
  }

  func settle() {
    var isQuiet = false
    while !isQuiet {
      isQuiet = true
      for box in boxes {
        let offers = box.sessions.servicesAdvertisement
        if offers != box.told {
          box.told = offers
          isQuiet = false
          for other in boxes where other !== box { other.sessions.peerServices(box.sessions.local, offers) }
        }
        while let output = box.sessions.nextOutput(now: now, canSend: { node, _, _ in node != box.sessions.local }) {
          isQuiet = false
          post(output, box)
        }
        while let event = box.sessions.nextEvent() {
          isQuiet = false
          box.clients.receive(event, now: now)
        }
      }
    }
  }

  func run(seconds: Int) {
    for _ in 0..<seconds * 10 {
      now = now + .milliseconds(100)
      for box in boxes {
        box.sessions.handleTimeouts(now: now)
        box.clients.handleTimeouts(now: now)
      }
      settle()
    }
  }
}

/// A client of the local API that reads only when the test reads.
final class Application {
  let house: House
  let box: House.Box
  let clientIndex: Int
  private var lastNumber: UInt32 = 0

  init(
    _ house: House, _ box: Int, user: UInt32 = 1000, isOperator: Bool = false, groups: [UInt32] = [],
    name: String = "test"
  ) {
    self.house = house
    self.box = house.boxes[box]
    clientIndex = self.box.clients.attach(user: user, isOperator: isOperator, groups: groups, now: house.now)!
    _ = ask(.hello(least: 1, most: 1, instance: Array(name.utf8)))
    _ = read()
  }

  func ask(_ request: LocalRequest.Body, number: UInt32? = nil) -> UInt32 {
    if number == nil { lastNumber += 1 }
    let number = number ?? lastNumber
    let packet = Array(LocalRequest(number, request).packet.dropFirst(4))
    box.clients.receive(packet.span.bytes, from: clientIndex, now: house.now)
    house.settle()
    return number
  }

  /// The bytes of the next event without its length field. Nil if no event is pending.
  func next() -> [UInt8]? {
    let packet = box.clients.nextPacket(for: clientIndex, now: house.now)
    house.settle()
    return packet.map { Array($0.dropFirst(4)) }
  }

  func read() -> [[UInt8]] {
    var events: [[UInt8]] = []
    while let event = next() { events.append(event) }
    return events
  }

  /// Reads all pending events. Returns the events of one type.
  func read(_ type: UInt8) -> [[UInt8]] { read().filter { $0[0] == type } }

  /// Sends a request and reads all pending events. Returns the outcome in the answer to the request, or nil without an
  /// answer.
  func outcome(_ request: LocalRequest.Body, number: UInt32? = nil) -> LocalOutcome? {
    let number = ask(request, number: number)
    for event in read() where event[0] == 128 && event.word(1) == number {
      return LocalOutcome(rawValue: event[5])
    }
    return nil
  }

  /// The address of this client's service with the given type.
  func address(_ type: String, name: String = "test", user: UInt32 = 1000) -> MemberAddress {
    MemberAddress(
      node: box.sessions.local,
      endpoint: box.endpoint(user: user, type: Array(type.utf8), instance: Array(name.utf8)))
  }

  /// The daemon's number of the first pending invitation. Reads all pending events. 0 if there is no invitation.
  func invitation() -> UInt32 { read(132).first?.word(5) ?? 0 }

  func open(_ type: String, _ rules: SessionRules = SessionRules()) -> UInt32 {
    let session = ask(.open(type: Array(type.utf8), rules))
    _ = ask(.window(session: session, limit: .max))
    return session
  }
}

extension [UInt8] {
  /// The 32-bit number at a byte offset of an event.
  func word(_ offset: Int) -> UInt32 { span.bytes.word32(offset) }
}
