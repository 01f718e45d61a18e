/// Finds services of one type. It ends when it is no longer held. It is a sequence of sightings; `services` is what
/// there is now.
///
/// An application that does not read is told what differs when it does: at most one event for each service.
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

  /// What is in reach now, by address.
  public var services: [Service] { inside.mailbox.read { $0.services } }

  public func makeAsyncIterator() -> Events<Sighting>.Iterator {
    // The browser lives while it is iterated.
    Events { await self.inside.mailbox.next() }.makeAsyncIterator()
  }

  var connectionEnded: Promise<CausewayError> { lease.connection.ended }

  /// Ends it: the sequence ends behind what was not taken yet.
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

/// What is in reach, what the application knows of it, and which of it differs.
struct Sightings: Content {
  private var now: [Address: (place: Int, service: Service)] = [:]
  private var atPlace: [Int: Set<Address>] = [:]
  private var told: [Address: Service] = [:]
  /// In the order of their first change; some may not differ any more.
  private var dirty = Queue<Address?>()
  private var isDirty: Set<Address> = []
  private var isAllTold = false

  var services: [Service] { now.values.map(\.service).sorted { $0.address < $1.address } }
  var isEmpty: Bool { dirty.isEmpty }

  /// What a place offers now. A node may be told in a new place before its old one is empty, so a service is lost with
  /// the place where it was told last. False when there are too many.
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
    // Of what came and went meanwhile there is nothing to tell, but its turn stays: `take` passes over it.
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
