import CSystem
import Testing

@testable import Discovery

/// A multicast DNS packet that is built record by record.
struct PacketBuilder {
  var isQuery = false
  private var counts = [0, 0, 0, 0]
  private var body: [UInt8] = []

  var bytes: [UInt8] { [0, 0, isQuery ? 0 : 0x84, 0] + counts.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] } + body }

  static func name(_ labels: [String]) -> [UInt8] { labels.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0] }

  mutating func question(_ labels: [String], type: UInt8) {
    counts[0] += 1
    body += Self.name(labels) + [0, type, 0, 1]
  }

  /// Adds a record. `section` is 1 for answers, 2 for authority, 3 for additional records.
  mutating func record(_ name: [UInt8], type: UInt8, section: Int = 1, seconds: UInt8 = 120, _ data: [UInt8]) {
    counts[section] += 1
    body += name + [0, type, 0, 1, 0, 0, 0, seconds, UInt8(data.count >> 8), UInt8(data.count & 255)] + data
  }
}

private func admits(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { PacketScreen.admits($0) } }

struct PacketScreenTests {
  private let honest: [UInt8] = {
    var packet = PacketBuilder()
    packet.question(["_causeway", "_tcp", "local"], type: 12)
    packet.record([0xC0, 12], type: 12, [5] + Array("alice".utf8) + [0xC0, 12])
    packet.record([0xC0, 12], type: 33, section: 3, [0, 0, 0, 0, 0x1B, 0x58, 0])
    packet.record(PacketBuilder.name(["host", "local"]), type: 1, section: 3, [10, 0, 0, 1])
    return packet.bytes
  }()

  @Test func `an ordinary answer is accepted`() {
    #expect(admits(honest))
  }

  @Test func `a truncated packet is refused`() {
    for count in 0..<honest.count { #expect(!admits(Array(honest[..<count]))) }
  }

  @Test(arguments: 1...3) func `a CNAME record in any section is refused`(section: Int) {
    var packet = PacketBuilder()
    packet.record(PacketBuilder.name(["a", "local"]), type: 5, section: section, [0xC0, 12])
    #expect(!admits(packet.bytes))
  }

  @Test func `a question for a CNAME is accepted`() {
    var packet = PacketBuilder()
    packet.question(["a", "local"], type: 5)
    #expect(admits(packet.bytes))
  }

  @Test func `reserved label types are refused`() {
    for type: UInt8 in [0x40, 0x80] {
      var packet = honest
      packet[12] = type | 9
      #expect(!admits(packet))
    }
  }

  @Test func `counts larger than the packet are refused`() {
    var packet = honest
    for offset in [4, 6, 8, 10] {
      packet[offset] = 0xFF
      #expect(!admits(packet))
      packet[offset] = 0
    }
  }

  @Test func `a packet with any byte changed never traps`() {
    for index in honest.indices {
      for value in UInt8.min...UInt8.max {
        var packet = honest
        packet[index] = value
        _ = admits(packet)
      }
    }
  }

  @Test func `a refused datagram leaves the queue, and the next one is checked on its own`() {
    var ends: [CInt] = [-1, -1]
    socketpair(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &ends)
    defer { for end in ends { close(end) } }
    let screen = PacketScreen()
    let tooLong = honest + [UInt8](repeating: 0, count: PacketScreen.packetBytesMax)
    for packet in [[], Array(honest.dropLast()), tooLong, honest] { _ = send(ends[1], packet, packet.count, 0) }
    #expect(!screen.admitsNext(of: ends[0]))
    #expect(!screen.admitsNext(of: ends[0]))
    #expect(!screen.admitsNext(of: ends[0]))
    #expect(screen.admitsNext(of: ends[0]))
    #expect(screen.refusedCount == 3)
    var buffer = [UInt8](repeating: 0, count: honest.count + 1)
    #expect(recv(ends[0], &buffer, buffer.count, 0) == honest.count)
    #expect(Array(buffer.dropLast()) == honest)
  }
}
