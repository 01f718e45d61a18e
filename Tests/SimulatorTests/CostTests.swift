import Testing

@testable import Simulator

@Test func `link costs do not follow a delay that grows with load`() {
  let gain = LoopGain.ofLoadedDelays()
  print(gain.line)
  #expect(gain.changes == [0, 0] && gain.violation == nil)
}

@Test func `the costs of two slow routes converge`() {
  let gain = LoopGain.ofSlowWays()
  print(gain.line)
  #expect(gain.changes[0] > 0 && gain.percent < 100 && gain.violation == nil)
}

@Test func `the costs of a loaded hall converge`() {
  let gain = LoopGain.ofHall()
  print(gain.line)
  #expect(gain.percent < 100 && gain.violation == nil)
}
