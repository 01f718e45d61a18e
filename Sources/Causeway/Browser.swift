/// A browse for services of one type, as a sequence of sightings. The browse ends when no reference to the `Browser`
/// remains.
///
/// `services` has the services in reach now. An application that reads the sequence late receives only what has changed
/// since its last read: at most one event for each service.
public final class Browser: AsyncSequence, Sendable {
  public typealias Element = Sighting
  public typealias Failure = CausewayError

  private let lease: Lease
  private let number: UInt32
  private let core: BrowserCore

  init(_ lease: Lease, _ number: UInt32, _ core: BrowserCore) {
    self.lease = lease
    self.number = number
    self.core = core
  }

  deinit { close() }

  /// The services in reach now, ordered by address.
  public var services: [Service] { core.mailbox.read { $0.services } }

  public func makeAsyncIterator() -> Events<Sighting>.Iterator {
    // The closure keeps the browser alive during iteration.
    Events { await self.core.mailbox.next() }.makeAsyncIterator()
  }

  var connectionEnded: Promise<CausewayError> { lease.connection.ended }

  /// Ends the browse. The sequence ends after the events that are already queued.
  public func close() {
    guard core.isOpen.close() else { return }
    lease.connection.forget(number)
    lease.connection.write(.close(number), lease.connection.number())
    core.mailbox.end(.success(()))
  }
}

final class BrowserCore: EventHandler {
  let mailbox = Mailbox(Sightings())
  let isOpen = Latch()

  func receive(_ event: Event, _ connection: Connection) throws(CausewayError) {
    let isTooMuch = mailbox.change { sightings in
      if case .services(let reference, let services) = event { return !sightings.update(reference, services) }
      if event == .allTold { sightings.allTold() }
      return false
    }
    if isTooMuch { throw .broken("more than \(Limits.sightingsMax) services") }
  }

  func end(_ error: CausewayError) { mailbox.end(.failure(error)) }
}

/// The services in reach, the services that were reported to the application, and the addresses at which these two sets
/// may differ.
struct Sightings: Content {
  private var now: [Address: (reference: Int, service: Service)] = [:]
  private var byReference: [Int: Set<Address>] = [:]
  private var told: [Address: Service] = [:]
  /// The addresses of services to report, in the order of their first change. A service may have returned to the
  /// reported state. Nil stands for `allTold`.
  private var dirty = Queue<Address?>()
  private var isDirty: Set<Address> = []
  private var isAllTold = false

  var services: [Service] { now.values.map(\.service).sorted { $0.address < $1.address } }
  var isEmpty: Bool { dirty.isEmpty }

  /// Records the services that a node offers now. `reference` is the number by which the daemon refers to the node
  /// (docs/local-api.md, event 130). Returns false if a limit is exceeded.
  ///
  /// The daemon may report a node under a new number before it reports the old number as empty. So a service is lost
  /// only when the number under which the service was reported last no longer has the service.
  mutating func update(_ reference: Int, _ services: [Service]) -> Bool {
    let addresses = Set(services.map(\.address))
    for address in byReference[reference] ?? []
    where !addresses.contains(address) && now[address]?.reference == reference {
      now[address] = nil
      mark(address)
    }
    byReference[reference] = addresses.isEmpty ? nil : addresses
    for service in services {
      if now[service.address]?.service != service { mark(service.address) }
      now[service.address] = (reference, service)
    }
    return now.count <= Limits.sightingsMax && dirty.count <= 2 * Limits.sightingsMax
      && byReference.count <= Limits.sightingsMax
  }

  mutating func allTold() {
    if !isAllTold { dirty.append(nil) }
    isAllTold = true
  }

  private mutating func mark(_ address: Address) {
    // An address whose service returns to the reported state stays queued. `take` skips an address in the reported
    // state.
    if isDirty.insert(address).inserted { dirty.append(address) }
  }

  mutating func take() -> Sighting? {
    while let next = dirty.removeFirst() {
      guard let address = next else { return .allTold }
      isDirty.remove(address)
      let before = told[address], after = now[address]?.service
      told[address] = after
      switch (before, after) {
      case (nil, nil): continue
      case (nil, let after?): return .found(after)
      case (let before?, nil): return .lost(before)
      case (let before?, let after?): if before != after { return .changed(after) }
      }
    }
    return nil
  }
}
