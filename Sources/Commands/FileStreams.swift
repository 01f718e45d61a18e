import Configuration
import Diagnostics
import LocalAPI
import LocalClient
import Primitives
import Session
import Transfer

/// Limits of the commands that send and receive files. docs/resources.md, “Limits”.
enum FileLimits {
  /// As other applications of this type use too.
  static let rules = SessionRules(membersMax: SessionLimits.membersMax)
  static let returnTime = TimeSpan.seconds(TransferLimits.returnSeconds)
  static let farewellTime = TimeSpan.seconds(TransferLimits.farewellSeconds)
  static let verdictTime = TimeSpan.seconds(TransferLimits.verdictSeconds)
  static let turnTime = TimeSpan.seconds(TransferLimits.turnSeconds)
  static let offerTime = TimeSpan.seconds(TransferLimits.beginSeconds)
  /// Who has accepted an invitation is connected by then.
  static let memberTime = TimeSpan.seconds(10)
  /// Pieces of 64 KiB that are read and hashed before the daemon and the user are heard again.
  static let readsMax = 16
  /// Transfers with those that are waited for after a break. Senders fill it; whoever waits with most gives way.
  static let awayMax = 64
  /// One that stood still for so long makes place for another.
  static let stillTime = TimeSpan.seconds(TransferLimits.stillSeconds)
  /// Of offers and transfers at once, of one node that nobody has accepted yet.
  static let unansweredMax = 2
  /// A sender has its session for so long without an offer while others wait.
  static let roomTime = TimeSpan.seconds(5)
  /// Manifests of accepted offers together, in bytes, and their entries: four of the greatest, about 90 MB of memory. A further
  /// offer waits for its turn.
  static let manifestBytesMax = UInt64(4 * TransferLimits.manifestBytesMax)
  static let entriesMax = UInt64(4 * TransferLimits.entriesMax)
  /// Sessions at once, below the 16 of a client; of one node no more than its invitations. Senders share them as the places
  /// of transfers.
  static let sessionsMax = 14
}

/// One turn of a command's loop. Why it lost its daemon; nil while it has it. Throws when nobody reads the output.
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

/// Bytes on their way into a stream, within the room that the daemon tells of.
struct StreamWriter {
  private static let shortBytes = 32_768

  let stream: UInt32
  private var waiting: [UInt8] = []
  private var start = 0
  private var written: UInt64 = 0
  private var limit: UInt64 = 0

  init(_ stream: UInt32) { self.stream = stream }

  /// Nothing waits for room.
  var isEmpty: Bool { start == waiting.count }

  /// So little waits for room that it is time to make more, before the daemon has to wait for it.
  var isShort: Bool { waiting.count - start < Self.shortBytes }

  mutating func room(_ limit: UInt64, _ connection: DaemonConnection) {
    self.limit = max(self.limit, limit)
    write([], connection)
  }

  /// Writes what there is room for, and keeps the rest.
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

/// How much of a stream the daemon may tell.
struct StreamWindow {
  private static let bytes: UInt64 = 262_144

  private var taken: UInt64 = 0
  private(set) var limit = Self.bytes

  /// So many bytes were taken out of it.
  mutating func took(_ byteCount: Int, _ stream: UInt32, _ connection: DaemonConnection) {
    taken += UInt64(byteCount)
    guard taken + Self.bytes / 2 >= limit else { return }
    limit = taken + Self.bytes
    connection.tell(.streamWindow(stream: stream, limit: limit))
  }
}

/// 5G is 5,000,000,000 bytes.
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
