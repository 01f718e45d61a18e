import Testing

@testable import Simulator

@Test func `costs do not follow a delay that grows with load`() {
  let gain = LoopGain.ofLoadedDelays()
  print(gain.line)
  #expect(gain.changes == [0, 0] && gain.violation == nil)
}

@Test func `costs of two slow ways come to rest`() {
  let gain = LoopGain.ofSlowWays()
  print(gain.line)
  #expect(gain.changes[0] > 0 && gain.percent < 100 && gain.violation == nil)
}

@Test func `costs of a loaded hall come to rest`() {
  let gain = LoopGain.ofHall()
  print(gain.line)
  #expect(gain.percent < 100 && gain.violation == nil)
}
