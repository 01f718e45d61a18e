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
  /// Addresses that rest at once, of all, and those that rest because of one client: a client can take an address and decline
  /// it again and again. Then the one that rests longest is given to others again.
  public static let declinedMax = 8
  public static let declinedOfClientMax = 2
  /// Messages of one client that are served; further ones are dropped. A client repeats a message after 4, 8 and 16 s (RFC 2131, 4.1).
  public static let rateOfClient = TokenRate(perSecond: 4, burst: 16)

  private enum Use {
    case offered, leased
    /// Its client has found another station at it.
    case declined
  }

  /// An address in use, or that was.
  private struct Lease {
    var hardware: UInt64
    var until: Instant
    var use: Use

    /// Whether this is a client's address, or was.
    func isOf(_ client: UInt64) -> Bool { hardware == client && use != .declined }
  }

  /// What an address costs.
  public static var leaseBytes: Int { MemoryLayout<Lease?>.stride }

  private let server: UInt32
  private let first: UInt32
  private var leases: [Lease?]
  private var rates = SourceBuckets(Self.rateOfClient)

  /// `addresses`: a range of one /24 network, that of the server. A station has one of them. Somebody who joins again and again
  /// under new Ethernet addresses can take all: who is not a station of the group any more then gives its own to one that is.
  public init(server: UInt32, addresses: ClosedRange<UInt32>) {
    self.server = server
    first = addresses.lowerBound
    leases = [Lease?](repeating: nil, count: addresses.count)
  }

  /// The reply to a request; nil for none. The request's `hardware` must be the Ethernet address from which it came:
  /// whoever could write another one there could release or decline the address of another station. `isStation`: whether an
  /// Ethernet address is of a station in the group.
  public mutating func reply(
    to request: DHCPRequest, now: Instant, isStation: (UInt64) -> Bool
  ) -> DHCPReply? {
    if !rates.take(request.hardware, now: now) { return nil }
    switch request.kind {
    case .discover: return offer(request, now, isStation)
    case .request: return decide(request, now)
    case .decline:
      if let place = request.wanted.flatMap({ place(of: $0) }), isHeld(place, by: request.hardware) {
        decline(place, now)
      }
      return nil
    case .release:
      // Kept, so that it gets the same one again while there are others.
      if let place = place(of: request.address), isHeld(place, by: request.hardware) {
        leases[place]?.until = now
      }
      return nil
    case .inform:
      return canHave(request.address, request.hardware, now) ? DHCPReply(.acknowledgement, to: request) : nil
    }
  }

  /// The Ethernet address of the client that has leased an address; nil for none.
  public func client(of address: UInt32, now: Instant) -> UInt64? {
    guard let place = place(of: address), let lease = leases[place] else { return nil }
    return lease.use == .leased && now < lease.until ? lease.hardware : nil
  }

  private mutating func offer(_ request: DHCPRequest, _ now: Instant, _ isStation: (UInt64) -> Bool) -> DHCPReply? {
    guard let place = place(for: request, now, isStation) else { return nil }
    if !isHeld(place, by: request.hardware) || isFree(place, now) {
      leases[place] = Lease(hardware: request.hardware, until: now + Self.offerTime, use: .offered)
    }
    return DHCPReply(.offer, to: request, address: first + UInt32(place), leaseSeconds: Self.leaseSeconds)
  }

  /// RFC 2131, 4.3.2.
  private mutating func decide(_ request: DHCPRequest, _ now: Instant) -> DHCPReply? {
    if let chosen = request.server, chosen != server {
      for place in leases.indices where isHeld(place, by: request.hardware) && leases[place]?.use == .offered {
        leases[place] = nil
      }
      return nil
    }
    // Who has an address may only keep it; the reply goes there.
    let wanted = request.address != 0 ? request.address : request.wanted ?? 0
    if wanted == 0 { return nil }
    guard let place = place(of: wanted), isFree(place, now) || isHeld(place, by: request.hardware) else {
      return DHCPReply(.refusal, to: request)
    }
    for other in leases.indices where isHeld(other, by: request.hardware) { leases[other] = nil }
    let span = TimeSpan.seconds(UInt64(Self.leaseSeconds))
    leases[place] = Lease(hardware: request.hardware, until: now + span, use: .leased)
    return DHCPReply(.acknowledgement, to: request, address: wanted, leaseSeconds: Self.leaseSeconds)
  }

  private func isHeld(_ place: Int, by client: UInt64) -> Bool { leases[place]?.isOf(client) ?? false }

  /// An address rests. One of its client, or of all, rests no more when there are too many.
  private mutating func decline(_ place: Int, _ now: Instant) {
    guard let client = leases[place]?.hardware else { return }
    leases[place] = nil
    let resting = leases.indices.filter { leases[$0]?.use == .declined && !isFree($0, now) }
    let own = resting.filter { leases[$0]?.hardware == client }
    let crowd =
      own.count >= Self.declinedOfClientMax ? own : resting.count >= Self.declinedMax ? resting : []
    if let oldest = crowd.min(by: { leases[$0]!.until < leases[$1]!.until }) { leases[oldest] = nil }
    leases[place] = Lease(hardware: client, until: now + Self.declinedTime, use: .declined)
  }

  private func isFree(_ place: Int, _ now: Instant) -> Bool { leases[place].map { $0.until <= now } ?? true }

  /// Whether a client can have configured an address itself. The reply to it goes there: so it is a host's address of this network,
  /// neither the server's nor one that another client has.
  private func canHave(_ address: UInt32, _ client: UInt64, _ now: Instant) -> Bool {
    let host = address & 0xFF
    if address >> 8 != server >> 8 || address == server || host == 0 || host == 0xFF { return false }
    return place(of: address).map { isFree($0, now) || isHeld($0, by: client) } ?? true
  }

  private func place(of address: UInt32) -> Int? {
    guard address >= first, address - first < UInt32(leases.count) else { return nil }
    return Int(address - first)
  }

  /// The place that a client had, the one that it asks for, a new one, the one that is free for longest, and at last one of
  /// somebody who is not there.
  private func place(for request: DHCPRequest, _ now: Instant, _ isStation: (UInt64) -> Bool) -> Int? {
    if let own = leases.indices.first(where: { isHeld($0, by: request.hardware) }) { return own }
    if let wanted = request.wanted, let place = place(of: wanted), isFree(place, now) { return place }
    if let new = leases.firstIndex(where: { $0 == nil }) { return new }
    var oldest: Int?
    for place in leases.indices where isFree(place, now) {
      if oldest.map({ leases[place]!.until < leases[$0]!.until }) ?? true { oldest = place }
    }
    if let oldest { return oldest }
    guard isStation(request.hardware) else { return nil }
    return leases.firstIndex { $0.map { $0.use == .declined || !isStation($0.hardware) } ?? true }
  }
}
