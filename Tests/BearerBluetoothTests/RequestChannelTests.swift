import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// A channel over a socket pair that preserves datagram boundaries, as L2CAP does. In these tests a PDU that begins
/// with 1 is a request, and all other PDUs are answers.
@Suite struct RequestChannelTests {
  private let loop: EventLoop
  private let peer = BluetoothEndpoint(address: 1, isRandom: false)

  init() throws { loop = try EventLoop() }

  private func open(endsByNonsense: Bool = false, idleMax: TimeSpan = .seconds(30)) throws -> (RequestChannel, CInt) {
    var ends: [CInt] = [-1, -1]
    let kind = CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue)
    try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
    let rules = RequestChannel.Rules(
      idleMax: idleMax, unitBytesMax: 8, requestsMax: 4, endsByNonsense: endsByNonsense)
    let channel = try RequestChannel(loop, ends[0], peer, rules) { pdu in pdu[0] == 1 ? [9] + pdu : nil }
    return (channel, ends[1])
  }

  private func tell(_ theirs: CInt, _ pdu: [UInt8]) {
    _ = send(theirs, pdu, pdu.count, CInt(MSG_NOSIGNAL))
    loop.turn(waitMilliseconds: 0)
  }

  /// The next PDU from the channel. Nil without a PDU, empty if the channel was closed.
  private func heard(_ theirs: CInt) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 16)
    let count = recv(theirs, &buffer, buffer.count, CInt(MSG_DONTWAIT))
    return count < 0 ? nil : Array(buffer[..<count])
  }

  @Test func `a request of the peer is answered while our own request is pending`() throws {
    let (channel, theirs) = try open()
    var answers: [[UInt8]?] = []
    channel.ask([5]) { pdu in
      answers.append(pdu)
      return pdu != [7]
    }
    #expect(heard(theirs) == [5])
    tell(theirs, [1, 2])
    #expect(heard(theirs) == [9, 1, 2] && answers == [])
    // A PDU that is not an answer leaves the request pending.
    tell(theirs, [7])
    tell(theirs, [6])
    tell(theirs, [8])
    #expect(answers == [[7], [6]])
    channel.close()
    close(theirs)
  }

  @Test func `a pending request fails when its channel closes`() throws {
    let (channel, theirs) = try open()
    var isTold = false, isClosed = false
    channel.closed = { _ in isClosed = true }
    channel.ask([5]) { pdu in
      isTold = pdu == nil
      return true
    }
    close(theirs)
    loop.turn(waitMilliseconds: 0)
    #expect(isTold && isClosed)
  }

  @Test(arguments: [false, true]) func `an invalid PDU closes a channel only if the channel's rules require it`(
    _ endsByNonsense: Bool
  ) throws {
    let (channel, theirs) = try open(endsByNonsense: endsByNonsense)
    tell(theirs, [7])
    #expect((heard(theirs) == []) == endsByNonsense)
    channel.close()
    close(theirs)
  }

  @Test func `the channel of an idle peer is closed`() throws {
    let (_, theirs) = try open(idleMax: .milliseconds(20))
    var isClosed = false
    serve(loop) {
      isClosed = isClosed || heard(theirs) == []
      return isClosed
    }
    #expect(isClosed)
    close(theirs)
  }
}
