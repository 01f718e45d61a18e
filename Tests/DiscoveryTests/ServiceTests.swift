import Bearer
import CAvahi
import Primitives
import Reactor
import Testing

@testable import Discovery

/// Records the calls of the discovery's delegate.
final class Listener: BearerDelegate {
  var present: [Candidate] = []
  var foundCount = 0
  var lostCount = 0
  var reports: [String] = []

  func bearerFound(_ candidate: Candidate) {
    foundCount += 1
    #expect(!present.contains(candidate), "reported twice")
    present.append(candidate)
  }
  func bearerLost(_ candidate: Candidate) {
    lostCount += 1
    #expect(present.contains { $0.leads(whereLeads: candidate) }, "lost without being found")
    present.removeAll { $0.leads(whereLeads: candidate) }
  }
  func bearerReport(_ source: StaticString, _ text: String, isFault: Bool) { reports.append(text) }
  func bearerOpened(_ stream: StreamHandoff) { Issue.record("discovery opens no streams") }
  func bearerDialFailed(token: UInt32, reason: String) { Issue.record("discovery dials nobody") }
}

/// A responder that reports services which the test specifies.
private final class ScriptedResponder: Responder {
  let isReady = true
  let owner: any ResponderOwner
  var lookups = 0
  var browsedAgain = 0
  var canLookUp = true
  var open: [ServiceKey] = []

  init(_ owner: any ResponderOwner) { self.owner = owner }
  func activate(_ settings: DiscoverySettings) {}
  func updateTXT(_ settings: DiscoverySettings) {}
  func browseAgain(_ settings: DiscoverySettings) { browsedAgain += 1 }
  func lookUp(_ service: Service, _ settings: DiscoverySettings) -> Bool {
    lookups += 1
    service.responder = self
    if canLookUp { open.append(service.key) }
    return canLookUp
  }
  func endLookup(_ service: Service) {
    service.responder = nil
    open.removeAll { $0 == service.key }
  }
  func close() {}
}

/// The networks of the machine. Unless the test changes the networks, every interface except loopback is on
/// 10.0.0.0/24.
private final class Networks {
  var prefix: UInt64 = 0xFFFF_0A00_0000
  func isOnLink(_ endpoint: IPEndpoint, _ interface: UInt32) -> Bool {
    interface == 1 || endpoint.high == 0 && endpoint.low & ~0xFF == prefix
  }
}

/// A discovery that is not started. Instead of sockets or a daemon the discovery has a scripted responder.
private final class Stage {
  let loop: EventLoop
  let listener = Listener()
  let discovery: DNSServiceDiscovery
  let responder: ScriptedResponder
  let networks = Networks()

  init() throws {
    loop = try EventLoop()
    let settings = DiscoverySettings(node: NodeID(high: 1, low: 2), port: 7777, displayName: "box")
    discovery = DNSServiceDiscovery(
      loop, settings, hint: 1, bearerKind: { $0 == 1 ? .loopback : .ethernet },
      isOnLink: { [networks] in networks.isOnLink($0, $1) }, listener)
    responder = ScriptedResponder(discovery)
    discovery.take(responder, .embedded)
  }

  static func key(_ number: Int, interface: CInt = 2, networkProtocol: Int = Int(AVAHI_PROTO_INET)) -> ServiceKey {
    let name = hexadecimal(NodeID(high: UInt64(number), low: 0))
    return ServiceKey(interface: interface, networkProtocol: CInt(networkProtocol), name: Array(name.utf8))
  }

  func find(_ key: ServiceKey) -> Service? {
    discovery.responderFound(responder, key)
    return discovery.table.find(key)
  }

  /// Starts a look-up of `service`, as the discovery does when the service's turn has come.
  func lookUp(_ service: Service) {
    service.phase = .lookingUp
    _ = responder.lookUp(service, DiscoverySettings(node: NodeID(high: 1, low: 2), port: 7777, displayName: "box"))
  }

  func answer(_ service: Service, _ address: UInt64, port: UInt16 = 7777, hint: UInt64? = nil) {
    let endpoint = IPEndpoint(high: 0, low: 0xFFFF_0000_0000 | address, port: port, scope: 0)
    discovery.responderLookedUp(responder, service, endpoint, NodeRecord(hint: hint))
  }
}

