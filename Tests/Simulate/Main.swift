import Glibc
import Simulator

/// simulate run FIRST COUNT STEP       runs COUNT seeds, a line for each
/// simulate story SEED [LESS…]         runs one seed and prints its trace
/// simulate shrink SEED                makes a failing seed smaller and prints its line for Regressions.swift
///
/// LESS reduces a seed as a regression does: faults=cut,crash nodes=3 seconds=5
@main
struct Simulate {
  static func main() {
    let arguments = CommandLine.arguments.dropFirst()
    let numbers = arguments.dropFirst().compactMap { UInt64($0) }
    switch (arguments.first, numbers.count) {
    case ("run", 3): run(first: numbers[0], count: numbers[1], step: numbers[2])
    case ("story", 1): story(numbers[0], less: Array(arguments.dropFirst(2)))
    case ("shrink", 1): shrink(numbers[0])
    default:
      say("usage: simulate run FIRST COUNT STEP | story SEED [faults=a,b] [nodes=n] [seconds=n] | shrink SEED")
      exit(2)
    }
  }

  /// Prints each seed as it begins, so that the reader knows which one crashed.
  private static func run(first: UInt64, count: UInt64, step: UInt64) {
    say("cryptography=\(Keys.realName)")
    for number in 0..<count {
      let seed = first + number * step
      say("begin \(seed)")
      let report = Report(Options(seed: seed), keys: Keys.maker(for: Options(seed: seed)))
      let isTwice = Options.isRunTwice(seed)
      say("done \(report.line) twice=\(isTwice ? 1 : 0)")
      if isTwice, Report(Options(seed: seed), keys: Keys.maker(for: Options(seed: seed))).hash != report.hash {
        say("FAILED \(seed) the same seed gives another history")
      }
      if let violation = report.violation { say("FAILED \(seed) \(violation)") }
    }
  }

  private static func story(_ seed: UInt64, less: [String]) {
    var options = Options(seed: seed)
    for word in less {
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      switch (parts.first, parts.last) {
      case ("faults", let list?):
        options = options.reduced(faults: list.split(separator: ",").compactMap { Fault(rawValue: String($0)) })
      case ("nodes", let count?): options = options.reduced(nodeCount: Int(count))
      case ("seconds", let count?): options = options.reduced(faultSeconds: UInt64(count))
      default: break
      }
    }
    print("seed \(seed): \(options.shape) of \(options.nodeCount), faults \(options.faults.map(\.rawValue))")
    let report = Report(options, keys: Keys.maker(for: options), isVerbose: true)
    print(report.line)
    print("trace \(report.hash)")
    if let violation = report.violation {
      print("FAILED \(seed) \(violation)")
      exit(1)
    }
  }

  private static func shrink(_ seed: UInt64) {
    let keys = Keys.maker(for: Options(seed: seed))
    guard var shrinker = Shrinker(Report(Options(seed: seed), keys: keys), keys: keys) else {
      print("seed \(seed) does not fail")
      exit(1)
    }
    shrinker.shrink()
    print("after \(shrinker.runs) runs: \(shrinker.regression)")
  }

  /// Prints a line without buffering, so that it is not lost when the process dies.
  private static func say(_ line: String) {
    print(line)
    fflush(nil)
  }
}
