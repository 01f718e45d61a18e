import CSystem
import Testing

@testable import Trust

@Suite struct SystemClockTests {
  private let place = Place()
  private var flag: String { place.path + "/synchronized" }

  private func touchFlag() { _ = system("touch \(flag)") }

  @Test func `the kernels answer counts whatever the flag says`() {
    #expect(SystemClock(flag: flag, kernel: { .synchronised }).isSynchronised)
    touchFlag()
    #expect(!SystemClock(flag: flag, kernel: { .unsynchronised }).isSynchronised)
  }

  @Test func `a sandbox that refuses leaves the flag of timesyncd`() {
    let clock = SystemClock(flag: flag, kernel: { .refused(EPERM) })
    #expect(!clock.isSynchronised)
    touchFlag()
    #expect(clock.isSynchronised)
  }

  @Test func `only a refusal is worth a notice`() throws {
    #expect(SystemClock(flag: flag, kernel: { .unsynchronised }).notice == nil)
    let notice = try #require(SystemClock(flag: flag, kernel: { .refused(EPERM) }).notice)
    #expect(notice.contains("Operation not permitted") && notice.contains(flag) && notice.contains("clock_adjtime"))
  }

  @Test func `this machines kernel answers`() {
    #expect(SystemClock().notice == nil)
  }
}
