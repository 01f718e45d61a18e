import Bearer
import Node
import Primitives
import Testing

@testable import Relay

private let hello: [UInt8] = [22, 3, 1, 2, 0, 1]
private let peer = NodeID(high: 1, low: 2)

/// The decision which inbound streams may begin a TLS handshake, and when. The tests use no socket.
struct AdmissionGateTests {
  var gate = AdmissionGate()
  var now = Instant.zero + .seconds(100)
  private var random = SeededRandom(seed: 1)

  private mutating func arrive(_ stream: UInt32, from source: UInt64? = nil, over bearer: BearerKind = .ethernet)
    -> Bool
  {
    gate.arrive(stream, source ?? UInt64(stream), over: bearer, random: .max, now: now)
  }

  private mutating func receive(_ bytes: [UInt8], from stream: UInt32) -> AdmissionGate.Verdict {
    bytes.withUnsafeBytes { gate.receive($0, from: stream, now: now) }
  }

  /// Starts handshakes from sources 1000 and up, until they occupy all handshake slots that unknown sources can get.
  private mutating func fillHandshakes() {
    for stream in 0..<UInt32(Admission.handshakesMax - Admission.reserved) {
      #expect(arrive(1000 + stream))
      guard case .opens = receive(hello, from: 1000 + stream) else {
        Issue.record("no slot for \(stream)")
        return
      }
    }
  }

