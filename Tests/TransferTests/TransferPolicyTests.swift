import Testing

@testable import Transfer

@Test func `a sender whose path fails offers again after pauses that double`() {
  var policy = SenderPolicy()
  let pauses: [SenderPolicy.Decision] = [400, 800, 1_600, 3_200, 5_000, 5_000].map { .retry(afterMilliseconds: $0) }
  #expect((0..<6).map { _ in policy.pathFailed(bytesSent: 0) } == pauses)
}

@Test func `an attempt that sent data resets the pauses and the number of attempts`() {
  var policy = SenderPolicy()
  for _ in 1..<TransferLimits.attemptsMax { #expect(policy.pathFailed(bytesSent: 0) != .giveUp) }
  #expect(policy.pathFailed(bytesSent: 1) == .retry(afterMilliseconds: 200))
  for _ in 1..<TransferLimits.attemptsMax { #expect(policy.pathFailed(bytesSent: 1) != .giveUp) }
  #expect(policy.pathFailed(bytesSent: 1) == .giveUp)
}

@Test func `a refused offer is repeated for 30 seconds`() {
  var policy = SenderPolicy()
  #expect(policy.refused(random: 0, nowMilliseconds: 1_000) == .retry(afterMilliseconds: 250))
  #expect(policy.isRefused)
  #expect(policy.refused(random: 1_250, nowMilliseconds: 30_999) == .retry(afterMilliseconds: 1_500))
  #expect(policy.refused(random: 0, nowMilliseconds: 31_000) == .giveUp)
}

@Test func `a failed path between refusals starts the 30 seconds again`() {
  var policy = SenderPolicy()
  _ = policy.refused(random: 0, nowMilliseconds: 0)
  _ = policy.pathFailed(bytesSent: 0)
  #expect(!policy.isRefused)
  #expect(policy.refused(random: 0, nowMilliseconds: 30_000) != .giveUp)
}

@Test func `a receiver waits only for a sender whose offer was accepted`() {
  let decide = ReceiverPolicy.attemptFailed
  #expect(decide(false, true, false) == .awaitsReturn)
  #expect(decide(false, false, false) == .cancelledByPeer)
  #expect(decide(true, true, false) == .cancelledByPeer)
}

@Test func `a receiver that has stored everything is complete without a confirmation`() {
  #expect(ReceiverPolicy.attemptFailed(isCut: true, isAccepted: true, isComplete: true) == .isComplete)
}
