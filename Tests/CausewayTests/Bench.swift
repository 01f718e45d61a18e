import Testing

@testable import Causeway

/// A node with an open session, whose daemon the test plays.
struct Bench {
  let daemon: DaemonStandIn
  let node: Node
  let session: Session
  let number: UInt32

  init(_ members: Address...) async throws {
    daemon = try DaemonStandIn()
    node = try await daemon.connect()
    session = try await node.openSession("chat", rules: Rules(membersMax: 16))
    number = try await daemon.asked(4).number
    var events = session.events.makeAsyncIterator()
    for member in members {
      daemon.tell(memberPacket(number, member, 1))
      _ = try await events.next()
    }
  }

  func tell(_ type: UInt8, _ number: UInt32, _ fields: (inout PacketWriter) -> Void) {
    daemon.tell(packet(type, number, fields))
  }

  func sent(_ request: UInt32, _ address: Address, _ delivery: Delivery) {
    tell(138, request) {
      $0.put(address)
      $0.put([delivery.rawValue])
    }
  }

  func done(_ request: UInt32, _ code: UInt8 = 0) { tell(128, request) { $0.put([code, 0]) } }
}
