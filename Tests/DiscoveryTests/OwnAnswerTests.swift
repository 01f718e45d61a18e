import Testing

@testable import Discovery

/// A query of another box for services, with the answers that it knows.
private func query(knowing instances: [String], type: UInt8 = 12, service: [String] = ["_causeway", "_tcp", "local"])
  -> PacketBuilder
{
  var packet = PacketBuilder()
  packet.isQuery = true
  packet.question(service, type: type)
  for instance in instances {
    packet.record([0xC0, 12], type: 12, [UInt8(instance.utf8.count)] + Array(instance.utf8) + [0xC0, 12])
  }
  return packet
}

private func isNeedless(_ packet: PacketBuilder, own: String = "alice") throws -> Bool {
  let own = try #require(OwnAnswer(serviceType: "_causeway._tcp", instance: own))
  return try packet.bytes.withUnsafeBytes { own.isNeedless(try #require(DNSPacket($0))) }
}

struct OwnAnswerTests {
  @Test func `a query that knows the own service needs no answer`() throws {
    #expect(try isNeedless(query(knowing: ["alice"])))
    #expect(try isNeedless(query(knowing: ["bob", "alice", "carol"])))
    #expect(try isNeedless(query(knowing: ["ALICE"], service: ["_CAUSEWAY", "_tcp", "local"])))
    var whole = query(knowing: [])
    whole.record(
      PacketBuilder.name(["_causeway", "_tcp", "local"]), type: 12,
      PacketBuilder.name(["alice", "_causeway", "_tcp", "local"]))
    #expect(try isNeedless(whole))
  }

  @Test func `a query that does not know the own service is answered`() throws {
    #expect(try !isNeedless(query(knowing: [])))
    #expect(try !isNeedless(query(knowing: ["bob", "alic", "alicex"])))
    #expect(try !isNeedless(query(knowing: ["alice"], service: ["_other", "_tcp", "local"])))
  }

  @Test func `a query that asks for more is answered`() throws {
    #expect(try !isNeedless(query(knowing: ["alice"], type: 255)))
    var more = query(knowing: [])
    more.question(["alice", "_causeway", "_tcp", "local"], type: 33)
    more.record([0xC0, 12], type: 12, [5] + Array("alice".utf8) + [0xC0, 12])
    #expect(try !isNeedless(more))
  }

  @Test func `of the packets that continue a list only the one with the own service is read`() throws {
    for (instance, isOwn) in [("alice", true), ("bob", false)] {
      var packet = PacketBuilder()
      packet.isQuery = true
      packet.record(
        PacketBuilder.name(["_causeway", "_tcp", "local"]), type: 12,
        PacketBuilder.name([instance, "_causeway", "_tcp", "local"]))
      #expect(try isNeedless(packet) == !isOwn)
    }
    var empty = PacketBuilder()
    empty.isQuery = true
    #expect(try !isNeedless(empty))
  }

  @Test func `responses and probes are read`() throws {
    var response = query(knowing: ["alice"])
    response.isQuery = false
    #expect(try !isNeedless(response))
    var probe = query(knowing: ["alice"])
    probe.record([0xC0, 12], type: 12, section: 2, [0])
    #expect(try !isNeedless(probe))
  }

  @Test func `a name whose pointers lead in a circle is no name`() throws {
    var packet = PacketBuilder()
    packet.isQuery = true
    packet.question(["_causeway", "_tcp", "local"], type: 12)
    packet.record([0xC0, 12], type: 12, [5] + Array("alice".utf8) + [0xC0, 48])
    #expect(try !isNeedless(packet))
  }

  @Test func `no mutation of one byte traps`() throws {
    let own = try #require(OwnAnswer(serviceType: "_causeway._tcp", instance: "alice"))
    let whole = query(knowing: ["alice", "bob"]).bytes
    var needless = 0
    for index in whole.indices {
      for value in UInt8.min...UInt8.max {
        var packet = whole
        packet[index] = value
        packet.withUnsafeBytes { if let parsed = DNSPacket($0), own.isNeedless(parsed) { needless += 1 } }
      }
    }
    #expect(needless > 0)
  }

  @Test func `names that are no labels are refused`() {
    #expect(OwnAnswer(serviceType: "_causeway._tcp", instance: "") == nil)
    #expect(OwnAnswer(serviceType: "_causeway._tcp", instance: String(repeating: "x", count: 64)) == nil)
    #expect(OwnAnswer(serviceType: "_causeway..tcp", instance: "a") == nil)
  }
}