  @Test mutating func `a handshake starts with the sixth byte of a ClientHello, and no byte is lost`() {
    #expect(arrive(1))
    let deadline = now + Admission.deadline(.ethernet)
    now = now + .seconds(1)
    #expect(receive(Array(hello[..<5]), from: 1) == .incomplete)
    #expect(
      receive([1], from: 1) == .opens(AdmissionGate.Opening(stream: 1, source: 1, bytes: hello, deadline: deadline)))
    #expect(gate.deadline == .never)
  }

  @Test mutating func `a stream that is not TLS is refused and counted, and frees its slot`() {
    for stream in 1...10 as ClosedRange<UInt32> {
      #expect(arrive(stream, from: 7))
      #expect(receive(Array("GET / HTTP/1.1".utf8), from: stream) == .refused)
    }
    #expect(gate.admission.refusals[Int(Admission.Refusal.notTLS.rawValue)] == 10)
    #expect(gate.admission.pendingStreams == 0 && gate.deadline == .never)
  }

  @Test mutating func `each stream has its own timeout, whatever the order of arrival`() {
    #expect(arrive(1, over: .bluetoothLE))
    #expect(arrive(2, over: .ethernet))
    #expect(gate.deadline == now + .seconds(5))
    #expect(gate.nextExpired(now: now + .seconds(5)) == 2 && gate.nextExpired(now: now + .seconds(5)) == nil)
    #expect(gate.deadline == now + .seconds(10))
    #expect(gate.nextExpired(now: now + .seconds(10)) == 1)
    #expect(gate.deadline == .never && gate.admission.pendingStreams == 0)
    #expect(gate.admission.refusals[Int(Admission.Refusal.silent.rawValue)] == 2)
  }

  @Test mutating func `the stream that has waited longest gets the slot of a handshake that ends`() {
    fillHandshakes()
    for stream in 1...2 as ClosedRange<UInt32> {
      #expect(arrive(stream))
      #expect(receive(hello, from: stream) == .waits)
    }
    #expect(gate.handshakeEnded(1000, .link(peer, .stranger), now: now)?.stream == 1)
    #expect(gate.handshakeEnded(1001, .link(peer, .stranger), now: now)?.stream == 2)
    #expect(gate.handshakeEnded(1002, .link(peer, .stranger), now: now) == nil)
  }

  @Test mutating func `a stream that has sent nothing does not compete for a slot`() {
    fillHandshakes()
    #expect(arrive(1))
    #expect(gate.handshakeEnded(1000, .link(peer, .stranger), now: now) == nil)
    guard case .opens = receive(hello, from: 1) else {
      Issue.record("a slot was free")
      return
    }
  }

  @Test mutating func `a stream that left while waiting gets no slot`() {
    fillHandshakes()
    #expect(arrive(1))
    #expect(receive(hello, from: 1) == .waits)
    gate.leave(1)
    #expect(gate.handshakeEnded(1000, .link(peer, .stranger), now: now) == nil)
    #expect(gate.admission.pendingStreams == 0)
  }

  @Test mutating func `a source of a known node has slots that unknown sources do not have`() {
    fillHandshakes()
    #expect(arrive(1, from: 77))
    #expect(receive(hello, from: 1) == .waits)
    #expect(gate.handshakeEnded(1000, .link(peer, .proven), now: now)?.stream == 1)
    #expect(arrive(2, from: 1000))
    guard case .opens = receive(hello, from: 2) else {
      Issue.record("the known have slots of their own")
      return
    }
  }

  @Test mutating func `a handshake without a link is charged to its address, and one with a link is not`() {
    func dial(_ end: AdmissionGate.HandshakeEnd, from source: UInt64) -> Bool {
      guard arrive(1, from: source), case .opens = receive(hello, from: 1) else { return false }
      _ = gate.handshakeEnded(1, end, now: now)
      return true
    }
    for end in [AdmissionGate.HandshakeEnd.link(peer, .proven), .link(peer, .stranger)] {
      #expect((0..<100).allSatisfy { _ in dial(end, from: 7) })
    }
    #expect((0..<100).count { _ in dial(.noLink, from: 8) } == 16)
  }

  @Test mutating func `a handshake with an expensive chain is charged several times`() {
    func dial(_ checks: Int, from source: UInt64) -> Bool {
      guard arrive(1, from: source), case .opens = receive(hello, from: 1) else { return false }
      _ = gate.handshakeEnded(1, .noLink, checks: checks, now: now)
      return true
    }
    #expect((0..<100).count { _ in dial(80, from: 8) } == 3)
    for _ in 0..<3 { gate.wasted(9, checks: 80, now: now) }
    #expect(!dial(0, from: 9))
  }

  @Test mutating func `a stalled handshake of the source with the most is evicted for a waiting source`() {
    fillHandshakes()
    _ = gate.handshakeEnded(1005, .link(peer, .stranger), now: now)
    #expect(arrive(1, from: 1010))
    guard case .opens = receive(hello, from: 1) else {
      Issue.record("a slot was free")
      return
    }
    #expect(gate.nextStalled(now: now + .seconds(1)) == nil, "nobody waits")
    #expect(arrive(2) && arrive(3))
    #expect(receive(hello, from: 2) == .waits && receive(hello, from: 3) == .waits)
    #expect(gate.nextStalled(now: now + .milliseconds(499)) == nil)
    #expect(gate.deadline == now + .milliseconds(500))
    now = now + .milliseconds(500)
    #expect(gate.nextStalled(now: now) == 1010)
    #expect(gate.handshakeEnded(1010, .noLink, now: now)?.stream == 2)
    #expect(gate.nextStalled(now: now) == 1000)
    #expect(gate.handshakeEnded(1000, .noLink, now: now)?.stream == 3)
    #expect(gate.nextStalled(now: now) == nil)
  }

  @Test mutating func `a handshake keeps its slot for at most two seconds while bytes arrive`() {
    fillHandshakes()
    #expect(arrive(1))
    #expect(receive(hello, from: 1) == .waits)
    for _ in 0..<4 {
      now = now + .milliseconds(400)
      for stream in 1000..<1024 as Range<UInt32> { gate.progressed(stream, now: now) }
      #expect(gate.nextStalled(now: now) == nil)
    }
    now = now + .milliseconds(399)
    #expect(gate.nextStalled(now: now) == nil && gate.deadline == now + .milliseconds(1))
    #expect(gate.nextStalled(now: now + .milliseconds(1)) == 1000)
  }

  /// Simulates an attack by a machine with many addresses. The machine opens a stream from each address and sends a
  /// byte on each stream every 0.4 s. Each stream that ends is replaced. Returns the time from the arrival of a
  /// newcomer's stream until its handshake begins. Nil if the stream is refused or expires.
  private mutating func newcomerBegins(besides addresses: UInt32) -> TimeSpan? {
    var number: UInt32 = 0
    var lastArrival: Instant?
    while true {
      while gate.admission.pendingStreams + gate.admission.handshakes < Int(addresses) {
        number += 1
        guard arrive(number, from: 10_000 + UInt64(number)) else { break }
        _ = receive(hello, from: number)
      }
      if lastArrival == nil && now >= Instant.zero + .seconds(120) {
        guard arrive(.max, from: 1) else { return nil }
        lastArrival = now
        if case .opens = receive(hello, from: .max) { return TimeSpan(nanoseconds: 0) }
      }
      now = now + .milliseconds(20)
      while let expired = gate.nextExpired(now: now) { if expired == .max { return nil } }
      if (now - Instant.zero).milliseconds % 400 == 0 {
        for stream in 1...number { gate.progressed(stream, now: now) }
      }
      while let stalled = gate.nextStalled(now: now) {
        if let next = gate.handshakeEnded(stalled, .noLink, now: now), next.stream == .max {
          return now - lastArrival!
        }
      }
    }
  }

  @Test(arguments: [24, 60, 100, 150] as [UInt32])
  mutating func `a newcomer starts within 3 s despite slow handshakes from many addresses`(addresses: UInt32) {
    let time = newcomerBegins(besides: addresses)
    #expect(time != nil && time! <= .seconds(3))
  }

  @Test mutating func `with more waiting addresses than slots a handshake has 0.5 s, but not over Bluetooth`() {
    fillHandshakes()
    for stream in 1...25 as ClosedRange<UInt32> {
      #expect(arrive(stream, from: UInt64(max(stream, 2))))
      #expect(receive(hello, from: stream) == .waits)
    }
    now = now + .milliseconds(400)
    for stream in 1000..<1024 as Range<UInt32> { gate.progressed(stream, now: now) }
    #expect(gate.nextStalled(now: now + .milliseconds(100)) == nil, "24 addresses wait")
    #expect(arrive(26) && receive(hello, from: 26) == .waits)
    #expect(gate.nextStalled(now: now + .milliseconds(99)) == nil)
    #expect(gate.nextStalled(now: now + .milliseconds(100)) == 1000)
    #expect(Admission.patience(.bluetoothLE, isCrowded: true) == Admission.patience(.bluetoothLE, isCrowded: false))
  }

  @Test mutating func `known addresses beyond their reserve are evicted for an unknown source`() {
    for source in 1...10 as ClosedRange<UInt32> {
      #expect(arrive(source))
      _ = receive(hello, from: source)
      #expect(gate.handshakeEnded(source, .link(peer, .proven), now: now) == nil)
    }
    var opened = 0
    for stream in 0..<40 as Range<UInt32> {
      #expect(arrive(1000 + stream, from: UInt64(1 + stream % 10)))
      if case .opens = receive(hello, from: 1000 + stream) { opened += 1 }
    }
    #expect(opened == Admission.handshakesMax - Admission.reserved / 2)
    #expect(arrive(1, from: 77))
    #expect(receive(hello, from: 1) == .waits)
    now = now + .milliseconds(500)
    let stalled = gate.nextStalled(now: now)
    #expect(stalled != nil)
    #expect(gate.handshakeEnded(stalled ?? 0, .noLink, now: now)?.stream == 1)
  }

  @Test mutating func `a handshake in a reserved slot is not evicted for an unknown source`() {
    #expect(arrive(1, from: 7))
    _ = receive(hello, from: 1)
    #expect(gate.handshakeEnded(1, .link(peer, .proven), now: now) == nil)
    for stream in 2...4 as ClosedRange<UInt32> {
      #expect(arrive(stream, from: 7))
      _ = receive(hello, from: stream)
    }
    now = now + .seconds(1)
    fillHandshakes()
    #expect(arrive(5))
    #expect(receive(hello, from: 5) == .waits)
    // Source 7 has the most handshakes, and they are overdue. But the handshakes of source 7 occupy reserved slots, so
    // no handshake is ended.
    #expect(gate.nextStalled(now: now) == nil)
    #expect(gate.nextStalled(now: now + .milliseconds(500)) == 1000)
  }

  @Test mutating func `a handshake over Bluetooth may be silent for 2.5 seconds`() {
    for stream in 0..<24 as Range<UInt32> {
      #expect(arrive(1000 + stream, over: .bluetoothLE))
      _ = receive(hello, from: 1000 + stream)
    }
    #expect(arrive(1))
    #expect(receive(hello, from: 1) == .waits)
    #expect(gate.nextStalled(now: now + .milliseconds(2499)) == nil)
    #expect(gate.nextStalled(now: now + .milliseconds(2500)) == 1000)
  }

  @Test mutating func `a free slot goes to the source with the fewest handshakes`() {
    fillHandshakes()
    #expect(arrive(1, from: 1000) && arrive(2))
    #expect(receive(hello, from: 1) == .waits && receive(hello, from: 2) == .waits)
    #expect(gate.handshakeEnded(1001, .link(peer, .stranger), now: now)?.stream == 2)
  }

  @Test mutating func `a free slot goes to the source with the fewest handshakes, even if its turn was later`() {
    fillHandshakes()
    _ = gate.handshakeEnded(1005, .link(peer, .stranger), now: now)
    #expect(arrive(3000) && receive(hello, from: 3000) != .waits)
    #expect(arrive(1, from: 1000) && arrive(2, from: 1005))
    #expect(receive(hello, from: 1) == .waits && receive(hello, from: 2) == .waits)
    #expect(gate.handshakeEnded(1001, .link(peer, .stranger), now: now)?.stream == 2)
  }

  @Test mutating func `the newest stream of a crowded source is evicted for a source without streams`() {
    var number: UInt32 = 0
    while gate.admission.pendingStreams <= Admission.dropFrom {
      number += 1
      #expect(arrive(number, from: UInt64(number / 4)))
    }
    let youngest = number - 1 - number % 4
    #expect(arrive(5000))
    #expect(gate.nextExpired(now: now) == youngest && gate.nextExpired(now: now) == nil)
    #expect(gate.admission.pendingStreams == Admission.dropFrom + 1)
  }

  /// Makes handshakes of 2 ms from new sources until the budget of strangers is used up.
  private mutating func useBudget() {
    for stream in 0..<300 as Range<UInt32> {
      #expect(arrive(2000 + stream))
      guard case .opens = receive(hello, from: 2000 + stream) else {
        gate.leave(2000 + stream)
        return
      }
      gate.spent(.milliseconds(2), by: 2000 + stream, now: now)
      _ = gate.handshakeEnded(2000 + stream, .noLink, now: now)
    }
  }

  /// Completes handshakes of 2 ms, and those that begin when they end. Returns the streams.
  private mutating func complete(_ opening: AdmissionGate.Opening?) -> [UInt32] {
    var (next, streams) = (opening, [] as [UInt32])
    while let stream = next?.stream {
      streams.append(stream)
      gate.spent(.milliseconds(2), by: stream, now: now)
      next = gate.handshakeEnded(stream, .noLink, now: now)
    }
    return streams
  }

  /// A machine sends complete hellos from `addresses` addresses, 1,600 a second for 5 s. Returns the streams whose
  /// handshakes began.
  private mutating func flood(addresses: UInt32, from first: UInt32) -> [UInt32] {
    var streams: [UInt32] = []
    for number in first..<first + 8000 {
      if number % 8 == 0 {
        now = now + .milliseconds(5)
        while gate.nextExpired(now: now) != nil {}
        streams += complete(gate.nextOpening(now: now))
      }
      guard arrive(number, from: 10_000 + UInt64(number % addresses)) else { continue }
      if case .opens(let opening) = receive(hello, from: number) { streams += complete(opening) }
    }
    return streams
  }

  @Test(arguments: [254, 100_000] as [UInt32])
  mutating func `handshakes from any number of addresses use a tenth of a processor`(addresses: UInt32) {
    _ = flood(addresses: addresses, from: 0)
    #expect((240...260).contains(flood(addresses: addresses, from: 8000).count))
  }

  @Test mutating func `a stream that waits for the budget begins at the deadline of the gate`() {
    useBudget()
    #expect(arrive(1))
    #expect(receive(hello, from: 1) == .waits)
    #expect(gate.nextOpening(now: now) == nil)
    #expect(gate.deadline > now && gate.deadline < now + .milliseconds(50))
    now = gate.deadline
    #expect(gate.nextOpening(now: now)?.stream == 1)
    #expect(gate.nextStalled(now: now + .seconds(5)) == nil)
  }

  @Test mutating func `no handshake is evicted for a stream that waits for the budget alone`() {
    #expect(arrive(5, from: 1))
    #expect(receive(hello, from: 5) != .waits)
    useBudget()
    #expect(arrive(3))
    #expect(receive(hello, from: 3) == .waits)
    #expect(gate.nextStalled(now: now + .seconds(1)) == nil)
  }

  @Test mutating func `a source that had no turn is before those that had one, and then the earliest turn counts`() {
    useBudget()
    for stream in [(11, 2001), (12, 2000), (13, 3000), (14, 2002)] as [(UInt32, UInt64)] {
      #expect(arrive(stream.0, from: stream.1))
      #expect(receive(hello, from: stream.0) == .waits)
    }
    now = now + .milliseconds(500)
    var order: [UInt32] = []
    while let opening = gate.nextOpening(now: now) { order.append(opening.stream) }
    #expect(order == [13, 12, 11, 14])
  }

  @Test mutating func `a newcomer begins at once despite complete hellos from 254 addresses`() {
    _ = flood(addresses: 254, from: 0)
    #expect(gate.admission.pendingStreams > Admission.dropFrom)
    #expect(arrive(.max, from: 1))
    #expect(receive(hello, from: .max) == .waits)
    now = now + .milliseconds(20)
    #expect(gate.nextOpening(now: now)?.stream == .max)
  }

  @Test mutating func `a known address begins while strangers have used up their time`() {
    #expect(arrive(1, from: 77))
    _ = receive(hello, from: 1)
    _ = gate.handshakeEnded(1, .link(peer, .proven), now: now)
    useBudget()
    #expect(arrive(2, from: 78) && arrive(3, from: 77))
    #expect(receive(hello, from: 2) == .waits)
    guard case .opens = receive(hello, from: 3) else {
      Issue.record("known addresses have time of their own")
      return
    }
  }

  @Test mutating func `a stream without time to finish begins after the others`() {
    #expect(arrive(1))
    now = now + .milliseconds(3501)
    useBudget()
    #expect(receive(hello, from: 1) == .waits)
    #expect(arrive(2))
    #expect(receive(hello, from: 2) == .waits)
    now = now + .milliseconds(500)
    #expect(gate.nextOpening(now: now)?.stream == 2)
    #expect(gate.nextOpening(now: now)?.stream == 1)
  }

  @Test mutating func `a pending stream of the latest turn is evicted for a source without one`() {
    useBudget()
    var number: UInt32 = 0
    while gate.admission.pendingStreams <= Admission.dropFrom {
      #expect(arrive(number, from: number < 10 ? 2000 + UInt64(number) : 4000 + UInt64(number)))
      number += 1
    }
    #expect(arrive(5000))
    #expect(gate.nextExpired(now: now) == 9 && gate.nextExpired(now: now) == nil)
    _ = arrive(5001, from: 2030)
    #expect(gate.nextExpired(now: now) == nil, "its turn was later")
  }

  @Test mutating func `bytes of a stream that has left are ignored`() {
    #expect(receive(hello, from: 9) == .refused)
    gate.leave(9)
    #expect(gate.admission.pendingStreams == 0)
  }

  @Test func `a source is an address without its port`() {
    let host = RemoteAddress.ip(IPEndpoint(high: 0, low: 0xFFFF_C000_0201, port: 5, scope: 0)).source
    #expect(RemoteAddress.ip(IPEndpoint(high: 0, low: 0xFFFF_C000_0201, port: 6, scope: 0)).source == host)
    #expect(RemoteAddress.ip(IPEndpoint(high: 0, low: 0xFFFF_C000_0202, port: 5, scope: 0)).source != host)
  }

  private func source(_ high: UInt64, _ low: UInt64, scope: UInt32 = 1) -> UInt64 {
    RemoteAddress.ip(IPEndpoint(high: high, low: low, port: 5, scope: scope)).source
  }

  @Test func `addresses of one IPv6 network are one source, and link-local ones are not`() {
    #expect(source(0x2001_0DB8_0000_0001, 1) == source(0x2001_0DB8_0000_0001, 2))
    #expect(source(0x2001_0DB8_0000_0001, 1) != source(0x2001_0DB8_0000_0002, 1))
    #expect(source(0xFE80_0000_0000_0000, 1) != source(0xFE80_0000_0000_0000, 2))
    #expect(source(0xFE80_0000_0000_0000, 1) != source(0xFE80_0000_0000_0000, 1, scope: 2))
  }

  @Test func `no IPv6 address is charged to another machine, to Bluetooth or as unknown`() {
    let linkLocal: UInt64 = 0xFE80_0000_0000_0000
    #expect(source(linkLocal, 0) != 0 && source(0, 2) != 0)
    for number in [0xFFFF_C000_0201, 1 << 48, 1 << 48 | 0xC0FF_EE00_0001, 0x2001_0DB8_0000_0001] as [UInt64] {
      #expect(source(linkLocal, number) != number && source(number, 1) != number)
      #expect(source(linkLocal, number) != source(number, 1))
    }
  }

  @Test func `each Bluetooth address is a source`() {
    func source(_ address: UInt64) -> UInt64 {
      RemoteAddress.bluetooth(BluetoothEndpoint(address: address, isRandom: true)).source
    }
    #expect(source(0xC0FF_EE00_0001) != source(0xC0FF_EE00_0002))
  }
}
