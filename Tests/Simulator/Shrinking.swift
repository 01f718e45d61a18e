import Primitives

/// Finds smaller options of a failing seed that still fail in the same way.
public struct Shrinker {
  public private(set) var faults: [Fault]
  public private(set) var nodeCount: Int
  public private(set) var faultSeconds: UInt64
  /// The number of runs so far.
  public private(set) var runs = 0

  private let seed: UInt64
  private let kind: String
  private let keys: KeyMaker

  /// Returns nil if `report` has no violation.
  public init?(_ report: Report, keys: @escaping KeyMaker) {
    guard let kind = report.kindOfViolation else { return nil }
    self.kind = kind
    self.keys = keys
    seed = report.options.seed
    faults = report.options.faults
    nodeCount = report.options.nodeCount
    faultSeconds = report.options.faultSpan.milliseconds / 1000
  }

  /// Removes machines first, then faults, then seconds of faults. Each of these quantities is reduced as far as the run
  /// still fails.
  public mutating func shrink() {
    for count in 2..<max(nodeCount, 2) where fails(faults, count, faultSeconds) {
      nodeCount = count
      break
    }
    for fault in faults {
      let fewer = faults.filter { $0 != fault }
      if fails(fewer, nodeCount, faultSeconds) { faults = fewer }
    }
    var low: UInt64 = 1
    while low < faultSeconds {
      let middle = (low + faultSeconds) / 2
      if fails(faults, nodeCount, middle) { faultSeconds = middle } else { low = middle + 1 }
    }
  }

  /// The failing seed as a line for Tests/Simulator/Regressions.swift.
  public var regression: String {
    let list = faults.map { ".\($0)" }.joined(separator: ", ")
    return
      "Regression(\"\(kind)\", seed: \(seed), faults: [\(list)], nodeCount: \(nodeCount), faultSeconds: \(faultSeconds)),"
  }

  private mutating func fails(_ faults: [Fault], _ nodeCount: Int, _ faultSeconds: UInt64) -> Bool {
    runs += 1
    let options = Options(seed: seed).reduced(faults: faults, nodeCount: nodeCount, faultSeconds: faultSeconds)
    return Report(options, keys: keys).kindOfViolation == kind
  }
}
