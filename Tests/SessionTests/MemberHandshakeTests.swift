import Primitives
import Testing

@testable import Session

/// The handshake with one member, without sessions or tables.
@Suite struct MemberHandshakeTests {
  private let start = Instant.zero + .seconds(1000)

  private func begun() -> MemberHandshake {
    var handshake = MemberHandshake()
    handshake.begin(7, at: start)
    return handshake
  }

  @Test func `an end is connected when both numbers are confirmed`() {
    var handshake = begun()
    handshake.restartedByOther(9)
    #expect(handshake.connect() == false)
    handshake.confirmNumber()
    #expect(handshake.connect() == false)
    handshake.confirmTheirNumber()
    #expect(handshake.connect() == true)
    #expect(handshake.phase == .connected)
    #expect(handshake.connect() == false, "the phase changes once")
  }

  @Test func `a new number of the other end must be confirmed again`() {
    var handshake = begun()
    handshake.restartedByOther(9)
    handshake.confirmNumber()
    handshake.confirmTheirNumber()
    _ = handshake.connect()
    handshake.restartedByOther(10)
    #expect(handshake.phase == .connecting && handshake.theirNumber == 10)
    #expect(handshake.connect() == false)
    handshake.confirmTheirNumber()
    #expect(handshake.connect() == true)
  }

  @Test func `a new number of this end must be confirmed again`() {
    var handshake = begun()
    handshake.restartedByOther(9)
    handshake.confirmNumber()
    handshake.confirmTheirNumber()
    handshake.begin(8, at: start)
    #expect(handshake.number == 8 && handshake.theirNumber == 9 && !handshake.isNumberConfirmed)
    handshake.confirmTheirNumber()
    #expect(handshake.connect() == false)
  }

  @Test func `a handshake that waits for a decision sends nothing`() {
    var handshake = MemberHandshake()
    handshake.begin(7, at: .never)
    #expect(!handshake.isDue(start + .seconds(3600)))
    handshake.schedule(at: start)
    #expect(handshake.isDue(start))
  }

  @Test func `a handshake message is repeated at its time until the end is connected`() {
    var handshake = begun()
    #expect(handshake.isDue(start))
    handshake.sent(start, next: start + .seconds(10))
    #expect(!handshake.isDue(start) && handshake.nextDeadline(after: start) == start + .seconds(10))
    handshake.cancelMessage()
    #expect(handshake.nextDeadline(after: start) == .never)
  }

  @Test func `a connected end answers a repeated message, but not an answer to its own`() {
    var handshake = begun()
    handshake.restartedByOther(9)
    handshake.confirmNumber()
    handshake.confirmTheirNumber()
    handshake.sent(start, next: .never)
    #expect(!handshake.answersConnected(start + SessionLimits.sweepTime), "it is not connected")
    _ = handshake.connect()
    #expect(!handshake.answersConnected(start + .seconds(1)))
    #expect(handshake.answersConnected(start + SessionLimits.sweepTime / 2))
  }

  @Test func `a lost member resets both numbers`() {
    var handshake = begun()
    handshake.restartedByOther(9)
    handshake.lose()
    #expect(handshake.phase == .away && handshake.number == 0 && handshake.theirNumber == 0)
    #expect(!handshake.isDue(start))
  }
}
