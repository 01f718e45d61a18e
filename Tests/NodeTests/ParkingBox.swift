import Frame
import Link
import Primitives
import TestSupport
import Testing

@testable import Node

/// A relay with four Bluetooth connections, and surrounding leaves that link with this relay over Bluetooth.
final class ParkingBox {
  let bench: Bench
  private(set) var slots: [Int: Int] = [:]

  init(relays: Bool = true, slots: Int = 4, encryption: EncryptionPreference = .none) {
    bench = Bench(20, relays: relays, encryption: encryption, bluetoothSlots: slots)
  }

  /// Discovery finds the node `person` over Bluetooth.
  func hear(_ person: Int, relays: Bool = false) {
    bench.handle(
      .candidateFound(FoundCandidate(UInt32(person), .bluetoothLE, hint: bench.id(person).high, relays: relays)))
  }

  /// Opens a link to `person` and receives its hello and advertisements. If `isOwn`, the relay dialled, otherwise the
  /// leaf did.
  func link(
    _ person: Int, _ bearer: BearerKind = .bluetoothLE, capabilities: Capabilities = .parks, isOwn: Bool = false
  ) {
    let slot = bench.open(person, bearer, dialled: isOwn ? UInt32(person) : nil)
    slots[person] = slot
    let relays = capabilities.contains(.relay)
    bench.receive(
      frame(.hello, from: bench.id(person), helloPayload(bench.id(person), capabilities: capabilities)), on: slot)
    bench.receive(bench.topology(person, [20], relays: relays), on: slot)
    bench.receive(bench.profile(person), on: slot)
  }

  /// The leaf `person` confirms that its link is parked, which means kept without a connection. After the confirmation,
  /// the link's stream ends.
  func agree(_ person: Int) {
    let slot = slots[person] ?? 0
    bench.receive(goodbye(of: person), on: slot)
    bench.handle(.linkClosed(slot))
  }

  func goodbye(of person: Int, retryAfterSeconds: UInt16 = 0) -> [UInt8] {
    let goodbye = Goodbye(reason: .parked, retryAfterSeconds: retryAfterSeconds)
    return frame(.goodbye, from: bench.id(person), encoded { goodbye.write(to: &$0) })
  }

  func state(_ person: Int) -> Link.State { bench.node.link(slots[person] ?? 0).state }
  var parking: [Int] { slots.keys.sorted().filter { state($0) == .parking } }
  var dials: [UInt32] {
    bench.takeCommands().compactMap { if case .dial(let handle) = $0 { handle } else { nil } }
  }

  /// Receives a frame of one neighbour for another neighbour.
  func say(_ from: Int, to other: Int) {
    let header = FrameHeader(
      type: .segment, ttl: 16, priority: .interactive, payloadByteCount: 5, destination: bench.id(other),
      source: bench.id(from), identifier: 9)
    bench.receive(encoded { header.write(to: &$0) } + [1, 2, 3, 4, 5], on: slots[from] ?? 0)
  }

  /// Lets time pass. All neighbours that are connected send pings, so that their links stay alive.
  func pass(_ span: TimeSpan) {
    let end = bench.now + span
    while bench.now < end {
      for (person, slot) in slots.sorted(by: { $0.key < $1.key }) where state(person) == .up {
        bench.receive(frame(.ping, from: bench.id(person), [UInt8](repeating: 7, count: 8)), on: slot)
      }
      bench.pass(.milliseconds(500))
    }
  }

  /// Lets 15 s pass. Leaves confirm the parking, and leaves that the relay dials are linked.
  func settle() {
    for _ in 0..<30 {
      for person in parking { agree(person) }
      for handle in dials { link(Int(handle), isOwn: true) }
      pass(.milliseconds(500))
    }
    for slot in slots.values { _ = bench.sent(on: slot) }
  }

  var parked: [Int] { slots.keys.sorted().filter { state($0) == .parked } }

  /// A relay with four leaves. The link of one leaf is parked, and one of the four connections is free.
  static func full() -> (box: ParkingBox, parked: Int) {
    let box = ParkingBox()
    for person in 1...4 {
      box.hear(person)
      box.link(person)
    }
    box.settle()
    #expect(box.parked.count == 1 && box.parking == [] && box.dials == [])
    return (box, box.parked.first ?? 1)
  }

  func other(than person: Int) -> Int { person == 2 ? 3 : 2 }

  /// A leaf as the node under test, linked with relay 1. Returns the slot of that link.
  static func leaf(encryption: EncryptionPreference = .none) throws -> (box: ParkingBox, slot: Int) {
    let box = ParkingBox(relays: false, encryption: encryption)
    box.hear(1, relays: true)
    box.link(1, capabilities: .relay, isOwn: true)
    box.pass(.seconds(1))
    _ = box.bench.takeCommands()
    return (box, try #require(box.slots[1]))
  }

  /// Sends a message from an application of the node under test.
  func send(to person: Int) throws {
    let text = [UInt8]("hi".utf8)
    _ = try bench.node.send(kind: 1, text.span.bytes, to: bench.id(person), lane: .interactive, now: bench.now)
    bench.drain()
  }
}
