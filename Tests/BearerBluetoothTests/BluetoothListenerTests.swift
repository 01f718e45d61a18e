import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// The listener uses `Acceptor`, which reports the first failure of `accept` and then pauses.
@Suite struct BluetoothListenerTests {
  @Test func `a listener that cannot accept reports it once and pauses`() throws {
    let loop = try EventLoop()
    var wakeUps = 0
    loop.batchEnded = { wakeUps += 1 }
    // This end has data to read, so the loop calls `accept`. `accept` fails with EINVAL, because the socket does not
    // listen.
    var ends: [CInt] = [-1, -1]
    try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
    var byte: UInt8 = 1
    #expect(write(ends[1], &byte, 1) == 1)
    var told: [CInt] = []
    let listener = try BluetoothListener(loop, ends[0], { _, _ in }, shortage: { told.append($0?.code ?? 0) })
    defer { listener.close(); close(ends[1]) }
    serve(loop, for: .milliseconds(200))
    #expect(wakeUps < 5 && told == [EINVAL])
  }
}
