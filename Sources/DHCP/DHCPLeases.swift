import Primitives

/// The address leases of a Wi-Fi group, and the reply to each request (RFC 2131, section 4.3). The type makes no system
/// call.
///
/// A client is identified by its Ethernet address alone. Leases are lost at a restart. The group has no other DHCP
/// server. So a client that requests its previous address receives that address unless another client uses the address.
public struct DHCPLeases {
  /// The lease time in seconds. A long lease does no harm, because there are more addresses than stations.
  public static let leaseSeconds: UInt32 = 3600
  /// How long an offered address is reserved for its client.
  public static let offerTime = TimeSpan.seconds(60)
  /// How long an address is quarantined after a client has declined it. A client declines an address that another
  /// station already uses (DHCPDECLINE).
  public static let declinedTime = TimeSpan.seconds(600)
  /// The maximum number of quarantined addresses: of all clients, and of one client. A client can lease and decline
  /// addresses without end. So if a limit is reached, the oldest quarantine ends.
  public static let declinedMax = 8
  public static let declinedOfClientMax = 2
  /// The rate limit for messages of one client. Messages above the rate are dropped. A client retransmits after 4, 8
  /// and 16 s (RFC 2131, section 4.1).
  public static let rateOfClient = TokenRate(perSecond: 4, burst: 16)

  private enum Use {
    case offered, leased
    /// The address is quarantined, because the client reported that another station uses it.
    case declined
  }

  /// The current use of an address, or the last use if `until` has passed.
  private struct Lease {
    var hardware: UInt64
    var until: Instant
    var use: Use

    /// Whether the address is leased or offered to this client, or was so at its last use.
    func isOf(_ client: UInt64) -> Bool { hardware == client && use != .declined }
  }

  /// The memory for the lease of one address, in bytes.
  public static var leaseBytes: Int { MemoryLayout<Lease?>.stride }

  private let server: UInt32
  private let first: UInt32
  private var leases: [Lease?]
  private var rates = SourceBuckets(Self.rateOfClient)

  /// Leases the addresses in `addresses`, a range within the server's /24 network. Each client receives one address.
  ///
  /// A device that joins again and again with new Ethernet addresses can exhaust the range. In that case a client that
  /// has left the group loses its address to a station in the group.
  public init(server: UInt32, addresses: ClosedRange<UInt32>) {
    self.server = server
    first = addresses.lowerBound
    leases = [Lease?](repeating: nil, count: addresses.count)
  }

  /// Handles a request and returns the reply; nil if the request is not answered. `isStation` returns whether an
  /// Ethernet address belongs to a station in the group.
  ///
  /// The caller guarantees that `request.hardware` is the source address of the Ethernet frame. Without this guarantee,
  /// a station could release or decline the address of another station.
  public mutating func reply(
    to request: DHCPRequest, now: Instant, isStation: (UInt64) -> Bool
  ) -> DHCPReply? {
    if !rates.take(request.hardware, now: now) { return nil }
    switch request.kind {
    case .discover: return offer(request, now, isStation)
    case .request: return decide(request, now)
    case .decline:
      if let index = request.wanted.flatMap({ index(of: $0) }), isHeld(index, by: request.hardware) {
        decline(index, now)
      }
      return nil
    case .release:
      // The entry is kept with an end in the past. So the client receives the same address again, unless the range is
      // exhausted.
      if let index = index(of: request.address), isHeld(index, by: request.hardware) {
        leases[index]?.until = now
      }
      return nil
    case .inform:
      return canHave(request.address, request.hardware, now) ? DHCPReply(.acknowledgement, to: request) : nil
    }
  }

  /// The Ethernet address of the client that leases an address; nil if the address is not leased.
  public func client(of address: UInt32, now: Instant) -> UInt64? {
    guard let index = index(of: address), let lease = leases[index] else { return nil }
    return lease.use == .leased && now < lease.until ? lease.hardware : nil
  }

