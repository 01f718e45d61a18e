import Testing

@testable import Simulator

@Test func costsDoNotFollowADelayThatGrowsWithLoad() {
  let gain = LoopGain.ofLoadedDelays()
  print(gain.line)
  #expect(gain.changes == [0, 0] && gain.violation == nil)
}

@Test func costsOfTwoSlowWaysComeToRest() {
  let gain = LoopGain.ofSlowWays()
  print(gain.line)
  #expect(gain.changes[0] > 0 && gain.percent < 100 && gain.violation == nil)
}

@Test func costsOfALoadedHallComeToRest() {
  let gain = LoopGain.ofHall()
  print(gain.line)
  #expect(gain.percent < 100 && gain.violation == nil)
}
