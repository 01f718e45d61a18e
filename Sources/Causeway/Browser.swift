/// A browse for services of one type: a sequence of sightings. It ends when it is no longer held.
///
/// `services` has the services in reach now. An application that reads late receives only the differences: at most one
/// event for each service.
public final class Browser: AsyncSequence, Sendable {
  public typealias Element = Sighting
  public typealias Failure = CausewayError

  private let lease: Lease
  private let number: UInt32
  private let inside: BrowserInside

  init(_ lease: Lease, _ number: UInt32, _ inside: BrowserInside) {
    self.lease = lease
    self.number = number
    self.inside = inside
  }

  deinit { close() }

  /// The services in reach now, ordered by address.
  public var services: [Service] { inside.mailbox.read { $0.services } }

  public func makeAsyncIterator() -> Events<Sighting>.Iterator {
    // The closure keeps the browser alive during iteration.
    Events { await self.inside.mailbox.next() }.makeAsyncIterator()
  }

  var connectionEnded: Promise<CausewayError> { lease.connection.ended }

  /// Ends the browse. The sequence ends after the events that are already queued.
  public func close() {
    guard inside.isOpen.close() else { return }
    lease.connection.forget(number)
    lease.connection.write(.close(number), lease.connection.number())
    inside.mailbox.end(.success(()))
  }
}

final class BrowserInside: Hearer {
  let mailbox = Mailbox(Sightings())
  let isOpen = Latch()

  func hear(_ event: Event, _ connection: Connection) throws(CausewayError) {
    let isTooMuch = mailbox.change { sightings in
      if case .services(let place, let services) = event { return !sightings.tell(place, services) }
      if event == .allTold { sightings.allTold() }
      return false
    }
    if isTooMuch { throw .broken("more than \(Limits.sightingsMax) services") }
  }

  func end(_ error: CausewayError) { mailbox.end(.failure(error)) }
}

/// The services in reach, those that the application knows of, and the addresses at which the two may differ.
struct Sightings: Content {
  private var now: [Address: (place: Int, service: Service)] = [:]
  private var atPlace: [Int: Set<Address>] = [:]
  private var told: [Address: Service] = [:]
  /// Addresses in the order of their first change; some may no longer differ. Nil stands for `allTold`.
  private var dirty = Queue<Address?>()
  private var isDirty: Set<Address> = []
  private var isAllTold = false

  var services: [Service] { now.values.map(\.service).sorted { $0.address < $1.address } }
  var isEmpty: Bool { dirty.isEmpty }

  /// Takes the services that a place offers now. Returns false if a limit is exceeded.
  ///
  /// A node may be reported in a new place before its old place is empty. So a service is lost only with the place that
  /// reported it last.
  mutating func tell(_ place: Int, _ services: [Service]) -> Bool {
    let addresses = Set(services.map(\.address))
    for address in atPlace[place] ?? [] where !addresses.contains(address) && now[address]?.place == place {
      now[address] = nil
      mark(address)
    }
    atPlace[place] = addresses.isEmpty ? nil : addresses
    for service in services {
      if now[service.address]?.service != service { mark(service.address) }
      now[service.address] = (place, service)
    }
    return now.count <= Limits.sightingsMax && dirty.count <= 2 * Limits.sightingsMax
      && atPlace.count <= Limits.sightingsMax
  }

  mutating func allTold() {
    if !isAllTold { dirty.append(nil) }
    isAllTold = true
  }

  private mutating func mark(_ address: Address) {
    // An address that returns to its former state stays queued; `take` skips it.
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
