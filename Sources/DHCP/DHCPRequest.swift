import Primitives

/// A message from a DHCP client (RFC 2131, section 2; options: RFC 2132). The type contains only the fields that this
/// server uses.
public struct DHCPRequest: Equatable, Sendable {
  /// The DHCP message type (RFC 2132, section 9.6).
  public enum Kind: UInt8, Sendable {
    case discover = 1
    case request = 3
    case decline = 4
    case release = 7
    case inform = 8
  }

  public var kind: Kind
  public var transaction: UInt32
  /// The flags of the message. The highest bit is set if the client cannot receive unicast datagrams without an
  /// address.
  public var flags: UInt16
  /// The current address of the client; 0 if the client has no address.
  public var address: UInt32
  /// The Ethernet address of the client, in the low 48 bits.
  public var hardware: UInt64
  /// The address that the client requests (option 50); nil without this option.
  public var wanted: UInt32?
  /// The address of the server that the client chose (option 54); nil without this option.
  public var server: UInt32?

  public init(
    _ kind: Kind, transaction: UInt32, flags: UInt16 = 0, address: UInt32 = 0, hardware: UInt64, wanted: UInt32? = nil,
    server: UInt32? = nil
  ) {
    self.kind = kind
    self.transaction = transaction
    self.flags = flags
    self.address = address
    self.hardware = hardware
    self.wanted = wanted
    self.server = server
  }

  /// The maximum size of a message, in bytes: the payload of one Ethernet frame.
  public static let bytesMax = 1500

  /// Parses a message. Throws if the bytes are not the message of a DHCP client on Ethernet. Also throws if a relay
  /// agent forwarded the message, because a group has no relay agent.
  public init(_ packet: [UInt8]) throws(DHCPSyntaxError) {
    var reader = ByteReader(packet.span.bytes, orThrow: DHCPSyntaxError())
    guard try reader.u8() == 1, try reader.u8() == 1, try reader.u8() == 6 else { throw DHCPSyntaxError() }
    _ = try reader.u8()
    transaction = try reader.u32()
    _ = try reader.u16()
    flags = try reader.u16()
    address = try reader.u32()
    _ = try reader.u64()
    guard try reader.u32() == 0 else { throw DHCPSyntaxError() }
    hardware = UInt64(try reader.u16()) << 32 | UInt64(try reader.u32())
    // The null address and multicast addresses identify no client (IEEE 802, section 8.2.2).
    if hardware == 0 || hardware >> 40 & 1 != 0 { throw DHCPSyntaxError() }
    // Skips the fields for the rest of the hardware address, the server name and the boot file.
    _ = try reader.span(10 + 64 + 128)
    guard try reader.u32() == dhcpCookie else { throw DHCPSyntaxError() }
    var kind: Kind?
    while reader.remaining > 0 {
      let option = try reader.u8()
      if option == DHCPOption.pad { continue }
      if option == DHCPOption.end { break }
      let length = Int(try reader.u8())
      switch option {
      case DHCPOption.kind:
        guard length == 1, let known = Kind(rawValue: try reader.u8()) else { throw DHCPSyntaxError() }
        kind = known
      case DHCPOption.wantedAddress:
        guard length == 4 else { throw DHCPSyntaxError() }
        wanted = try reader.u32()
      case DHCPOption.server:
        guard length == 4 else { throw DHCPSyntaxError() }
        server = try reader.u32()
      default: _ = try reader.span(length)
      }
    }
    guard let kind else { throw DHCPSyntaxError() }
    self.kind = kind
  }
}

/// The bytes are not a valid message of a DHCP client.
public struct DHCPSyntaxError: Error {
  public init() {}
}

/// The magic cookie that precedes the options (RFC 2131, section 3).
let dhcpCookie: UInt32 = 0x6382_5363

/// Option codes (RFC 2132).
enum DHCPOption {
  static let pad: UInt8 = 0
  static let subnetMask: UInt8 = 1
  static let wantedAddress: UInt8 = 50
  static let leaseTime: UInt8 = 51
  static let kind: UInt8 = 53
  static let server: UInt8 = 54
  static let end: UInt8 = 255
}
