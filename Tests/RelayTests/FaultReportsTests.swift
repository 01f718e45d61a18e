import Board
import Journal
import Primitives
import Testing

@testable import Relay

@Suite struct FaultReportsTests {
  /// The lines that were written for the operator.
  private final class Lines {
    var all: [String] = []
  }

  private func reports() -> (FaultReports, Lines) {
    let lines = Lines()
    return (FaultReports(.none, now: { .zero }) { lines.all.append("\($0): \($1)") }, lines)
  }

  @Test func `a fault is reported once when it begins and once when it ends`() {
    let (faults, lines) = reports()
    faults.note("led", "no such LED")
    faults.note("led", "no such LED")
    #expect(faults["led"] == "no such LED")
    faults.note("led", nil)
    faults.note("led", nil)
    #expect(faults["led"] == nil && faults.all.isEmpty)
    #expect(lines.all == ["led: no such LED", "led: works again"])
  }

  @Test func `a part of the daemon has one fault, the latest report`() {
    let (faults, _) = reports()
    faults.report("ip", "no interface", isFault: true)
    faults.report("wifi", "blocked", isFault: true)
    faults.report("ip", "no address", isFault: true)
    #expect(faults.all.map { $0.text } == ["blocked", "no address"])
  }

  @Test func `a report without a fault ends the fault of its part`() {
    let (faults, lines) = reports()
    faults.report("pins", "full", isFault: true)
    faults.report("pins", "free again", isFault: false)
    #expect(faults["pins"] == nil && lines.all == ["pins: full", "pins: free again"])
  }

  @Test func `a resolved fault is not reported`() {
    let (faults, lines) = reports()
    faults.add("state", "no room")
    faults.resolve("state")
    #expect(faults.all.isEmpty && lines.all.isEmpty)
  }
}

@Suite struct IndicatorsTests {
  @Test func `an open join window is shown before a fault, and a fault before links`() {
    func pattern(fault: Bool, joining: Bool, linked: Bool) -> StatusLED.Pattern {
      Indicators.Health(hasFault: fault, isJoining: joining, isLinked: linked).pattern
    }
    #expect(pattern(fault: true, joining: true, linked: true) == .joining)
    #expect(pattern(fault: true, joining: false, linked: true) == .fault)
    #expect(pattern(fault: false, joining: false, linked: true) == .linked)
    #expect(pattern(fault: false, joining: false, linked: false) == .alone)
  }
}
