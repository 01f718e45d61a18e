import DHCP
import Primitives
import Testing

private let server: UInt32 = 0xC0A8_3101
private let first: UInt32 = 0xC0A8_31C9

/// A DHCP server with three addresses to lease, and the stations that are connected to it.
private struct House {
  var leases = DHCPLeases(server: server, addresses: first...(first + 2))
  var now = Instant.zero + .seconds(1000)
  var stations: [UInt64] = []

  mutating func ask(
    _ kind: DHCPRequest.Kind, _ hardware: UInt64, wanted: UInt32? = nil, has: UInt32 = 0, server: UInt32? = nil
  ) -> DHCPReply? {
    let stations = stations
    let request = DHCPRequest(kind, transaction: 7, address: has, hardware: hardware, wanted: wanted, server: server)
    return leases.reply(to: request, now: now) { stations.contains($0) }
  }

  /// The address that the client with this hardware address obtains. Nil if the client obtains no address.
  mutating func join(_ hardware: UInt64) -> UInt32? {
    guard let offer = ask(.discover, hardware), offer.kind == .offer else { return nil }
    guard let lease = ask(.request, hardware, wanted: offer.address, server: server), lease.kind == .acknowledgement
    else { return nil }
    return lease.address
  }
}

@Test func `each station gets an address of its own`() {
  var house = House()
  #expect(house.join(1) == first && house.join(2) == first + 1 && house.join(3) == first + 2)
}

@Test func `an address belongs to its client from the lease to its end`() {
  var house = House()
  _ = house.ask(.discover, 1)
  #expect(house.leases.client(of: first, now: house.now) == nil, "offered")
  _ = house.join(1)
  #expect(house.leases.client(of: first, now: house.now) == 1)
  #expect(house.leases.client(of: first + 1, now: house.now) == nil)
  #expect(house.leases.client(of: server, now: house.now) == nil)
  #expect(house.leases.client(of: first + 3, now: house.now) == nil)
  house.now = house.now + .seconds(UInt64(DHCPLeases.leaseSeconds))
  #expect(house.leases.client(of: first, now: house.now) == nil)
}

@Test func `a station gets its former address again`() {
  var house = House()
  _ = house.join(1)
  #expect(house.join(2) == first + 1 && house.join(2) == first + 1)
  house.now = house.now + .seconds(7200)
  #expect(house.join(2) == first + 1)
}

@Test func `a lease is renewed only by its holder`() {
  var house = House()
  _ = house.join(1)
  house.now = house.now + .seconds(3599)
  #expect(
    house.ask(.request, 1, has: first)
      == DHCPReply(
        .acknowledgement,
        to: DHCPRequest(.request, transaction: 7, address: first, hardware: 1), address: first, leaseSeconds: 3600))
  house.now = house.now + .seconds(3599)
  #expect(house.ask(.request, 2, has: first)?.kind == .refusal)
}

/// A server that restarted knows no leases, so it accepts the request of a client that had an address before.
@Test func `a client that requests its former address gets it if it is free`() {
  var house = House()
  #expect(house.ask(.request, 1, wanted: first + 2)?.address == first + 2)
  #expect(house.ask(.request, 2, wanted: first + 2)?.kind == .refusal)
  #expect(house.ask(.request, 2, wanted: 0x0A00_0001)?.kind == .refusal)
}

@Test func `a request to another server is ignored and frees the offered address`() {
  var house = House()
  #expect(house.ask(.discover, 1)?.address == first)
  #expect(house.ask(.request, 1, wanted: 5, server: 0x0A00_0001) == nil)
  #expect(house.ask(.discover, 2)?.address == first)
}

@Test func `a released address is assigned last`() {
  var house = House()
  _ = house.join(1)
  #expect(house.ask(.release, 2, has: first) == nil)
  #expect(house.ask(.request, 3, wanted: first)?.kind == .refusal, "released by another one")
  _ = house.ask(.release, 1, has: first)
  #expect(house.join(2) == first + 1 && house.join(3) == first + 2 && house.join(4) == first)
}

@Test func `a declined address is not assigned for some time`() {
  var house = House()
  _ = house.join(1)
  _ = house.ask(.decline, 2, wanted: first)
  #expect(house.ask(.request, 1, has: first)?.kind == .acknowledgement, "declined by another one")
  _ = house.ask(.decline, 1, wanted: first)
  #expect(house.ask(.request, 1, has: first)?.kind == .refusal)
  #expect(house.join(1) == first + 1)
  house.now = house.now + .seconds(601)
  #expect(house.ask(.request, 9, wanted: first)?.kind == .acknowledgement)
}

