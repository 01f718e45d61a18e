import CAvahi
import CSystem
import Primitives
import Testing

@testable import Discovery

/// The shares of the built-in responder's record cache that machines get.
struct RecordSharesTests {
  private let now = Instant.zero + .seconds(1000)

  /// A machine's announcement of a service, with four records.
  private func announcement(_ number: Int, seconds: UInt8 = 120) -> [UInt8] {
    var packet = PacketBuilder()
    let type = PacketBuilder.name(["_causeway", "_tcp", "local"])
    let instance = PacketBuilder.name(["n\(number)", "_causeway", "_tcp", "local"])
    let host = PacketBuilder.name(["h\(number)", "local"])
    packet.record(type, type: 12, seconds: seconds, instance)
    packet.record(instance, type: 33, seconds: seconds, [0, 0, 0, 0, 0x1B, 0x58] + host)
    packet.record(instance, type: 16, seconds: seconds, [1, 0x61])
    packet.record(host, type: 1, seconds: seconds, [10, 0, UInt8(number >> 8 & 255), UInt8(number & 255)])
    return packet.bytes
  }

  private func admits(
    _ shares: inout RecordShares, _ packet: [UInt8], from source: UInt64, on interface: UInt32 = 2,
    after seconds: UInt64 = 0
  ) -> Bool {
    packet.withUnsafeBytes { shares.admits($0, from: source, on: interface, now: now + .seconds(seconds)) }
  }

  private func v4(_ host: UInt64) -> UInt64 { 0xFFFF_0A00_0000 | host }

  @Test func `one machine gets half of the cache, and another machine still gets a share`() {
    var shares = RecordShares(seed: 1)
    let admitted = (0..<300).count { admits(&shares, announcement($0), from: v4(1)) }
    #expect(admitted == RecordShares.recordsMax / 2 / 4)
    #expect(admits(&shares, announcement(1000), from: v4(2)))
  }

  @Test func `no IPv6 address is charged as unknown or as an IPv4 address`() {
    func source(_ high: UInt64, _ low: UInt64) -> UInt64 {
      let bytes = [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
      return cavahi_source6(bytes)
    }
    let linkLocal: UInt64 = 0xFE80_0000_0000_0000
    for source in [source(linkLocal, 0), source(0, 2), source(linkLocal, v4(1)), source(linkLocal, v4(2))] {
      var shares = RecordShares(seed: 1)
      let admitted = (0..<300).count { admits(&shares, announcement($0), from: source) }
      #expect(admitted == RecordShares.recordsMax / 2 / 4)
      #expect(admits(&shares, announcement(1000), from: v4(1)))
      #expect((2000..<2100).allSatisfy { admits(&shares, announcement($0), from: v4(3)) }, "the cache of IPv4 is empty")
    }
    #expect(source(linkLocal, 1) != source(linkLocal, 2))
    #expect(source(0x2001_0DB8_0000_0001, 1) == source(0x2001_0DB8_0000_0001, 2))
  }

  @Test func `a known record is admitted again at no cost`() {
    var shares = RecordShares(seed: 1)
    for number in 0..<300 { _ = admits(&shares, announcement(number), from: v4(1)) }
    for _ in 0..<1000 { #expect(admits(&shares, announcement(7), from: v4(1))) }
    #expect(admits(&shares, announcement(7), from: v4(2)), "repeated by another machine")
    #expect(admits(&shares, announcement(1000), from: v4(2)))
  }

  @Test func `a record is the same in upper and lower case, compressed or not`() {
    var shares = RecordShares(seed: 1)
    func packet(_ names: [UInt8], _ data: [UInt8]) -> [UInt8] {
      var packet = PacketBuilder()
      packet.record(names, type: 12, data)
      return packet.bytes
    }
    let type = ["_causeway", "_tcp", "local"]
    let long = packet(PacketBuilder.name(type), PacketBuilder.name(["N"] + type))
    let short = packet(PacketBuilder.name(["_CAUSEWAY", "_tcp", "local"]), [1, 0x6E, 0xC0, 12])
    #expect(admits(&shares, long, from: v4(1)) && admits(&shares, short, from: v4(1)))
    // The two spellings are one record. A machine gets half of the cache, and this record occupies one slot of its
    // half.
    let admitted = (0..<600).count { number in
      var packet = PacketBuilder()
      packet.record(PacketBuilder.name(["x\(number)", "local"]), type: 16, [0])
      return admits(&shares, packet.bytes, from: v4(1))
    }
    #expect(admitted == RecordShares.recordsMax / 2 - 1)
  }

  @Test func `expired records and goodbyes free their slots`() {
    var shares = RecordShares(seed: 1)
    for number in 0..<300 { _ = admits(&shares, announcement(number), from: v4(1)) }
    #expect(!admits(&shares, announcement(900), from: v4(1)))
    #expect(admits(&shares, announcement(7, seconds: 0), from: v4(1)), "a goodbye")
    #expect(admits(&shares, announcement(900), from: v4(1), after: 1))
    #expect(!admits(&shares, announcement(901), from: v4(1), after: 119))
    #expect(admits(&shares, announcement(901), from: v4(1), after: 120))
  }

  @Test func `each interface and each IP version has its own cache`() {
    var shares = RecordShares(seed: 1)
    for number in 0..<300 { _ = admits(&shares, announcement(number), from: v4(1)) }
    #expect(admits(&shares, announcement(900), from: v4(1), on: 3))
    #expect(admits(&shares, announcement(900), from: 0x0200_00FF_FE00_0001))
    #expect(!admits(&shares, announcement(901), from: v4(1)))
  }

  @Test func `questions are not charged, and no packet traps`() {
    var shares = RecordShares(seed: 1)
    var question = PacketBuilder()
    question.isQuery = true
    for number in 0..<600 { question.record(PacketBuilder.name(["x\(number)", "local"]), type: 16, [0]) }
    #expect(admits(&shares, question.bytes, from: v4(1)))
    #expect(admits(&shares, announcement(1), from: v4(1)))
    let packet = announcement(5)
    for index in 12..<packet.count {
      for value in UInt8.min...UInt8.max {
        var changed = packet
        changed[index] = value
        let isWhole = changed.withUnsafeBytes { PacketScreen.admits($0) }
        if isWhole { _ = admits(&shares, changed, from: v4(3)) }
      }
    }
  }
}
