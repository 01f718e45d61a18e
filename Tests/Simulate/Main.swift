import Glibc
import SessionStories
import Simulator

/// simulate run FIRST COUNT            runs COUNT seeds and prints one line for each
/// simulate story SEED [LESS…]         runs one seed and prints its trace
/// simulate sessions FIRST COUNT       runs session scenarios alone, step by step, and prints the state of failed ones
/// simulate gather FIRST COUNT         runs scenarios of applications that auto-join, are cut off and restart
/// simulate shrink SEED                makes a failing seed smaller and prints its line for Regressions.swift
/// simulate rest mesh|hall COUNT       measures what a network of relays costs at rest
/// simulate crowd LEAVES PLACES COUNT  measures first messages in COUNT crowded Bluetooth rooms
/// simulate gain                       measures the loop gain of costs and prints one line for each network
///
/// LESS reduces a seed as a regression does: faults=cut,crash nodes=3 seconds=5
@main
struct Simulate {
  static func main() {
    let arguments = CommandLine.arguments.dropFirst()
    let numbers = arguments.dropFirst().compactMap { UInt64($0) }
    switch (arguments.first, numbers.count) {
    case ("run", 2): run(first: numbers[0], count: numbers[1])
    case ("sessions", 2): sessions(first: numbers[0], count: numbers[1])
    case ("gather", 2): gather(first: numbers[0], count: numbers[1])
    case ("story", 1): story(numbers[0], less: Array(arguments.dropFirst(2)))
    case ("shrink", 1): shrink(numbers[0])
    case ("rest", 1): rest(arguments.dropFirst().first, Int(numbers[0]))
    case ("crowd", 3): crowd(leaves: Int(numbers[0]), slots: Int(numbers[1]), count: numbers[2])
    case ("gain", 0): gain()
    default:
      say(
        "usage: simulate run FIRST COUNT | sessions FIRST COUNT | gather FIRST COUNT | story SEED [faults=a,b] [nodes=n] [seconds=n]"
          + " | shrink SEED | rest mesh|hall COUNT | crowd LEAVES PLACES COUNT | gain")
      exit(2)
    }
  }

  /// Runs `count` seeds. Prints each seed before its run, so that the last printed seed caused a crash.
  private static func run(first: UInt64, count: UInt64) {
    say("cryptography=\(Keys.realName)")
    for seed in first..<first + count {
      say("begin \(seed)")
      let report = Report(Options(seed: seed), keys: Keys.maker(for: Options(seed: seed)))
      let isTwice = Options.isRunTwice(seed)
      let network = SessionStory(Options(seed: seed)), steps = Story(seed)
      let wrong = network?.play(), wrongStep = steps.play()
      say(
        "done \(report.line) twice=\(isTwice ? 1 : 0) met=\(network?.connectedCount ?? 0) stepsmet=\(steps.connectedCount)"
      )
      if isTwice, Report(Options(seed: seed), keys: Keys.maker(for: Options(seed: seed))).hash != report.hash {
        say("FAILED \(seed) a second run of the seed yields another history")
      }
      if let violation = report.violation ?? wrong.map({ "sessions: \($0)" }) ?? wrongStep.map({ "steps: \($0)" }) {
        say("FAILED \(seed) \(violation)")
      }
    }
  }

  private static func sessions(first: UInt64, count: UInt64) {
    var failed = 0, met = 0, introduced = 0, delivered = 0, lies = 0, streams = 0, bytes = 0
    for seed in first..<first + count {
      let story = Story(seed)
      if let wrong = story.play() {
        failed += 1
        say("FAILED \(seed) \(wrong)\n\(story.report())\n  replay: simulate sessions \(seed) 1")
      }
      met += story.connectedCount
      introduced += story.introducedCount
      delivered += story.deliveredCount
      lies += story.lieCount
      streams += story.witness.finishedCount
      bytes += story.witness.bytes
    }
    say(
      "\(count) scenarios, \(failed) failed: members connected \(met) times, \(introduced) by address, \(delivered) messages delivered, \(streams) streams"
        + " read to their end, \(bytes) bytes in streams, \(lies) false messages sent")
    if failed > 0 { exit(1) }
  }

  private static func gather(first: UInt64, count: UInt64) {
    var failed = 0, endings = 0, guests = 0
    var seconds: [Double] = []
    for seed in first..<first + count {
      let story = Party.play(seed)
      if let wrong = story.wrong {
        failed += 1
        say("FAILED \(seed) \(wrong)\n  replay: simulate gather \(seed) 1")
      }
      endings += story.endings
      guests += story.guests
      if let time = story.seconds { seconds.append(time) }
    }
    seconds.sort()
    say(
      "\(count) scenarios, \(failed) failed: \(guests) applications, \(endings / 2) invitations; one session at rest after"
        + " \(seconds.isEmpty ? 0 : seconds[seconds.count / 2]) s (median), \(seconds.last ?? 0) s at most")
    if failed > 0 { exit(1) }
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
    // Session scenarios have no reductions, so they run only for the complete seed.
    if less.isEmpty { print("sessions in this network") }
    let network = less.isEmpty ? SessionStory(Options(seed: seed), isVerbose: true) : nil
    let wrong = network?.play()
    if let network, wrong != nil { print(network.report()) }
    let steps = less.isEmpty ? Story(seed) : nil
    let wrongStep = steps?.play()
    if let steps, wrongStep != nil { print(steps.report()) }
    if let violation = report.violation ?? wrong.map({ "sessions: \($0)" }) ?? wrongStep.map({ "steps: \($0)" }) {
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

  private static func rest(_ shape: String?, _ count: Int) {
    let rest = shape == "hall" ? Rest.ofHall(count) : Rest.ofMesh(count)
    say(rest.line)
    if let violation = rest.violation {
      say("FAILED \(violation)")
      exit(1)
    }
  }

  private static func crowd(leaves: Int, slots: Int, count: UInt64) {
    guard Crowd.leavesRange.contains(leaves), Crowd.slotsRange.contains(slots) else {
      say("a room has \(Crowd.leavesRange) leaves, and a radio \(Crowd.slotsRange) connections")
      exit(2)
    }
    for seed in 1...max(count, 1) {
      let crowd = Crowd(leaves: leaves, slots: slots, seed: seed)
      say(crowd.line)
      if let violation = crowd.violation {
        say("FAILED \(violation)")
        exit(1)
      }
    }
  }

  private static func gain() {
    for gain in [LoopGain.ofLoadedDelays(), .ofSlowWays(), .ofHall()] {
      say(gain.line)
      if gain.percent >= 100 || gain.violation != nil {
        say("FAILED loop gain \(gain.violation ?? "costs do not converge")")
        exit(1)
      }
    }
  }

  /// Prints a line and flushes it at once, so that it is not lost if the process dies.
  private static func say(_ line: String) {
    print(line)
    fflush(nil)
  }
}
