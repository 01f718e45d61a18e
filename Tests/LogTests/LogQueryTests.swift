import Journal
import Log
import Primitives
import Testing

private func seconds(_ text: String) -> Int64? {
  guard case .wall(let nanoseconds) = LogQuery.Since.parse(text, now: 1_000_000_000_000_000) else { return nil }
  return nanoseconds / 1_000_000_000
}

@Test func `the option since accepts durations, times and boot`() {
  #expect(
    seconds("90s") == 999_910 && seconds("10m") == 999_400 && seconds("2h") == 992_800 && seconds("1d") == 913_600)
  #expect(seconds("1970-01-02") == 86400 && seconds("2026-01-01T00:00:01Z") == 1_767_225_601)
  guard case .boot = LogQuery.Since.parse("boot", now: 0) else { Issue.record("boot"); return }
}

@Test(arguments: [
  "", "m", "10", "10x", "-1s", "1.5h", "2026-1-1", "2026-13-01", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00",
  "99999999999s",
])
func `the option since refuses other values`(_ text: String) {
  #expect(LogQuery.Since.parse(text, now: 0) == nil)
}

@Test func `a query selects by level, time, boot and count`() throws {
  let directory = TemporaryDirectory()
  let file = try JournalFile(path: directory.path + "/journal", sizeKiB: 16, level: .debug)
  for (index, level) in [Level.notice, .debug, .warning, .notice, .debug, .error].enumerated() {
    file.journal.record(
      level, index == 3 ? .boxStarted : .dialStarted, at: Instant(nanoseconds: UInt64(index) * 1_000_000_000))
  }
  let journal = try JournalMapping(path: directory.path + "/journal")
  var query = LogQuery()
  #expect(query.sequences(in: journal) == [1, 2, 3, 4, 5, 6])
  query.countMax = 2
  #expect(query.sequences(in: journal) == [5, 6])
  query.level = .warning
  #expect(query.sequences(in: journal) == [3, 6])
  query.since = .boot
  #expect(query.sequences(in: journal) == [6])
  query.level = .debug
  query.countMax = nil
  #expect(query.sequences(in: journal) == [4, 5, 6])
  query.since = .wall(try #require(journal.record(5)).wallNanoseconds)
  #expect(query.sequences(in: journal) == [5, 6])
}
