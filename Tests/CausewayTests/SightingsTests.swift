import Testing

@testable import Causeway

private func all(_ sightings: inout Sightings) -> [Sighting] {
  var taken: [Sighting] = []
  while let sighting = sightings.take() { taken.append(sighting) }
  return taken
}

private let one = Address.numbered(1), two = Address.numbered(2)

@Test func `a found service may change and be lost`() {
  var sightings = Sightings()
  _ = sightings.update(9, [service(one, ["room": "4"])])
  sightings.allTold()
  #expect(all(&sightings) == [.found(service(one, ["room": "4"])), .allTold])
  _ = sightings.update(9, [service(one, ["room": "5"])])
  #expect(all(&sightings) == [.changed(service(one, ["room": "5"]))])
  _ = sightings.update(9, [service(one, ["room": "5"])])
  #expect(all(&sightings) == [])
  _ = sightings.update(9, [])
  #expect(all(&sightings) == [.lost(service(one, ["room": "5"]))])
}

@Test func `a node that moves to another slot is neither lost nor found again`() {
  var sightings = Sightings()
  _ = sightings.update(9, [service(one)])
  #expect(all(&sightings) == [.found(service(one))])
  _ = sightings.update(3, [service(one)])
  _ = sightings.update(9, [])
  #expect(all(&sightings) == [])
  #expect(sightings.services == [service(one)])
  _ = sightings.update(3, [])
  #expect(all(&sightings) == [.lost(service(one))])
}

@Test func `a slot with another node means that the first node is lost`() {
  var sightings = Sightings()
  _ = sightings.update(9, [service(one)])
  _ = all(&sightings)
  _ = sightings.update(9, [service(two)])
  #expect(Set(all(&sightings)) == [.lost(service(one)), .found(service(two))])
}

@Test func `a slow reader receives only the differences`() {
  var sightings = Sightings()
  for round in 0..<1000 {
    _ = sightings.update(9, [service(one, ["round": "\(round)"])])
    _ = sightings.update(8, [service(two)])
    _ = sightings.update(8, [])
  }
  #expect(all(&sightings) == [.found(service(one, ["round": "999"]))])
}

@Test func `a daemon that reports endless services is stopped`() {
  var sightings = Sightings(), count = 0
  while count < 10_000 && sightings.update(count, [service(.numbered(count))]) { count += 1 }
  #expect(count == Limits.sightingsMax)
  sightings = Sightings()
  count = 0
  while count < 20_000 && sightings.update(0, [service(.numbered(count))]) { count += 1 }
  #expect(count < 2 * Limits.sightingsMax + 2)
}
