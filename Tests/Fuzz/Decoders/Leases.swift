import DHCP
import FuzzSupport
import Primitives

/// Handles a sequence of DHCP requests, some seconds apart. In the input, each request follows its length. An address
/// must never belong to two clients at the same time.
func fuzzLeases(_ input: UnsafeRawBufferPointer) {
  let first: UInt32 = 0xC0A8_31C9
  var leases = DHCPLeases(server: 0xC0A8_3101, addresses: first...(first + 3))
  var now = Instant.zero
  var holders: [UInt32: (hardware: UInt64, until: Instant)] = [:]
  var script = Script(input)
  while !script.isOver {
    now = now + .seconds(UInt64(script.u8()) * 8)
    let length = Int(script.u8()) << 8 | Int(script.u8())
    guard let request = try? DHCPRequest(Array(script.bytes(length))) else { continue }
    if request.kind == .release || request.kind == .decline {
      holders = holders.filter { $0.value.hardware != request.hardware }
    }
    guard let reply = leases.reply(to: request, now: now, isStation: { _ in false }) else { continue }
    let packet = reply.encoded(server: 0xC0A8_3101, mask: 0xFFFF_FF00)
    expect(packet.count >= 300 && packet.count <= DHCPRequest.bytesMax, "a reply of \(packet.count) bytes")
    expect((try? DHCPRequest(packet)) == nil, "a reply that is a request")
    guard reply.kind == .acknowledgement, reply.leaseSeconds > 0 else { continue }
    expect((first...(first + 3)).contains(reply.address), "an address that is not its own")
    if let holder = holders[reply.address] {
      expect(holder.hardware == request.hardware || holder.until <= now, "one address for two")
    }
    holders = holders.filter { $0.value.hardware != request.hardware }
    holders[reply.address] = (request.hardware, now + .seconds(UInt64(reply.leaseSeconds)))
  }
}
