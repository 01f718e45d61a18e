import Primitives

/// A message from the server to a client (RFC 2131, section 4.3). A reply contains no router and no name server, so
/// that a phone keeps its own route to the Internet.
public struct DHCPReply: Equatable, Sendable {
  /// The DHCP message type (RFC 2132, section 9.6).
  public enum Kind: UInt8, Sendable {
    case offer = 2
    case acknowledgement = 5
    case refusal = 6
  }

  public var kind: Kind
  /// The request that this message answers.
  public var request: DHCPRequest
  /// The offered or leased address; 0 in a refusal, and in the reply to a client that configured its own address.
  public var address: UInt32
  /// The lease time in seconds; 0 if no address is offered or leased.
  public var leaseSeconds: UInt32

  public init(_ kind: Kind, to request: DHCPRequest, address: UInt32 = 0, leaseSeconds: UInt32 = 0) {
    self.kind = kind
    self.request = request
    self.address = address
    self.leaseSeconds = leaseSeconds
  }

  /// The destination address of the reply. The destination is the client's address if the client has an address and the
  /// reply confirms it. In all other cases, the destination is the broadcast address, because a client without an
  /// address does not answer ARP (RFC 2131, section 4.1).
  public var destination: UInt32 {
    kind == .acknowledgement && request.address != 0 ? request.address : 0xFFFF_FFFF
  }

  /// The minimum size of a message, in bytes. Every client accepts messages of this size (RFC 1542, section 2.1).
  static let bytesMin = 300

  /// The message as bytes, padded to at least `bytesMin`. `server` is the server's address.
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
