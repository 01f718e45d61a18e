import DHCP
import Testing

/// The first packet that udhcpc sends (DHCPDISCOVER), without its padding.
let discover: [UInt8] =
  [1, 1, 6, 0, 0x12, 0x34, 0x56, 0x78, 0, 5, 0x80, 0] + [UInt8](repeating: 0, count: 16)
  + [0x02, 0, 0, 0, 1, 0] + [UInt8](repeating: 0, count: 10 + 64 + 128) + [0x63, 0x82, 0x53, 0x63]
  + [53, 1, 1, 61, 7, 1, 2, 0, 0, 0, 1, 0, 57, 2, 2, 64, 55, 3, 1, 3, 6, 12, 3, 0x62, 0x6F, 0x62, 255, 0, 0]

@Test func `a request is decoded, and fields that the server does not need are skipped`() throws {
  #expect(
    try DHCPRequest(discover)
      == DHCPRequest(.discover, transaction: 0x1234_5678, flags: 0x8000, hardware: 0x0200_0000_0100))
  let end = discover.count - 3
  let request =
    Array(discover[..<240]) + [53, 1, 3, 0, 50, 4, 192, 168, 49, 201, 54, 4, 192, 168, 49, 1] + discover[end...]
  #expect(
    try DHCPRequest(request)
      == DHCPRequest(
        .request, transaction: 0x1234_5678, flags: 0x8000, hardware: 0x0200_0000_0100, wanted: 0xC0A8_31C9,
        server: 0xC0A8_3101))
}

@Test func `every truncated request is refused`() {
  // Each prefix ends before the message type, the packet's first option, is complete.
  for count in 0..<243 { #expect(throws: DHCPSyntaxError.self) { try DHCPRequest(Array(discover[..<count])) } }
}

@Test func `an option that extends past the packet is refused`() {
  for tail: [UInt8] in [
    [53], [53, 1], [53, 2, 1, 1], [50, 4, 1, 2, 3], [50, 3, 1, 2, 3], [54, 5, 1, 2, 3, 4, 5], [12, 255, 0],
  ] {
    #expect(throws: DHCPSyntaxError.self) { try DHCPRequest(discover[..<243] + tail) }
  }
}

/// All options that the server does not use are ignored, and never copied into the reply. Examples are overload, relay
/// agent information, client identifier and host name.
@Test func `other options are skipped, whatever they contain`() throws {
  let plain = try DHCPRequest(discover)
  for other: [UInt8] in [
    // The first row contains an empty option, a long option in two parts (RFC 3396), and a message type inside another
    // option.
    [12, 0], [12, 2, 0x1B, 0x5B, 12, 1, 0x0A], [82, 6, 53, 1, 7, 50, 1, 1], [61, 0],
    [61, 7, 1, 2, 0, 0, 0, 9, 9], [0, 0, 0],
  ] {
    #expect(try DHCPRequest(Array(discover[..<240]) + other + discover[240...]) == plain, "\(other)")
  }
  // The option “overload” states that the file and server name fields contain options. The server does not read these
  // fields, so a message type or a requested address in the fields has no effect.
  for start in [44, 108] {
    var packet = discover
    packet.replaceSubrange(start..<(start + 10), with: [53, 1, 7, 50, 4, 192, 168, 49, 1, 255])
    packet.insert(contentsOf: [52, 1, 3], at: 240)
    #expect(try DHCPRequest(packet) == plain)
    #expect(throws: DHCPSyntaxError.self) { try DHCPRequest(Array(packet[..<243]) + [255]) }
  }
  #expect(try DHCPRequest(discover + [53, 1, 7, 50, 4, 192, 168, 49, 1]) == plain, "behind the end")
}

/// RFC 3396 allows an option to be split into parts. Message type and addresses are so short that a split is malformed.
@Test func `an option that is split into parts is refused`() {
  for parts: [UInt8] in [[53, 0, 53, 1, 1], [50, 2, 192, 168, 50, 2, 49, 201], [54, 0, 54, 4, 192, 168, 49, 1]] {
    #expect(throws: DHCPSyntaxError.self) { try DHCPRequest(Array(discover[..<243]) + parts + [255]) }
  }
}

@Test func `a packet that is no request of an Ethernet client is refused`() {
  func changed(_ index: Int, _ byte: UInt8) -> [UInt8] {
    var packet = discover
    packet[index] = byte
    return packet
  }
  // The first rows: a reply, another medium, three wrong address lengths (the field has 16 bytes), a relay agent. The
  // second group of rows: a multicast sender, another protocol, an unknown message type, a server's message type.
  for (index, byte): (Int, UInt8) in [
    (0, 2), (1, 6), (2, 8), (2, 17), (2, 255), (24, 1), (28, 3), (236, 0), (242, 9), (242, 2),
  ] {
    #expect(throws: DHCPSyntaxError.self, "\(index)") { try DHCPRequest(changed(index, byte)) }
  }
  var nobody = discover
  for index in 28..<34 { nobody[index] = 0 }
  #expect(throws: DHCPSyntaxError.self) { try DHCPRequest(nobody) }
}

@Test func `a lease contains no router and no name server`() throws {
  let request = try DHCPRequest(discover)
  let packet = DHCPReply(.offer, to: request, address: 0xC0A8_31C9, leaseSeconds: 3600).encoded(
    server: 0xC0A8_3101, mask: 0xFFFF_FF00)
  let head: [UInt8] = [2, 1, 6, 0, 0x12, 0x34, 0x56, 0x78, 0, 0, 0x80, 0, 0, 0, 0, 0, 192, 168, 49, 201]
  #expect(Array(packet[..<20]) == head)
  #expect(Array(packet[28..<34]) == [0x02, 0, 0, 0, 1, 0])
  let options: [UInt8] = [
    0x63, 0x82, 0x53, 0x63, 53, 1, 2, 54, 4, 192, 168, 49, 1, 51, 4, 0, 0, 14, 16, 1, 4, 255, 255, 255, 0, 255,
  ]
  #expect(Array(packet[236..<(236 + options.count)]) == options)
  #expect(packet.count == 300)
}

@Test func `a refusal has no address and is broadcast`() throws {
  var request = try DHCPRequest(discover)
  request.address = 0xC0A8_31C9
  let refusal = DHCPReply(.refusal, to: request)
  #expect(refusal.destination == 0xFFFF_FFFF)
  #expect(Array(refusal.encoded(server: 1, mask: 2)[12..<20]) == [UInt8](repeating: 0, count: 8))
  #expect(DHCPReply(.acknowledgement, to: request, address: 0xC0A8_31C9).destination == 0xC0A8_31C9)
}
