import CommandLine
import DaemonClient
import LocalAPI
import Primitives
import Session
import Text
import Transfer

/// Limits of the commands that send and receive files (docs/resources.md, “Limits”).
enum FileLimits {
  /// The session rules that all applications with this service type must use, because other rules are incompatible.
  static let rules = SessionRules(membersMax: SessionLimits.membersMax)
  static let returnTime = TimeSpan.seconds(TransferLimits.returnSeconds)
  static let farewellTime = TimeSpan.seconds(TransferLimits.farewellSeconds)
  static let verdictTime = TimeSpan.seconds(TransferLimits.verdictSeconds)
  static let offerTime = TimeSpan.seconds(TransferLimits.beginSeconds)
  /// The time within which a node that accepted an invitation must become a connected member.
  static let memberTime = TimeSpan.seconds(10)
  /// The number of 64 KiB pieces that a command reads and hashes before it handles events of the daemon and the user
  /// again.
  static let readsMax = 16
  /// The maximum number of a receiver's transfers, including those that wait for their sender to return. Senders can
  /// reach this limit with many interrupted transfers. One of the waiting transfers is then cancelled, of the sender
  /// with the most.
  static let awayMax = 64
  /// The time without received bytes after which a transfer may lose its slot to another sender's transfer
  /// (`TransferSlots`).
  static let stillTime = TimeSpan.seconds(TransferLimits.stillSeconds)
  /// The maximum number of transfers from one node that were not accepted yet.
  static let unansweredMax = 2
  /// How long a sender may keep a session without an offer while other senders wait for a session.
  static let roomTime = TimeSpan.seconds(5)
  /// The maximum total size of the manifests (lists of files) of accepted offers, in bytes and in entries. It is that
  /// of four manifests of the maximum size, which use about 90 MB of memory. A further offer waits until there is
  /// memory.
  static let manifestBytesMax = UInt64(4 * TransferLimits.manifestBytesMax)
  static let entriesMax = UInt64(4 * TransferLimits.entriesMax)
  /// The maximum number of a receiver's sessions with senders, below the daemon's limit of 16 sessions per client. One
  /// node can have `SessionLimits.invitationsPerNodeMax` of them. `TransferSlots` divides them among senders.
  static let sessionsMax = 14
}

/// Runs `turn`, one pass of a command's event loop. If the connection to the daemon is lost, returns the reason;
/// otherwise nil. Throws if a write to standard output has failed.
func broken(
  _ console: any Console, _ turn: () throws(ConnectionError) -> Void
) throws(CommandError) -> TextBuilder? {
  var broken: TextBuilder?
  do throws(ConnectionError) {
    try turn()
  } catch {
    var text = TextBuilder()
    text.add(message: error.text.utf8)
    broken = text
  }
  if console.hasFailed { throw CommandError(ExitCode.failed) }
  return broken
}

/// Writes bytes into a stream, up to the limit that the daemon grants. Further bytes are kept until the limit rises.
struct StreamWriter {
  private static let shortBytes = 32_768

  let stream: UInt32
  private var waiting: [UInt8] = []
  private var start = 0
  private var written: UInt64 = 0
  private var limit: UInt64 = 0

  init(_ stream: UInt32) { self.stream = stream }

  /// Whether no bytes wait until the limit rises.
  var isEmpty: Bool { start == waiting.count }

  /// Whether fewer than `shortBytes` wait. The caller then produces more bytes, so that the daemon always has data to
  /// send.
  var isShort: Bool { waiting.count - start < Self.shortBytes }

  mutating func room(_ limit: UInt64, _ connection: any LocalConnection) {
    self.limit = max(self.limit, limit)
    write([], connection)
  }

  /// Writes as many of the waiting bytes and of `bytes` as the limit allows, and keeps the rest.
  mutating func write(_ bytes: [UInt8], _ connection: any LocalConnection) {
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

/// The receive window of a stream: how many bytes the daemon may deliver to this command.
struct StreamWindow {
  private static let bytes: UInt64 = 262_144

  private var taken: UInt64 = 0
  private(set) var limit = Self.bytes

  /// Counts consumed bytes. When half of the window is used, grants the daemon a full window again.
  mutating func took(_ byteCount: Int, _ stream: UInt32, _ connection: any LocalConnection) {
    taken += UInt64(byteCount)
    guard taken + Self.bytes / 2 >= limit else { return }
    limit = taken + Self.bytes
    connection.post(.streamWindow(stream: stream, limit: limit))
  }
}
