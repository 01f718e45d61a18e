import Primitives

/// The result of one seed's run.
public struct Report: Sendable {
  public let options: Options
  public let hash: UInt64
  public let events: Int
  public let frames: Int
  public let delivered: Int
  public let failed: Int
  public let simulatedMilliseconds: UInt64
  public let convergence: Convergence
  public let faultCounts: [Fault: Int]
  public let alarms: Int
  /// The number of unencrypted payloads with the canary of `MessageLedger`, and the number of sealed frames. If a
  /// canary is counted, both ends allowed unencrypted data.
  public let canaries: Int
  public let sealed: Int
  /// The number of unreliable messages that arrived.
  public let unreliable: Int
  /// The effects of a hostile relay on the other machines, or nil if the run had no hostile relay.
  public let liar: LiarReport?
  /// The first violation, or nil.
  public let violation: String?

  /// Runs a seed from its start to the end of all checks.
  public init(_ options: Options, keys: @escaping KeyMaker = Simulation.standInKey, isVerbose: Bool = false) {
    let simulation = Simulation(options, keys: keys, isVerbose: isVerbose)
    let start = simulation.now
    simulation.runAll()
    self.options = options
    hash = simulation.trace.hash
    events = simulation.trace.count
    frames = simulation.observer.frameCount
    delivered = simulation.ledger.deliveredCount
    failed = simulation.ledger.failedCount
    simulatedMilliseconds = (simulation.now - start).milliseconds
    convergence = simulation.convergence
    faultCounts = simulation.faultCounts
    alarms = simulation.alarmCount
    canaries = simulation.canaryCount
    sealed = simulation.observer.sealedCount
    unreliable = simulation.ledger.unreliableCount
    liar = simulation.liarReport
    violation = simulation.violation
  }

  /// The violation without its numbers. Two runs failed in the same way if these texts are equal.
  public var kindOfViolation: String? {
    violation.map { text in
      String(
        decoding: text.prefix { $0 != ":" || text.contains("after ") }.utf8.filter { !(0x30...0x39).contains($0) },
        as: UTF8.self)
    }
  }

  /// A line that run.py parses: `name=value`, separated by spaces.
  public var line: String {
    func text(_ value: UInt64?) -> String { value.map { "\($0)" } ?? "-" }
    let faults = Fault.allCases.compactMap { fault in faultCounts[fault].map { "\(fault):\($0)" } }
    return "seed=\(options.seed) hash=\(hash) events=\(events) frames=\(frames) delivered=\(delivered) failed=\(failed)"
      + " milliseconds=\(simulatedMilliseconds) nodes=\(options.nodeCount) shape=\(options.shape) diameter=\(convergence.diameter)"
      + " healed=\(text(convergence.healed)) rerouted=\(text(convergence.rerouted)) lost=\(text(convergence.lost)) returned=\(text(convergence.returned))"
      + " alarms=\(alarms) canaries=\(canaries) sealed=\(sealed) unreliable=\(unreliable) real=\(options.wantsRealCryptography ? 1 : 0)"
      + " liar=\(liar.map { "\($0.lie):\($0.newcomer):\($0.delivery):\($0.after):\($0.verified):\($0.slack.milliseconds)" } ?? "-")"
      + " faults=\(faults.isEmpty ? "-" : faults.joined(separator: ","))"
  }
}