@Test func `an offer is kept for a minute`() {
  var house = House()
  _ = house.ask(.discover, 1)
  #expect(house.ask(.request, 2, wanted: first)?.kind == .refusal)
  house.now = house.now + .seconds(61)
  #expect(house.ask(.request, 2, wanted: first)?.kind == .acknowledgement)
}

/// A station in the group can send requests under any number of invented hardware addresses.
@Test func `invented stations do not keep an associated station from an address`() {
  var house = House()
  for hardware in UInt64(1)...9 { _ = house.join(hardware) }
  #expect(house.join(10) == nil, "all are taken")
  house.stations = [10, 2]
  #expect(house.join(10) == first, "by who is there")
  #expect(house.join(11) == nil)
  house.stations = [10, 2, 11]
  #expect(house.join(11) == first + 2, "and not from who is there")
}

@Test func `a client with an address of its own is configured without a lease`() {
  var house = House()
  let reply = house.ask(.inform, 1, has: 0xC0A8_3105)
  #expect(reply?.kind == .acknowledgement && reply?.address == 0 && reply?.leaseSeconds == 0)
  #expect(house.ask(.inform, 1, has: 0x0A00_0001) == nil, "a reply to another network")
}

@Test func `the reply to an inform is sent only to an address that its client may have`() {
  var house = House()
  _ = house.join(1)
  for address in [server, server & ~0xFF, server | 0xFF, 0xFFFF_FFFF, 0] {
    #expect(house.ask(.inform, 2, has: address) == nil, "\(address)")
  }
  #expect(house.ask(.inform, 2, has: first) == nil, "leased by another client")
  #expect(house.ask(.inform, 1, has: first)?.destination == first)
  #expect(house.ask(.inform, 2, has: first + 1)?.destination == first + 1, "free")
}

@Test func `the addresses of the server, the network and broadcasts are never assigned`() {
  var house = House()
  for address in [server, server & ~0xFF, server | 0xFF, 0xFFFF_FFFF] {
    #expect(house.ask(.discover, 1, wanted: address)?.address == first, "\(address)")
    #expect(house.ask(.request, 1, wanted: address)?.kind == .refusal, "\(address)")
  }
  #expect(house.ask(.request, 1, wanted: 0) == nil)
}

@Test func `a flood of one client is served at a limited rate, and other clients at once`() {
  var house = House()
  _ = house.join(1)
  for kind in [DHCPRequest.Kind.inform, .discover, .request] {
    house.now = house.now + .seconds(60)
    var replies = 0
    for _ in 0..<1000 where house.ask(kind, 1, wanted: first, has: kind == .inform ? first : 0) != nil { replies += 1 }
    #expect(replies == 16, "\(kind)")
    #expect(house.join(2) == first + 1)
    house.now = house.now + .seconds(1)
    for _ in 0..<1000 where house.ask(kind, 1, wanted: first, has: kind == .inform ? first : 0) != nil { replies += 1 }
    #expect(replies == 20, "\(kind)")
  }
}

/// A request may claim that the client has an address already. The reply goes to the claimed address.
@Test func `a client that claims an address obtains no other one`() {
  var house = House()
  #expect(house.ask(.request, 1, wanted: first, has: 0x0808_0808)?.kind == .refusal)
  #expect(house.ask(.request, 1, wanted: first + 1, has: first)?.address == first)
}

/// One station repeatedly obtains an address and declines this address. A declined address is not offered for some
/// time.
@Test func `one station makes at most two addresses unavailable by declining them`() {
  var house = House()
  house.leases = DHCPLeases(server: server, addresses: first...(first + 53))
  for _ in 0..<100 {
    let address = house.join(1)
    #expect(address != nil)
    _ = house.ask(.decline, 1, wanted: address)
    // Three messages per second stay below the rate limit of a client.
    house.now = house.now + .seconds(1)
  }
  // Two of the 54 addresses are withheld, so 52 other stations get one each.
  for hardware in UInt64(2)...53 { #expect(house.join(hardware) != nil, "\(hardware)") }
  #expect(house.join(54) == nil)
}

@Test func `many stations make at most eight addresses unavailable by declining them`() {
  var house = House()
  house.leases = DHCPLeases(server: server, addresses: first...(first + 53))
  for hardware in UInt64(100)..<200 { _ = house.ask(.decline, hardware, wanted: house.join(hardware)) }
  for hardware in UInt64(1)...46 { #expect(house.join(hardware) != nil, "\(hardware)") }
  #expect(house.join(47) == nil)
}

@Test func `the address that was declined first is assigned again first`() {
  var house = House()
  for _ in 0..<3 {
    _ = house.ask(.decline, 1, wanted: house.join(1))
    house.now = house.now + .seconds(1)
  }
  #expect(house.join(2) == first)
  #expect(house.join(3) == nil)
}
