import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

/// An acceptor over a pipe that is always readable. Each test supplies its own `accept`.
@Suite struct AcceptorTests {
  private func makeAcceptor(
    _ loop: EventLoop, accept: @escaping (CInt) -> Acceptor.Outcome, shortage: @escaping (SystemError?) -> Void
  ) throws -> (Acceptor, CInt) {
    let pipe = try makePipe()
    put(pipe.write)
    return (try Acceptor(loop, pipe.read, accept: accept, shortage: shortage), pipe.write)
  }

  @Test func `a listener that cannot accept pauses, reports it once, and tries again`() throws {
    let loop = try EventLoop()
    var attempts: [Instant] = []
    var told: [CInt] = []
    let (acceptor, other) = try makeAcceptor(
      loop,
      accept: { _ in
        attempts.append(monotonicNow())
        return Acceptor.Outcome(SystemError(code: EMFILE))
      }, shortage: { told.append($0?.code ?? 0) })
    defer { acceptor.close(); close(other) }
    serve(loop) { attempts.count == 2 }
    try #require(attempts.count == 2)
    #expect(attempts[1] - attempts[0] >= Acceptor.restTime)
    #expect(told == [EMFILE])
  }

  @Test func `one wake-up accepts sixteen connections and leaves the rest to the next`() throws {
    let loop = try EventLoop()
    var accepted = 0
    let (acceptor, other) = try makeAcceptor(
      loop,
      accept: { _ in
        accepted += 1
        return .taken
      }, shortage: { _ in })
    defer { acceptor.close(); close(other) }
    loop.turn(waitMilliseconds: 0)
    #expect(accepted == Acceptor.acceptsMax)
    loop.turn(waitMilliseconds: 0)
    #expect(accepted == 2 * Acceptor.acceptsMax)
  }

  @Test func `a connection that broke while it was queued does not stop the listener`() throws {
    let loop = try EventLoop()
    var outcomes: [Acceptor.Outcome] = [.init(SystemError(code: ECONNABORTED)), .taken, .none]
    var told = 0
    let (acceptor, other) = try makeAcceptor(
      loop, accept: { _ in outcomes.removeFirst() }, shortage: { _ in told += 1 })
    defer { acceptor.close(); close(other) }
    loop.turn(waitMilliseconds: 0)
    #expect(outcomes.isEmpty && told == 0)
  }

  @Test func `an acceptor closed from its own callback accepts nothing more`() throws {
    let loop = try EventLoop()
    var acceptor: Acceptor?
    var attempts = 0
    let (made, other) = try makeAcceptor(
      loop,
      accept: { _ in
        attempts += 1
        acceptor?.close()
        return .taken
      }, shortage: { _ in })
    acceptor = made
    defer { close(other) }
    loop.turn(waitMilliseconds: 0)
    loop.turn(waitMilliseconds: 0)
    #expect(attempts == 1)
  }
}
