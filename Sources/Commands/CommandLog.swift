import CSystem
import Configuration
import Diagnostics
import Journal

/// `causeway log`
func commandLog(_ words: CommandWords) -> CInt {
  var query = LogQuery()
  var isFollowing = false
  var config: String?
  var path: String?
  CommandParser.parse(
    "causeway log", words,
    help: """
      Show the journal, oldest record first. It is read from its file, so this works while the daemon runs and \
      after it died.\u{0B}The journal is mapped memory, whose changes nobody announces: --follow looks ten times a \
      second.
      """,
    options: [
      configOption,
      CommandOption(
        name: "follow", key: 0x66, argument: nil, help: "Show the last 10, then go on as records are written"),
      CommandOption(
        name: "since", key: 0x73, argument: "WHEN",
        help: "Only newer ones: 90s, 10m, 2h, 3d ago; a UTC time as 2026-01-31T12:00:00Z; or boot, the last start"),
      CommandOption(
        name: "level", key: 0x6C, argument: "LEVEL",
        help: "Only this level and those that matter more: fault, error, warning, notice, info, debug"),
      CommandOption(name: "count", key: 0x6E, argument: "N", help: "Only the last N"),
      CommandOption(
        name: "journal", key: 0x6A, argument: "FILE",
        help: "The journal; default journal in the configuration's runtime-directory"),
    ]
  ) { key, value in
    switch key {
    case 0x63: config = value
    case 0x66: isFollowing = true
    case 0x73:
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      guard let since = LogQuery.Since.parse(value, now: Int64(now.tv_sec) * 1_000_000_000) else {
        return LogQuery.Since.accepted
      }
      query.since = since
    case 0x6C:
      guard let level = Level.parse(Text(value)) else { return Level.accepted }
      query.level = level
    case 0x6E:
      guard let count = Text(value).number(in: 0...1_000_000) else { return "a number up to 1000000" }
      query.countMax = Int(count)
    default: path = value
    }
    return nil
  }
  if isFollowing, query.countMax == nil, case .everything = query.since { query.countMax = 10 }
  return run { () throws(CommandFailure) in
    if path == nil { path = try findConfiguration(config).journalPath }
    try showLog(path ?? "", query, isFollowing)
  }
}

private func showLog(_ path: String, _ query: LogQuery, _ isFollowing: Bool) throws(CommandFailure) {
  var journal = try openJournal(path)
  // Read first: records written meanwhile are left to the following loop.
  var next = journal.newest + 1
  for sequence in query.sequences(in: journal) where sequence < next && !Output.hasFailed {
    if let line = EventFormatter.line(sequence, of: journal) { Output.put(line) }
  }
  var polls = 0
  while isFollowing && !Output.hasFailed {
    poll(nil, 0, 100)
    polls += 1
    if polls % 10 == 0 && journal.isReplaced(at: path) {
      journal = try openJournal(path)
      next = journal.oldest
    }
    while next <= journal.newest {
      if next < journal.oldest {
        printError("\(journal.oldest - next) records were overwritten before they could be shown")
        next = journal.oldest
      }
      // An incomplete record is skipped: its writer died while writing it.
      if let record = journal.record(next), query.wants(record) {
        if let line = EventFormatter.line(next, of: journal) { Output.put(line) }
      }
      next += 1
    }
  }
}

private func openJournal(_ path: String) throws(CommandFailure) -> JournalMapping {
  do throws(DiagnosticsError) {
    return try JournalMapping(path: path)
  } catch {
    throw CommandFailure(saying: error.text)
  }
}
