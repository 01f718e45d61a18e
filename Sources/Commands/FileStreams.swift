import Configuration
import Diagnostics
import LocalAPI
import LocalClient
import Primitives
import Session
import Transfer

/// Limits of the commands that send and receive files (docs/resources.md, “Limits”).
enum FileLimits {
  /// The session rules that all applications of this service type use.
  static let rules = SessionRules(membersMax: SessionLimits.membersMax)
  static let returnTime = TimeSpan.seconds(TransferLimits.returnSeconds)
  static let farewellTime = TimeSpan.seconds(TransferLimits.farewellSeconds)
  static let verdictTime = TimeSpan.seconds(TransferLimits.verdictSeconds)
  static let turnTime = TimeSpan.seconds(TransferLimits.turnSeconds)
  static let offerTime = TimeSpan.seconds(TransferLimits.beginSeconds)
  /// The time within which a node that accepted an invitation must be connected.
  static let memberTime = TimeSpan.seconds(10)
  /// The number of 64 KiB pieces to read and hash before the daemon and the user are served again.
  static let readsMax = 16
  /// The maximum number of transfers, including those that wait for their sender to return. Senders fill it; the sender
  /// with the most waiting transfers loses one.
  static let awayMax = 64
  /// The time without progress after which a transfer may lose its place to another.
  static let stillTime = TimeSpan.seconds(TransferLimits.stillSeconds)
  /// The maximum number of transfers from one node that nobody has accepted yet.
  static let unansweredMax = 2
  /// How long a sender keeps its session without an offer while others wait.
  static let roomTime = TimeSpan.seconds(5)
  /// The maximum total size of the manifests of accepted offers, in bytes and in entries: four of the largest, about 90
  /// MB of memory. A further offer waits.
  static let manifestBytesMax = UInt64(4 * TransferLimits.manifestBytesMax)
  static let entriesMax = UInt64(4 * TransferLimits.entriesMax)
  /// The maximum number of sessions, below the daemon's limit of 16 per client. A node has no more of them than
  /// invitations. Senders share sessions as they share the places of transfers.
  static let sessionsMax = 14
}

/// Runs one turn of a command's loop. Returns why the connection to the daemon was lost, or nil. Throws if standard
/// output has failed.
func broken(_ turn: () throws(ConnectionError) -> Void) throws(CommandFailure) -> TextBuilder? {
  var broken: TextBuilder?
  do throws(ConnectionError) {
    try turn()
  } catch {
    var text = TextBuilder()
    text.add(message: error.text.utf8)
    broken = text
  }
  if Output.hasFailed { throw CommandFailure(ExitCode.failed) }
  return broken
}

/// Writes bytes into a stream, within the window that the daemon grants.
struct StreamWriter {
  private static let shortBytes = 32_768

  let stream: UInt32
  private var waiting: [UInt8] = []
  private var start = 0
  private var written: UInt64 = 0
  private var limit: UInt64 = 0

  init(_ stream: UInt32) { self.stream = stream }

  /// Whether nothing waits for the window.
  var isEmpty: Bool { start == waiting.count }

  /// Whether so little waits for the window that it is time to produce more, before the daemon runs out of data.
  var isShort: Bool { waiting.count - start < Self.shortBytes }

  mutating func room(_ limit: UInt64, _ connection: DaemonConnection) {
    self.limit = max(self.limit, limit)
    write([], connection)
  }

  /// Writes what the window allows and keeps the rest.
  mutating func write(_ bytes: [UInt8], _ connection: DaemonConnection) {
    if isEmpty {
      (waiting, start) = (bytes, 0)
    } else if !bytes.isEmpty {
      (waiting, start) = (joined(waiting[start...], bytes[...]), 0)
    }
    let end = start + Int(min(limit - written, UInt64(waiting.count - start)))
    connection.write(stream, waiting.span.bytes.extracting(start..<end))
    written += UInt64(end - start)
    start = end
    if isEmpty { (waiting, start) = ([], 0) }
  }
}

/// The receive window of a stream: how much the daemon may deliver.
struct StreamWindow {
  private static let bytes: UInt64 = 262_144

  private var taken: UInt64 = 0
  private(set) var limit = Self.bytes

  /// Counts consumed bytes, and extends the window once half of it is used.
  mutating func took(_ byteCount: Int, _ stream: UInt32, _ connection: DaemonConnection) {
    taken += UInt64(byteCount)
    guard taken + Self.bytes / 2 >= limit else { return }
    limit = taken + Self.bytes
    connection.tell(.streamWindow(stream: stream, limit: limit))
  }
}

/// A number of bytes from the command line, with an optional decimal unit: 5G is 5,000,000,000 bytes. Nil if it is
/// invalid.
func byteCount(_ text: String) -> UInt64? {
  var digits = Array(text.utf8), factor: UInt64 = 1
  switch digits.last {
  case UInt8(ascii: "k"): factor = 1_000
  case UInt8(ascii: "M"): factor = 1_000_000
  case UInt8(ascii: "G"): factor = 1_000_000_000
  default: break
  }
  if factor > 1 { digits.removeLast() }
  let number = Text(String(decoding: digits, as: UTF8.self)).number(in: 1...TransferLimits.bytesMax / factor)
  return number.map { $0 * factor }
}
