import Testing

@testable import Simulator

/// Runs only a few seeds, because test builds are not optimised. `make test` also runs `make sim` with many seeds.
@Test func `random networks recover from random faults`() {
  for seed in 1...12 as ClosedRange<UInt64> {
    let report = Report(Options(seed: seed))
    #expect(report.violation == nil, "replay: make sim SEED=\(seed)")
  }
}

@Test(arguments: Regression.all)
func `networks that once failed do not fail again`(_ regression: Regression) {
  let report = Report(regression.options)
  #expect(report.violation == nil, "\(regression.name), seed \(regression.options.seed)")
}

@Test func `a seed always yields the same history`() {
  let reports = (0..<2).map { _ in Report(Options(seed: 3)) }
  #expect(reports[0].hash == reports[1].hash && reports[0].events == reports[1].events)
  #expect(reports[0].events > 100)
}

@Test func `different seeds yield different histories`() {
  let hashes = (1...3 as ClosedRange<UInt64>).map { Report(Options(seed: $0)).hash }
  #expect(Set(hashes).count == 3)
}

@Test func `every seed can be reduced to the options of a regression`() {
  let options = Options(seed: 5).reduced(faults: [.cut], nodeCount: 2, faultSeconds: 1)
  #expect(options.nodeCount == 2 && options.faultSpan == .seconds(1))
  #expect(options.faults.allSatisfy { $0 == .cut })
}
