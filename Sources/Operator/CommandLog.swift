import CSystem
import CommandLine
import Configuration
import Journal
import Log
import Text

/// `causeway log`
public func commandLog(_ words: CommandWords) -> CInt {
  var query = LogQuery()
  var isFollowing = false
  var isJSON = false
  var config: String?
  var path: String?
  CommandParser.parse(
    "causeway log", words,
    help: """
      Show the journal, oldest record first. It is read from its file, so this works with and without a running \
      daemon. The name of a node follows its id, if the journal has it.\u{0B}--follow polls the journal ten times a \
      second, because mapped memory sends no notifications.
      """,
    options: [
      configOption,
      CommandOption(
        name: "follow", key: 0x66, argument: nil, help: "Show the last 10 records, then new ones as they are written"),
      CommandOption(
        name: "since", key: 0x73, argument: "WHEN",
        help: "Show only newer records: 90s, 10m, 2h, 3d ago; a UTC time, 2026-01-31T12:00:00Z; or boot, the last start"
      ),
      CommandOption(
        name: "level", key: 0x6C, argument: "LEVEL",
        help: "Show only this level and more severe ones: fault, error, warning, notice, info, debug"),
      CommandOption(name: "count", key: 0x6E, argument: "N", help: "Show only the last N records"),
      CommandOption(
        name: "journal", key: 0x6A, argument: "FILE",
        help: "The journal file; default journal in the configuration's runtime-directory"),
      CommandOption(name: "json", key: logJSONKey, argument: nil, help: "Print one JSON object per line"),
    ]
  ) { key, value in
    switch key {
    case 0x63: config = value
    case 0x66: isFollowing = true
    case logJSONKey: isJSON = true
    case 0x73:
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      guard let since = LogQuery.Since.parse(value, now: Int64(now.tv_sec) * 1_000_000_000) else {
        return LogQuery.Since.accepted
      }
      query.since = since
    case 0x6C:
      guard let level = Level.parse(ByteString(value)) else { return Level.accepted }
      query.level = level
    case 0x6E:
      guard let count = ByteString(value).number(in: 0...1_000_000) else { return "a number up to 1000000" }
      query.countMax = Int(count)
    default: path = value
    }
    return nil
  }
  if isFollowing, query.countMax == nil, case .everything = query.since { query.countMax = 10 }
  return run { () throws(CommandError) in
    if path == nil { path = try findConfiguration(config).journalPath }
    let journal = try openJournal(path ?? "")
    let log = LogView(journal, names: JournalNames(journal), isJSON: isJSON)
    try log.show(query, isFollowing: isFollowing, path ?? "")
  }
}

/// A key above 255, so that --json has no short option: -j stands for --journal.
private let logJSONKey: CInt = 0x100

/// Prints the records of a journal as text or JSON lines.
private final class LogView {
  private var journal: JournalMapping
  private var names: JournalNames
  private let isJSON: Bool

  init(_ journal: JournalMapping, names: JournalNames, isJSON: Bool) {
    self.journal = journal
    self.names = names
    self.isJSON = isJSON
  }

  func show(_ query: LogQuery, isFollowing: Bool, _ path: String) throws(CommandError) {
    // Read the newest sequence number before printing. The loop below shows records that are written while older ones
    // are printed.
    var next = journal.newest + 1
    for sequence in query.sequences(in: journal) where sequence < next && !Output.hasFailed { put(sequence) }
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
        // Skip a record that is incomplete because the daemon died while writing it.
        if let record = journal.record(next) {
          names.note(record)
          if query.wants(record) { put(next) }
        }
        next += 1
      }
    }
  }

  private func put(_ sequence: UInt64) {
    guard isJSON else {
      if let line = EventFormatter.line(sequence, of: journal, names: names) { Output.put(line) }
      return
    }
    guard let record = journal.record(sequence) else { return }
    var time = TextBuilder()
    EventFormatter.addTime(record.wallNanoseconds, to: &time)
    var line = JSONLine(event: "record")
    line.add("sequence", sequence)
    line.add("time", time.bytes)
    line.add("level", Level(rawValue: record.level)?.name ?? "unknown")
    line.add("code", UInt64(record.event))
    if record.link != 0xFF { line.add("link", UInt64(record.link)) }
    line.add("text", EventFormatter.message(sequence, record, of: journal, names: names).bytes)
    line.put()
  }
}

private func openJournal(_ path: String) throws(CommandError) -> JournalMapping {
  do throws(AccessError) {
    return try JournalMapping(path: path)
  } catch {
    throw CommandError(saying: error.text)
  }
}
