import CSystem
import Testing

@testable import Trust

@Suite struct SystemClockTests {
  private let directory = TemporaryDirectory()
  private var flag: String { directory.path + "/synchronized" }

  private func touchFlag() { _ = system("touch \(flag)") }

  @Test func `the kernel's answer takes precedence over the flag file`() {
    #expect(SystemClock(flag: flag, kernel: { .synchronised }).isSynchronised)
    touchFlag()
    #expect(!SystemClock(flag: flag, kernel: { .unsynchronised }).isSynchronised)
  }

  @Test func `the flag file of systemd-timesyncd is used if a sandbox refuses the kernel's answer`() {
    let clock = SystemClock(flag: flag, kernel: { .refused(EPERM) })
    #expect(!clock.isSynchronised)
    touchFlag()
    #expect(clock.isSynchronised)
  }

  @Test func `only a refusal by the kernel is reported`() throws {
    #expect(SystemClock(flag: flag, kernel: { .unsynchronised }).notice == nil)
    let notice = try #require(SystemClock(flag: flag, kernel: { .refused(EPERM) }).notice)
    #expect(notice.contains("Operation not permitted") && notice.contains(flag) && notice.contains("clock_adjtime"))
  }

  @Test func `the kernel of this machine answers`() {
    #expect(SystemClock().notice == nil)
  }
}