  private mutating func offer(_ request: DHCPRequest, _ now: Instant, _ isStation: (UInt64) -> Bool) -> DHCPReply? {
    guard let index = index(for: request, now, isStation) else { return nil }
    if !isHeld(index, by: request.hardware) || isFree(index, now) {
      leases[index] = Lease(hardware: request.hardware, until: now + Self.offerTime, use: .offered)
    }
    return DHCPReply(.offer, to: request, address: first + UInt32(index), leaseSeconds: Self.leaseSeconds)
  }

  /// Answers a DHCPREQUEST (RFC 2131, section 4.3.2).
  private mutating func decide(_ request: DHCPRequest, _ now: Instant) -> DHCPReply? {
    if let chosen = request.server, chosen != server {
      for index in leases.indices where isHeld(index, by: request.hardware) && leases[index]?.use == .offered {
        leases[index] = nil
      }
      return nil
    }
    // A client with an address can renew only that address, because the reply is sent to that address.
    let wanted = request.address != 0 ? request.address : request.wanted ?? 0
    if wanted == 0 { return nil }
    guard let index = index(of: wanted), isFree(index, now) || isHeld(index, by: request.hardware) else {
      return DHCPReply(.refusal, to: request)
    }
    for other in leases.indices where isHeld(other, by: request.hardware) { leases[other] = nil }
    let span = TimeSpan.seconds(UInt64(Self.leaseSeconds))
    leases[index] = Lease(hardware: request.hardware, until: now + span, use: .leased)
    return DHCPReply(.acknowledgement, to: request, address: wanted, leaseSeconds: Self.leaseSeconds)
  }

  private func isHeld(_ index: Int, by client: UInt64) -> Bool { leases[index]?.isOf(client) ?? false }

  /// Quarantines an address. If the limit of the client is reached, the oldest quarantine of this client ends. If the
  /// limit of all clients is reached, the oldest quarantine of all ends.
  private mutating func decline(_ index: Int, _ now: Instant) {
    guard let client = leases[index]?.hardware else { return }
    leases[index] = nil
    let resting = leases.indices.filter { leases[$0]?.use == .declined && !isFree($0, now) }
    let own = resting.filter { leases[$0]?.hardware == client }
    let crowd =
      own.count >= Self.declinedOfClientMax ? own : resting.count >= Self.declinedMax ? resting : []
    if let oldest = crowd.min(by: { leases[$0]!.until < leases[$1]!.until }) { leases[oldest] = nil }
    leases[index] = Lease(hardware: client, until: now + Self.declinedTime, use: .declined)
  }

  private func isFree(_ index: Int, _ now: Instant) -> Bool { leases[index].map { $0.until <= now } ?? true }

  /// Whether a client may have configured this address itself. The reply is sent to the address. So the address must be
  /// a host address of this network, not the server's address, and not leased to another client.
  private func canHave(_ address: UInt32, _ client: UInt64, _ now: Instant) -> Bool {
    let host = address & 0xFF
    if address >> 8 != server >> 8 || address == server || host == 0 || host == 0xFF { return false }
    return index(of: address).map { isFree($0, now) || isHeld($0, by: client) } ?? true
  }

  private func index(of address: UInt32) -> Int? {
    guard address >= first, address - first < UInt32(leases.count) else { return nil }
    return Int(address - first)
  }

  /// Chooses an address for a client; nil if no address is available. The first of these addresses that exists is
  /// chosen:
  ///
  /// - the client's previous address
  /// - the requested address, if it is free
  /// - an address that was never used
  /// - the address whose last lease or quarantine ended first
  /// - for a station in the group: a quarantined address, or the address of a client that has left the group
  private func index(for request: DHCPRequest, _ now: Instant, _ isStation: (UInt64) -> Bool) -> Int? {
    if let own = leases.indices.first(where: { isHeld($0, by: request.hardware) }) { return own }
    if let wanted = request.wanted, let index = index(of: wanted), isFree(index, now) { return index }
    if let new = leases.firstIndex(where: { $0 == nil }) { return new }
    var oldest: Int?
    for index in leases.indices where isFree(index, now) {
      if oldest.map({ leases[index]!.until < leases[$0]!.until }) ?? true { oldest = index }
    }
    if let oldest { return oldest }
    guard isStation(request.hardware) else { return nil }
    return leases.firstIndex { $0.map { $0.use == .declined || !isStation($0.hardware) } ?? true }
  }
}