struct ServiceTests {
  @Test func `a service becomes a candidate with the hint of its name and is lost with it`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(0xABCD)))
    stage.answer(service, 0x0A000001)
    let endpoint = IPEndpoint(high: 0, low: 0xFFFF_0A00_0001, port: 7777, scope: 0)
    #expect(stage.listener.present == [Candidate(bearer: .ethernet, address: .ip(endpoint), hint: 0xABCD, domain: 2)])
    stage.discovery.responderLost(stage.responder, service.key)
    #expect(stage.listener.present.isEmpty)
    #expect(stage.discovery.serviceCount == 0)
  }

  @Test func `a node's own service is not reported, whether found by name or by TXT record`() throws {
    let stage = try Stage()
    #expect(stage.find(Stage.key(1)) == nil)
    var named = Stage.key(9)
    named.name = Array("box".utf8)
    let service = try #require(stage.find(named))
    stage.answer(service, 0x0A000001, hint: 1)
    #expect(stage.listener.present.isEmpty)
  }

  @Test func `a name that is no id gets its hint from the TXT record`() throws {
    let stage = try Stage()
    var named = Stage.key(9)
    named.name = Array("phone".utf8)
    stage.answer(try #require(stage.find(named)), 0x0A000001, hint: 77)
    #expect(stage.listener.present.first?.hint == 77)
  }

  @Test func `two services at one address are one candidate until both are gone`() throws {
    let stage = try Stage()
    let first = try #require(stage.find(Stage.key(5, interface: 2)))
    let second = try #require(stage.find(Stage.key(5, interface: 3)))
    stage.answer(first, 0x0A000001)
    stage.answer(second, 0x0A000001)
    #expect(stage.listener.foundCount == 1)
    stage.discovery.responderLost(stage.responder, first.key)
    #expect(stage.listener.lostCount == 0)
    stage.discovery.responderLost(stage.responder, second.key)
    #expect(stage.listener.lostCount == 1)
  }

  @Test func `a service that moves is lost at its old address and found at the new one`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(5)))
    stage.answer(service, 0x0A000001)
    stage.answer(service, 0x0A000001)
    stage.answer(service, 0x0A000002)
    #expect(stage.listener.foundCount == 2)
    #expect(stage.listener.lostCount == 1)
  }

  @Test func `a look-up ends with its answer`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(5)))
    stage.lookUp(service)
    #expect(stage.responder.open == [service.key])
    stage.answer(service, 0x0A000001)
    #expect(stage.responder.open.isEmpty && service.phase == .known && stage.listener.present.count == 1)
  }

  @Test func `a service that does not answer a dial is looked up again and found at its new address`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(5)))
    stage.lookUp(service)
    stage.answer(service, 0x0A000001)
    stage.discovery.dialFailed(try #require(service.candidate))
    #expect(service.phase == .waiting && stage.listener.present.count == 1, "it stays until the answer")
    stage.lookUp(service)
    stage.answer(service, 0x0A000002)
    #expect(stage.listener.lostCount == 1 && stage.listener.foundCount == 2)
  }

  @Test func `a failed dial to another address starts no look-up`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(5)))
    stage.answer(service, 0x0A000001)
    let other = IPEndpoint(high: 0, low: 0xFFFF_0A00_0009, port: 7777, scope: 0)
    stage.discovery.dialFailed(Candidate(bearer: .ethernet, address: .ip(other), hint: 5, domain: 2))
    #expect(service.phase == .known)
  }

  @Test func `a loopback address is valid on the loopback interface only`() throws {
    let stage = try Stage()
    stage.answer(try #require(stage.find(Stage.key(5, interface: 2))), 0x7F000001)
    #expect(stage.listener.present.isEmpty)
    stage.answer(try #require(stage.find(Stage.key(5, interface: 1))), 0x7F000001)
    #expect(stage.listener.present.map(\.bearer) == [.loopback])
  }

  @Test func `two thousand names use 256 entries and one log line, and the last ones are kept`() throws {
    let stage = try Stage()
    for number in 2..<2_002 { stage.discovery.responderFound(stage.responder, Stage.key(number)) }
    #expect(stage.discovery.serviceCount == ServiceTable.servicesMax)
    #expect(stage.discovery.table.refusals == 2_000 - ServiceTable.servicesMax)
    #expect(stage.discovery.table.find(Stage.key(2_001)) != nil)
    #expect(stage.listener.reports.count == 1)
    for number in 2..<2_002 { stage.discovery.responderLost(stage.responder, Stage.key(number)) }
    #expect(stage.discovery.serviceCount == 0)
  }

  @Test func `a full table evicts a service that does not answer in favour of a newcomer`() throws {
    let stage = try Stage()
    for number in 2..<2 + ServiceTable.servicesMax { _ = stage.find(Stage.key(number)) }
    let silent = try #require(stage.discovery.table.find(Stage.key(40)))
    stage.discovery.responderLookedUp(stage.responder, silent, nil, NodeRecord())
    #expect(stage.find(Stage.key(9999)) != nil)
    #expect(stage.discovery.table.find(silent.key) == nil)
    #expect(stage.listener.present.isEmpty)
  }

  /// Fills the table with services at `hosts` addresses of one network. Each service is a candidate.
  private func filled(_ stage: Stage, count: Int = ServiceTable.servicesMax, hosts: UInt64 = 256) throws -> [Service] {
    try (0..<count).map { number in
      let service = try #require(stage.find(Stage.key(number + 2)))
      stage.answer(service, 0x0A00_0000 | UInt64(number) % hosts, port: UInt16(1000 + number))
      return service
    }
  }

  @Test func `a newcomer evicts a service that did not answer a dial, and its candidate is lost`() throws {
    let stage = try Stage()
    let services = try filled(stage)
    let lost = try #require(services[77].candidate)
    stage.discovery.dialFailed(lost)
    #expect(stage.find(Stage.key(9999)) != nil)
    #expect(stage.discovery.table.find(services[77].key) == nil)
    #expect(!stage.listener.present.contains(lost) && stage.listener.present.count == ServiceTable.servicesMax - 1)
  }

  @Test func `among undialled services, the oldest one of the machine with the most services is evicted`()
    throws
  {
    let stage = try Stage()
    // Fifty machines have five services each, and one of these machines gets three more. Three further services have no
    // address.
    let services = try filled(stage, count: 250, hosts: 50)
    for number in 0..<3 {
      stage.answer(try #require(stage.find(Stage.key(5000 + number))), 0x0A00_0009, port: UInt16(1 + number))
      _ = stage.find(Stage.key(6000 + number))
    }
    #expect(stage.find(Stage.key(9999)) != nil)
    #expect(stage.discovery.table.find(services[9].key) == nil)
    #expect(stage.discovery.serviceCount == ServiceTable.servicesMax)
  }

  /// Fills the table with services where nodes have proved their keys. The first four machines have eight services
  /// each, the others seven.
  private func proven(_ stage: Stage) throws -> [Service] {
    let services = try filled(stage, hosts: 36)
    for service in services {
      let candidate = try #require(service.candidate)
      stage.discovery.proved(candidate.address, hint: candidate.hint)
      stage.discovery.dialFailed(candidate)
    }
    #expect(services.allSatisfy { $0.isProven })
    return services
  }

  @Test func `in a table of proven services, the machine with the most loses its oldest one to a newcomer`() throws {
    let stage = try Stage()
    let services = try proven(stage)
    #expect(stage.find(Stage.key(9999)) != nil)
    let evicted = services.indices.filter { stage.discovery.table.find(services[$0].key) == nil }
    #expect(evicted.count == 1 && evicted[0] < 4)
    #expect(stage.discovery.serviceCount == ServiceTable.servicesMax)
  }

  @Test func `a flood of names evicts at most one proven service`() throws {
    let stage = try Stage()
    let services = try proven(stage)
    for number in 10_000..<10_500 { #expect(stage.find(Stage.key(number)) != nil) }
    #expect(services.count { stage.discovery.table.find($0.key) == nil } == 1)
  }

  @Test func `an incoming dial proves only the node's service at that machine`() throws {
    let stage = try Stage()
    let real = try #require(stage.find(Stage.key(7))), false1 = try #require(stage.find(Stage.key(7, interface: 3)))
    let other = try #require(stage.find(Stage.key(8)))
    stage.answer(real, 0x0A00_0001)
    stage.answer(false1, 0x0A00_0002)
    stage.answer(other, 0x0A00_0001, port: 9)
    stage.discovery.proved(.ip(IPEndpoint(high: 0, low: 0xFFFF_0A00_0001, port: 55_555, scope: 0)), hint: 7)
    #expect(real.isProven && !false1.isProven && !other.isProven)
    stage.answer(real, 0x0A00_0003)
    #expect(!real.isProven, "another machine")
  }

  @Test func `a key keeps one slot, however many names lead to it`() throws {
    let stage = try Stage()
    let endpoint = IPEndpoint(high: 0, low: 0xFFFF_0A00_0001, port: 7777, scope: 0)
    for number in 0..<ServiceTable.servicesMax {
      var key = Stage.key(0)
      // Half of the service names contain the node's hint, and the other half do not.
      let name = hexadecimal(NodeID(high: 7, low: UInt64(number)))
      key.name = Array((number % 2 == 0 ? name : "name \(number)").utf8)
      stage.answer(try #require(stage.find(key)), 0x0A00_0001)
    }
    stage.discovery.proved(.ip(endpoint), hint: 7)
    #expect(stage.discovery.table.services.count { $0.isProven } == 1)
    for number in 0..<ServiceTable.servicesMax {
      #expect(stage.find(Stage.key(5000 + number)) != nil, "a newcomer finds a slot")
    }
    #expect(stage.discovery.table.services.count { $0.isProven } == 1, "the real one stays")
    #expect(stage.listener.present.contains { $0.hint == 7 })
  }

  @Test func `a node keeps one slot per interface, at the exact address where it proved its key`() throws {
    let stage = try Stage()
    let here = try #require(stage.find(Stage.key(7))), there = try #require(stage.find(Stage.key(7, interface: 3)))
    var key = Stage.key(0)
    key.name = Array(hexadecimal(NodeID(high: 7, low: 1)).utf8)
    let other = try #require(stage.find(key))
    stage.answer(here, 0x0A00_0001, port: 9)
    stage.answer(there, 0x0A00_0001)
    stage.answer(other, 0x0A00_0001)
    stage.discovery.proved(.ip(IPEndpoint(high: 0, low: 0xFFFF_0A00_0001, port: 55_555, scope: 0)), hint: 7)
    #expect(here.isProven && there.isProven && !other.isProven, "it dialled: the first one")
    stage.discovery.proved(.ip(IPEndpoint(high: 0, low: 0xFFFF_0A00_0001, port: 7777, scope: 0)), hint: 7)
    #expect(!here.isProven && there.isProven && other.isProven, "it was dialled")
    stage.discovery.proved(.ip(IPEndpoint(high: 0, low: 0xFFFF_0A00_0001, port: 55_555, scope: 0)), hint: 7)
    #expect(!here.isProven && there.isProven && other.isProven, "as before")
  }

  @Test func `events of a replaced responder are ignored`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(5)))
    stage.answer(service, 0x0A000001)
    let next = ScriptedResponder(stage.discovery)
    stage.discovery.take(next, .daemon)
    stage.discovery.responderLost(stage.responder, service.key)
    stage.discovery.responderFound(stage.responder, Stage.key(6))
    #expect(stage.discovery.serviceCount == 1)
    #expect(stage.listener.lostCount == 0, "a change of responder alone loses nobody")
    #expect(stage.discovery.table.services.allSatisfy { !$0.isConfirmed })
    stage.discovery.responderFound(next, service.key)
    #expect(stage.discovery.table.services.allSatisfy { $0.isConfirmed })
  }
}

/// The actions that a host with forged announcements can cause.
struct SpoofTests {
  @Test func `an off-link address is not dialled, and it is reported once`() throws {
    let stage = try Stage()
    for number in 5..<15 {
      stage.answer(try #require(stage.find(Stage.key(number))), 0xCB00_7105)
    }
    #expect(stage.listener.foundCount == 0)
    #expect(stage.listener.reports.count == 1)
  }

  @Test func `an address is dialled once the interface has its network`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(5)))
    stage.answer(service, 0xC000_0205)
    #expect(stage.listener.foundCount == 0)
    stage.networks.prefix = 0xFFFF_C000_0200
    stage.discovery.interfacesChanged()
    #expect(service.phase == .waiting)
    stage.answer(service, 0xC000_0205)
    #expect(stage.listener.foundCount == 1)
  }

  @Test func `a service that keeps changing its port is soon no longer followed`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(5)))
    for port in 1...1000 as ClosedRange<UInt16> { stage.answer(service, 0x0A00_0001, port: port) }
    #expect(stage.listener.foundCount == Int(DialBudget.hostBurst))
  }

  @Test func `a known address is not charged, however often it is announced`() throws {
    let stage = try Stage()
    let service = try #require(stage.find(Stage.key(5)))
    for _ in 0..<50 { stage.answer(service, 0x0A00_0001) }
    stage.answer(try #require(stage.find(Stage.key(5, interface: 3))), 0x0A00_0001)
    #expect(stage.listener.foundCount == 1)
    stage.answer(service, 0x0A00_0001, port: 1)
    #expect(stage.listener.foundCount == 2)
  }
}

