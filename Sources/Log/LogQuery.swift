import CSystem
import Journal

/// Selects records of a journal.
public struct LogQuery {
  /// The earliest record to select.
  public enum Since {
    case everything
    /// Records since the last start of the daemon.
    case boot
    /// Records not older than this time, in nanoseconds since 1970.
    case wall(Int64)
  }

  public var since = Since.everything
  /// The least severe level to select.
  public var level = Level.debug
  /// The maximum number of selected records. If more match, the newest are selected.
  public var countMax: Int?
  public init() {}

  /// The sequence numbers of the selected records, oldest first.
  public func sequences(in journal: JournalMapping) -> [UInt64] {
    var found: [UInt64] = []
    var sequence = max(journal.oldest, 1)
    let newest = journal.newest
    while sequence <= newest {
      if let record = journal.record(sequence) {
        if case .boot = since, record.event == Event.boxStarted.rawValue { found.removeAll() }
        if wants(record) { found.append(sequence) }
      }
      sequence += 1
    }
    if let countMax, found.count > countMax { found.removeFirst(found.count - countMax) }
    return found
  }

  /// Whether a record matches the level and the time. `countMax` and `Since.boot` depend on other records and are not
  /// tested.
  public func wants(_ record: JournalRecord) -> Bool {
    if record.level > level.rawValue || !EventFormatter.isShown(record) { return false }
    if case .wall(let earliest) = since { return record.wallNanoseconds >= earliest }
    return true
  }
}

extension LogQuery.Since {
  public static let accepted: StaticString =
    "a span such as 90s, 10m, 2h or 3d, a UTC time such as 2026-01-31 or 2026-01-31T12:00:00Z, or boot"

  /// Parses the argument of `--since`. Returns nil if the argument is invalid. `now`: the wall clock in nanoseconds
  /// since 1970.
  public static func parse(_ text: String, now: Int64) -> LogQuery.Since? {
    let bytes = Array(text.utf8)
    if bytes == Array("boot".utf8) { return .boot }
    if let seconds = spanSeconds(bytes) { return .wall(now - seconds * 1_000_000_000) }
    return time(bytes).map { .wall($0 * 1_000_000_000) }
  }

  private static func spanSeconds(_ bytes: [UInt8]) -> Int64? {
    guard let unit = bytes.last, let count = number(bytes.dropLast()), count <= 1_000_000 else { return nil }
    switch unit {
    case UInt8(ascii: "s"): return count
    case UInt8(ascii: "m"): return count * 60
    case UInt8(ascii: "h"): return count * 3600
    case UInt8(ascii: "d"): return count * 86400
    default: return nil
    }
  }

  /// Parses a time in the format of RFC 3339, in UTC and without fractions of a second. The time of day is optional.
  /// Returns seconds since 1970, or nil if the text is invalid.
  private static func time(_ bytes: [UInt8]) -> Int64? {
    let pattern = Array("0000-00-00T00:00:00Z".utf8)
    guard bytes.count == 10 || bytes.count == 20 else { return nil }
    for (index, byte) in bytes.enumerated() {
      let isDigit = pattern[index] == UInt8(ascii: "0")
      if isDigit ? !(0x30...0x39).contains(byte) : byte != pattern[index] { return nil }
    }
    func field(_ range: Range<Int>) -> CInt { CInt(number(bytes[range]) ?? 0) }
    var parts = tm()
    parts.tm_year = field(0..<4) - 1900
    parts.tm_mon = field(5..<7) - 1
    parts.tm_mday = field(8..<10)
    if bytes.count == 20 {
      parts.tm_hour = field(11..<13)
      parts.tm_min = field(14..<16)
      parts.tm_sec = field(17..<19)
    }
    guard (0...11).contains(parts.tm_mon), (1...31).contains(parts.tm_mday), parts.tm_hour < 24, parts.tm_min < 60,
      parts.tm_sec <= 60
    else { return nil }
    return Int64(csystem_timegm(&parts))
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard !digits.isEmpty, digits.count <= 9 else { return nil }
    var value: Int64 = 0
    for digit in digits {
      guard (0x30...0x39).contains(digit) else { return nil }
      value = value * 10 + Int64(digit - 0x30)
    }
    return value
  }
}
