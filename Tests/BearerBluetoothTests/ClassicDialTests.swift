import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// Dials over two socket pairs. The first pair preserves datagram boundaries and stands for the SDP channel, on which
/// the dial reads the peer's service records. The second pair stands for the RFCOMM stream.
@Suite final class ClassicDialTests {
  private let loop: EventLoop
  /// The sockets that the dial opened, in order: nil for the SDP channel, otherwise the RFCOMM channel number. `theirs`
  /// stores the peer's ends of these sockets.
  private var opened: [UInt8?] = []
  private var theirs: [CInt] = []
  private var outcomes: [DialOutcome] = []

  init() throws { loop = try EventLoop() }

  deinit { for descriptor in theirs { close(descriptor) } }

  private func dial(timeout: TimeSpan = .seconds(4)) -> ClassicDial {
    let dial = ClassicDial(loop, to: 0x0102_0304_0506) { [self] (channel) throws(SystemError) in
      var ends: [CInt] = [-1, -1]
      let kind = CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue)
      if socketpair(AF_UNIX, kind, 0, &ends) != 0 { throw SystemError.last }
      opened.append(channel)
      theirs.append(ends[1])
      return ends[0]
    }
    dial.start(timeout: timeout) { [self] outcome in outcomes.append(outcome) }
    return dial
  }

  /// The next SDP request of the dial. Nil if the dial has sent no request, empty if the dial closed the SDP channel.
  private func question() -> [UInt8]? {
    loop.turn(waitMilliseconds: 0)
    var buffer = [UInt8](repeating: 0, count: 672)
    let count = recv(theirs[0], &buffer, buffer.count, CInt(MSG_DONTWAIT))
    return count < 0 ? nil : Array(buffer[..<count])
  }

  private func answer(_ pdu: [UInt8]) {
    _ = send(theirs[0], pdu, pdu.count, CInt(MSG_NOSIGNAL))
    loop.turn(waitMilliseconds: 0)
  }

  /// Answers SDP requests in fragments of the smallest size until the dial has the complete service record.
  private func answerAll(_ server: SDPServer) {
    while outcomes.isEmpty, opened.count == 1, let question = question(), !question.isEmpty {
      answer(server.respond(to: question, unitBytes: 48) ?? [])
    }
  }

  private var failure: String? {
    if case .failed(let reason, _)? = outcomes.first { reason.description } else { nil }
  }

  @Test func `a dial opens the stream on the RFCOMM channel from the service record`() {
    let dial = dial()
    answerAll(SDPServer(channel: 5))
    #expect(opened == [nil, 5] && outcomes.isEmpty)
    loop.turn(waitMilliseconds: 0)
    guard case .opened(let descriptor, let unitBytesMax, _)? = outcomes.first else {
      Issue.record("\(outcomes)")
      return
    }
    #expect(unitBytesMax == .max && outcomes.count == 1)
    // An empty result shows that the dial closed the SDP channel.
    #expect(question() == [])
    close(descriptor)
    dial.cancel()
    #expect(outcomes.count == 1)
  }

  @Test func `a dial to a device without the service record fails`() {
    _ = dial()
    _ = question()
    answer(bytes("07" + "0001" + "0005" + "0002" + "3500" + "00"))
    #expect(question() == [])
    #expect(failure == "the peer offers no Causeway service")
  }

  @Test func `a dial to a device that never answers fails at its deadline and closes everything`() {
    _ = dial(timeout: .milliseconds(30))
    #expect(question()?.isEmpty == false)
    serve(loop) { !outcomes.isEmpty }
    #expect(failure == "its service record did not arrive in time")
    #expect(question() == [] && opened == [nil])
  }

  @Test func `a dial fails if the device closes the channel for its service record`() {
    _ = dial()
    _ = question()
    close(theirs.removeFirst())
    loop.turn(waitMilliseconds: 0)
    #expect(failure == "the connection ended before the peer sent its channel")
  }

  @Test func `a dial yields to an incoming connection of the peer unless it has already opened its own stream`() {
    let dial = dial()
    answerAll(SDPServer(channel: 5))
    #expect(!dial.yields() && outcomes.isEmpty)
    dial.cancel()
    let other = ClassicDialTests.makeYielding(loop)
    #expect(other.yields() && !other.yields())
  }

  private static func makeYielding(_ loop: EventLoop) -> ClassicDial {
    let dial = ClassicDial(loop, to: 1) { (_) throws(SystemError) in socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0) }
    dial.start(timeout: .seconds(4)) { _ in }
    return dial
  }

  @Test func `a dial that cannot start fails at once`() {
    let dial = ClassicDial(loop, to: 1) { (_) throws(SystemError) in throw SystemError(code: ENETDOWN) }
    dial.start(timeout: .seconds(4)) { [self] outcome in outcomes.append(outcome) }
    #expect(failure == "cannot connect")
  }
}
