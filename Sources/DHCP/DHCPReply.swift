import Primitives

/// A message of the server (RFC 2131, 4.3). It names no router and no name server: a phone keeps its own way to the Internet.
public struct DHCPReply: Equatable, Sendable {
  /// RFC 2132, 9.6.
  public enum Kind: UInt8, Sendable {
    case offer = 2
    case acknowledgement = 5
    case refusal = 6
  }

  public var kind: Kind
  /// What it answers.
  public var request: DHCPRequest
  /// The address that is offered or leased; 0 in a refusal, and for a client that has one of its own.
  public var address: UInt32
  /// 0 where no address is leased.
  public var leaseSeconds: UInt32

  public init(_ kind: Kind, to request: DHCPRequest, address: UInt32 = 0, leaseSeconds: UInt32 = 0) {
    self.kind = kind
    self.request = request
    self.address = address
    self.leaseSeconds = leaseSeconds
  }

  /// Where it goes: the client's address when it has one and may keep it, otherwise all stations, as the client cannot be
  /// asked for by ARP yet (RFC 2131, 4.1).
  public var destination: UInt32 {
    kind == .acknowledgement && request.address != 0 ? request.address : 0xFFFF_FFFF
  }

  /// The shortest message that every client takes (RFC 1542, 2.1).
  static let bytesMin = 300

  public func encoded(server: UInt32, mask: UInt32) -> [UInt8] {
    var packet: [UInt8] = [2, 1, 6, 0]
    packet.append(bigEndian: request.transaction)
    packet.append(bigEndian: UInt16(0))
    packet.append(bigEndian: request.flags)
    packet.append(bigEndian: kind == .acknowledgement ? request.address : 0)
    packet.append(bigEndian: address)
    packet += [UInt8](repeating: 0, count: 8)
    packet.append(bigEndian: UInt16(truncatingIfNeeded: request.hardware >> 32))
    packet.append(bigEndian: UInt32(truncatingIfNeeded: request.hardware))
    packet += [UInt8](repeating: 0, count: 10 + 64 + 128)
    packet.append(bigEndian: dhcpCookie)
    packet += [DHCPOption.kind, 1, kind.rawValue, DHCPOption.server, 4]
    packet.append(bigEndian: server)
    if leaseSeconds != 0 {
      packet += [DHCPOption.leaseTime, 4]
      packet.append(bigEndian: leaseSeconds)
    }
    if kind != .refusal {
      packet += [DHCPOption.subnetMask, 4]
      packet.append(bigEndian: mask)
    }
    packet.append(DHCPOption.end)
    packet += [UInt8](repeating: DHCPOption.pad, count: max(Self.bytesMin - packet.count, 0))
    return packet
  }
}
