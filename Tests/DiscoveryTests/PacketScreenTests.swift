import CSystem
import Primitives
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

  /// A PTR record for the name of `name`, with this name as data.
  private func pointing(_ name: [UInt8], before records: Int = 0) -> [UInt8] {
    var packet = PacketBuilder()
    packet.record(name, type: 12, [0xC0, 12])
    for _ in 0..<records { packet.record([0xC0, 12], type: 12, [0xC0, 12]) }
    return packet.bytes
  }

  @Test func `a pointer that does not go back is refused, in a name or in data`() {
    let one = [1, 0x61] as [UInt8]
    #expect(admits(pointing(one + [0])))
    #expect(!admits(pointing(one + [0xC0, 12])), "to its own name")
    #expect(!admits(pointing([0xC0, 12])), "to itself")
    #expect(!admits(pointing(one + [0xC0, 20])), "forwards")
    #expect(!admits(pointing(one + [0xC0, 4])), "into the header")
    for data in [[0xC0, 25], [1, 0x61, 0xC0, 25], [0xC0, 60]] as [[UInt8]] {
      for type: UInt8 in [2, 12] {
        var packet = PacketBuilder()
        packet.record(one + [0], type: type, data)
        #expect(!admits(packet.bytes))
      }
      var packet = PacketBuilder()
      packet.record(one + [0], type: 33, [0, 0, 0, 0, 0, 1] + data.map { $0 == 25 ? 31 : $0 })
      #expect(!admits(packet.bytes))
    }
  }

  @Test func `a name in data fills the data`() {
    for (type, head) in [(2, []), (12, []), (33, [0, 0, 0, 0, 0, 1])] as [(UInt8, [UInt8])] {
      for (name, isWhole) in [([1, 0x61, 0], true), ([1, 0x61, 0, 0], false), ([1, 0x61], false), ([], false)]
        as [([UInt8], Bool)]
      {
        var packet = PacketBuilder()
        packet.record([0], type: type, head + name)
        #expect(admits(packet.bytes) == isWhole, "\(type): \(name)")
      }
    }
  }

  @Test func `a name has at most 255 bytes, however it is compressed`() {
    let label = [63] + [UInt8](repeating: 0x61, count: 63)
    let long = label + label + label
    #expect(admits(pointing(long + [61] + label.dropFirst(3) + [0])))
    #expect(!admits(pointing(long + [62] + label.dropFirst(2) + [0])))
    for (count, isShort) in [(61, true), (62, false)] {
      var packet = PacketBuilder()
      packet.record(long + [0], type: 16, [0])
      packet.record([UInt8(count)] + label.suffix(count) + [0xC0, 12], type: 16, [0])
      #expect(admits(packet.bytes) == isShort)
    }
  }

  @Test func `the work for all names of a packet is bounded by its bytes`() {
    let label = [63] + [UInt8](repeating: 0x61, count: 63)
    #expect(admits(pointing(label + label + label + [0], before: 10)))
    #expect(!admits(pointing(label + label + label + [0], before: 100)))
    var steps = 1000
    #expect(pointing(label + [0]).withUnsafeBytes { PacketScreen.nameEnd($0, 12, &steps) } == 77 && steps == 936)
    steps = 63
    #expect(pointing(label + [0]).withUnsafeBytes { PacketScreen.nameEnd($0, 12, &steps) } == nil)
  }

  @Test func `a packet with more than 128 questions and records is refused`() {
    for (count, isAdmitted) in [(128, true), (129, false)] {
      var packet = PacketBuilder()
      for _ in 0..<(count / 2) { packet.question(["a"], type: 12) }
      for _ in 0..<(count - count / 2) { packet.record([0], type: 16, [0]) }
      #expect(admits(packet.bytes) == isAdmitted)
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

  @Test func `packets that used the time of their source are refused until time has passed`() {
    var ends: [CInt] = [-1, -1]
    socketpair(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &ends)
    defer { for end in ends { close(end) } }
    let screen = PacketScreen()
    var long = PacketBuilder()
    for number in 0..<128 { long.record(PacketBuilder.name(["n\(number)", "local"]), type: 16, [0]) }
    var buffer = [UInt8](repeating: 0, count: 9000)
    func isAdmitted(_ now: Instant) -> Bool {
      _ = send(ends[1], long.bytes, long.bytes.count, 0)
      guard screen.admitsNext(of: ends[0], now: now) else { return false }
      _ = recv(ends[0], &buffer, buffer.count, 0)
      screen.handled()
      return true
    }
    let now = Instant.zero + .seconds(1000)
    let admitted = (0..<100_000).prefix { _ in isAdmitted(now) }.count
    #expect(admitted < 100_000 && !isAdmitted(now))
    #expect(isAdmitted(now + .seconds(1)))
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
