import Glibc
import Testing

@testable import Simulator

/// A number from the environment.
private func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }

/// The seeds to run: CAUSEWAY_SIM_SEED names one, which tells all it does; CAUSEWAY_SIM_SEEDS says how many,
/// from CAUSEWAY_SIM_FIRST on.
private var seeds: [UInt64] {
  if let one = number("CAUSEWAY_SIM_SEED") { return [one] }
  let first = number("CAUSEWAY_SIM_FIRST") ?? 1
  return [UInt64](first..<first + (number("CAUSEWAY_SIM_SEEDS") ?? 20))
}
private var isVerbose: Bool { number("CAUSEWAY_SIM_SEED") != nil }

@Test func randomNetworksHealAfterRandomFaults() {
  var events = 0
  var frames = 0
  var delivered = 0
  for seed in seeds {
    let options = Options(seed: seed)
    let simulation = Simulation(options, isVerbose: isVerbose)
    simulation.runAll()
    events += simulation.trace.count
    frames += simulation.observer.frameCount
    delivered += simulation.ledger.deliveredCount
    if let violation = simulation.violation {
      Issue.record(
        "CAUSEWAY_SIM_SEED=\(seed) (\(options.shape) of \(options.nodeCount), \(options.faults)): \(violation)")
    }
    if isVerbose { print("seed \(seed): \(options), \(simulation.trace.count) events, trace \(simulation.trace.hash)") }
  }
  print("simulated \(seeds.count) networks: \(events) events, \(frames) frames, \(delivered) messages delivered")
}

@Test func oneSeedGivesOneHistory() {
  let seed = number("CAUSEWAY_SIM_SEED") ?? 3
  let traces = (0..<2).map { _ in
    let simulation = Simulation(Options(seed: seed))
    simulation.runAll()
    return simulation.trace
  }
  #expect(traces[0].hash == traces[1].hash && traces[0].count == traces[1].count)
  #expect(traces[0].count > 100)
}

@Test func otherSeedsGiveOtherHistories() {
  let hashes = (1...3 as ClosedRange<UInt64>).map { seed in
    let simulation = Simulation(Options(seed: seed))
    simulation.run(until: simulation.faultsEnd)
    return simulation.trace.hash
  }
  #expect(Set(hashes).count == 3)
}