struct DialBudgetTests {
  private func endpoint(_ host: UInt64, port: UInt16 = 1) -> IPEndpoint {
    IPEndpoint(high: 0, low: 0xFFFF_0A00_0000 + host, port: port, scope: 0)
  }
  private let now = Instant.zero + .seconds(1000)

  @Test func `one address gets eight dials at once and then one per ten seconds`() {
    var budget = DialBudget()
    var taken = 0
    for port in 1...100 as ClosedRange<UInt16> {
      if budget.take(endpoint(1, port: port), heardOn: 2, now: now) { taken += 1 }
    }
    #expect(taken == 8)
    #expect(budget.take(endpoint(1), heardOn: 2, now: now + .seconds(9)) == false)
    #expect(budget.take(endpoint(1), heardOn: 2, now: now + .seconds(10)) == true)
    #expect(budget.take(endpoint(1), heardOn: 2, now: now + .seconds(10)) == false)
    #expect(budget.take(endpoint(2), heardOn: 2, now: now) == true)
  }

  @Test func `an interface gets 256 dials at once and then one per second, independently of other interfaces`() {
    var budget = DialBudget()
    var taken = 0
    for host in 0..<1000 as Range<UInt64> where budget.take(endpoint(host), heardOn: 2, now: now) { taken += 1 }
    #expect(taken == 256)
    #expect(budget.take(endpoint(5000), heardOn: 3, now: now) == true)
    taken = 0
    for second in 1...60 as ClosedRange<UInt64> {
      for host in 0..<10 as Range<UInt64> {
        if budget.take(endpoint(second * 100 + host), heardOn: 2, now: now + .seconds(second)) { taken += 1 }
      }
    }
    #expect(taken == 60)
  }
}

