import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// Dials over an existing LE connection, whose ATT channel is a socket pair. An L2CAP channel that the dial opens fails
/// at once, because this machine has no controller with the simulated address.
@Suite final class L2CAPDialTests {
  private static let peer = BluetoothEndpoint(address: 0xC102_0304_0506, isRandom: true)

  private let loop: EventLoop
  private let attributes: AttributeConnections
  private var theirs: [CInt] = []
  private var outcomes: [DialOutcome] = []

  init() throws {
    loop = try EventLoop()
    attributes = AttributeConnections(loop, psm: 0x81)
  }

  deinit { for descriptor in theirs { close(descriptor) } }

  private func connection() throws -> RequestChannel {
    var ends: [CInt] = [-1, -1]
    #expect(socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
    theirs.append(ends[1])
    return try #require(attributes.adopt(ends[0], Self.peer))
  }

  private func dial(psm: UInt16?) -> L2CAPDial {
    let dial = L2CAPDial(loop, from: 0x0102_0304_0506, to: Self.peer, psm: psm, attributes)
    dial.start(timeout: .seconds(4)) { [self] outcome in outcomes.append(outcome) }
    return dial
  }

  @Test func `a restarted peer that this node had dialled is dialled at once`() throws {
    try connection().isOfOurDial = true
    _ = dial(psm: 0x81)
    guard case .failed(let reason, _)? = outcomes.first else {
      Issue.record("it waits")
      return
    }
    #expect(reason.description == "cannot open the channel")
  }

  @Test func `a peer that opened the connection gets time to dial first`() throws {
    _ = try connection()
    let dial = dial(psm: 0x81)
    #expect(outcomes.isEmpty)
    dial.cancel()
  }
}
