/// A seed that failed once, reduced to what was needed to fail. Never removed.
public struct Regression: Sendable {
  /// What went wrong, as a sentence.
  public let name: String
  public let options: Options

  public init(_ name: String, seed: UInt64, faults: [Fault]? = nil, nodeCount: Int? = nil, faultSeconds: UInt64? = nil)
  {
    self.name = name
    options = Options(seed: seed).reduced(faults: faults, nodeCount: nodeCount, faultSeconds: faultSeconds)
  }

  /// `make sim` prints the line for a new one.
  public static let all: [Regression] = [
    Regression(
      "acknowledgements under way while the reader restarts", seed: 1161,
      faults: [
        .cut, .stall, .darkness, .oneWay, .clog, .delay, .corrupt, .handOver, .freeze, .noReader, .frameReorder,
      ], nodeCount: 2, faultSeconds: 8),
    Regression("the cheapest way has more hops than a frame", seed: 8585, faults: [], nodeCount: 44, faultSeconds: 1),
    Regression(
      "a machine that stays away has not read what was delivered to it", seed: 498,
      faults: [.discoveryFlap, .slowReader, .alter], nodeCount: 5, faultSeconds: 8),
  ]
}