struct ServiceTableTests {
  private func filled() -> ServiceTable {
    let table = ServiceTable()
    for number in 0..<100 { _ = table.insert(Stage.key(number), evicting: { _ in }) }
    return table
  }

  @Test func `at most 32 look-ups are pending at once`() {
    let table = filled()
    var started = 0
    while let service = table.nextToLookUp(.zero), started < 100 {
      service.phase = .lookingUp
      started += 1
    }
    #expect(started == ServiceTable.lookupsMax)
    table.services[0].phase = .known
    #expect(table.nextToLookUp(.zero) != nil)
  }

  @Test func `look-ups alternate between the oldest, the newest and a formerly paused service`() {
    let table = ServiceTable()
    for number in 0..<200 { _ = table.insert(Stage.key(number), evicting: { _ in }) }
    while let service = table.nextToLookUp(.zero) { service.phase = .lookingUp }
    let newcomer = table.insert(Stage.key(5000), evicting: { _ in })
    let oldest = table.services.first { $0.phase == .waiting }
    let ended = Array(table.services.filter { $0.phase == .lookingUp }.prefix(3))
    for service in ended { service.phase = .resting(until: .never) }
    ended[2].phase = .resting(until: .zero)
    var turns: [Service] = []
    while let service = table.nextToLookUp(.zero) {
      service.phase = .lookingUp
      turns.append(service)
    }
    #expect(turns.count == 3)
    #expect(turns.contains { $0 === newcomer }, "two hundred silent names do not keep it waiting")
    #expect(turns.contains { $0 === oldest })
    #expect(turns.contains { $0 === ended[2] })
  }

  @Test func `the paused service that has waited longest is looked up next`() {
    let table = ServiceTable()
    for number in 0..<3 {
      let service = table.insert(Stage.key(number), evicting: { _ in })
      service.phase = .resting(until: Instant(nanoseconds: UInt64(9 - number)))
    }
    #expect(table.nextToLookUp(Instant(nanoseconds: 100)) === table.services[2])
  }

  @Test func `a paused service is looked up again when its pause ends`() {
    let table = ServiceTable()
    let service = table.insert(Stage.key(1), evicting: { _ in })
    service.phase = .resting(until: Instant(nanoseconds: 100))
    #expect(table.nextDeadline == Instant(nanoseconds: 100))
    #expect(table.nextToLookUp(Instant(nanoseconds: 99)) == nil)
    #expect(table.nextToLookUp(Instant(nanoseconds: 100)) === service)
  }

  @Test func `pauses between look-ups double from 10 seconds to 640`() {
    let rests = (1...9).map { ServiceTable.rest(afterFailures: $0).milliseconds / 1000 }
    #expect(rests == [10, 20, 40, 80, 160, 320, 640, 640, 640])
    #expect(ServiceTable.rest(afterFailures: .max).milliseconds == 640_000)
  }
}
