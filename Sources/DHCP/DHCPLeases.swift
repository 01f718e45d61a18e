import Primitives

/// Which station of a group has which address, and what a request of one is answered (RFC 2131, 4.3). Pure. A station is known by
/// its Ethernet address alone. Nothing is kept over a restart: the server is the only one of its network, so a client that asks for
/// the address that it had gets it if it is free.
public struct DHCPLeases {
  /// Seconds of a lease. Stations come and go; there are many more addresses than stations.
  public static let leaseSeconds: UInt32 = 3600
  /// How long an offered address is kept for who was offered it.
  public static let offerTime = TimeSpan.seconds(60)
  /// How long an address rests that a client has found in use.
  public static let declinedTime = TimeSpan.seconds(600)

  /// An address in use, or that was.
  private struct Lease {
    /// 0: somebody who is no client of this server.
    var hardware: UInt64
    var until: Instant
    var isOffer: Bool
  }

  /// What an address costs.
  public static var leaseBytes: Int { MemoryLayout<Lease?>.stride }

  private let server: UInt32
  private let first: UInt32
  private var leases: [Lease?]

  /// `addresses`: a range of one /24 network, that of the server. A stranger in the group can take all of them: who is not a
  /// station of the group any more then gives its own to one that is.
  public init(server: UInt32, addresses: ClosedRange<UInt32>) {
    self.server = server
    first = addresses.lowerBound
    leases = [Lease?](repeating: nil, count: addresses.count)
  }

  /// The reply to a request; nil for none. `isStation`: whether an Ethernet address is of a station in the group.
  public mutating func reply(
    to request: DHCPRequest, now: Instant, isStation: (UInt64) -> Bool
  ) -> DHCPReply? {
    switch request.kind {
    case .discover: return offer(request, now, isStation)
    case .request: return decide(request, now)
    case .decline:
      if let place = request.wanted.flatMap({ place(of: $0) }), leases[place]?.hardware == request.hardware {
        leases[place] = Lease(hardware: 0, until: now + Self.declinedTime, isOffer: false)
      }
      return nil
    case .release:
      // Kept, so that it gets the same one again while there are others.
      if let place = place(of: request.address), leases[place]?.hardware == request.hardware {
        leases[place]?.until = now
      }
      return nil
    case .inform:
      // Only to an address of this network: it is where the reply goes.
      if request.address >> 8 != server >> 8 { return nil }
      return DHCPReply(.acknowledgement, to: request)
    }
  }

  private mutating func offer(_ request: DHCPRequest, _ now: Instant, _ isStation: (UInt64) -> Bool) -> DHCPReply? {
    guard let place = place(for: request, now, isStation) else { return nil }
    if leases[place]?.hardware != request.hardware || isFree(place, now) {
      leases[place] = Lease(hardware: request.hardware, until: now + Self.offerTime, isOffer: true)
    }
    return DHCPReply(.offer, to: request, address: first + UInt32(place), leaseSeconds: Self.leaseSeconds)
  }

  /// RFC 2131, 4.3.2.
  private mutating func decide(_ request: DHCPRequest, _ now: Instant) -> DHCPReply? {
    if let chosen = request.server, chosen != server {
      for place in leases.indices where leases[place]?.hardware == request.hardware && leases[place]?.isOffer == true {
        leases[place] = nil
      }
      return nil
    }
    // Who has an address may only keep it; the reply goes there.
    let wanted = request.address != 0 ? request.address : request.wanted ?? 0
    if wanted == 0 { return nil }
    guard let place = place(of: wanted), isFree(place, now) || leases[place]?.hardware == request.hardware else {
      return DHCPReply(.refusal, to: request)
    }
    for other in leases.indices where leases[other]?.hardware == request.hardware { leases[other] = nil }
    let span = TimeSpan.seconds(UInt64(Self.leaseSeconds))
    leases[place] = Lease(hardware: request.hardware, until: now + span, isOffer: false)
    return DHCPReply(.acknowledgement, to: request, address: wanted, leaseSeconds: Self.leaseSeconds)
  }

  private func isFree(_ place: Int, _ now: Instant) -> Bool { leases[place].map { $0.until <= now } ?? true }

  private func place(of address: UInt32) -> Int? {
    guard address >= first, address - first < UInt32(leases.count) else { return nil }
    return Int(address - first)
  }

  /// The place that a client had, the one that it asks for, a new one, the one that is free for longest, and at last one of
  /// somebody who is not there.
  private func place(for request: DHCPRequest, _ now: Instant, _ isStation: (UInt64) -> Bool) -> Int? {
    if let own = leases.firstIndex(where: { $0?.hardware == request.hardware }) { return own }
    if let wanted = request.wanted, let place = place(of: wanted), isFree(place, now) { return place }
    if let new = leases.firstIndex(where: { $0 == nil }) { return new }
    var oldest: Int?
    for place in leases.indices where isFree(place, now) {
      if oldest.map({ leases[place]!.until < leases[$0]!.until }) ?? true { oldest = place }
    }
    if let oldest { return oldest }
    guard isStation(request.hardware) else { return nil }
    return leases.firstIndex { $0.map { !isStation($0.hardware) } ?? true }
  }
}
