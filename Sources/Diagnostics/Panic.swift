import CSystem
import Journal
import Primitives
import Reactor

/// Where `panic` writes. Set once at start-up by `JournalFile`, on the only thread.
nonisolated(unsafe) var panicJournal = Journal.none

/// Stop for a broken invariant: say so in the journal, which outlives the process, then on stderr; then abort.
public func panic(_ message: StaticString) -> Never {
  say(message)
  abort()
}

/// Let the traps of a broken invariant (Swift's own say nothing) reach the journal too, before they end the process.
/// Call it once the journal is open.
public func reportTraps() {
  // SIGABRT is not among them: it is how `panic` ends.
  for trap in [SIGILL, SIGTRAP, SIGSEGV, SIGFPE] { signal(trap) { reportTrap($0) } }
  // The journal's own pages are not meant: see `JournalFile`.
  csystem_on_other_bus_error { reportTrap($0) }
}

private func reportTrap(_ number: CInt) {
  signal(number, nil)  // the default action: a second trap, and the one raised below, end the process
  // Stores into mapped memory: safe in a signal handler, unlike anything that allocates.
  say(trapText(number))
  raise(number)
}

private func trapText(_ number: CInt) -> StaticString {
  switch number {
  case SIGILL, SIGTRAP: "a check in the code failed (trap)"
  case SIGSEGV: "memory that is not there (SIGSEGV)"
  case SIGBUS: "memory that cannot be reached (SIGBUS)"
  default: "arithmetic that has no result (SIGFPE)"
  }
}

/// The last words, to journal and stderr.
private func say(_ message: StaticString) {
  message.withUTF8Buffer { panicJournal.recordText(.fault, .panic, at: monotonicNow(), UnsafeRawBufferPointer($0)) }
  tell("causeway: panic: ")
  tell(message)
  tell("\n")
}

private func tell(_ text: StaticString) { text.withUTF8Buffer { offerToStandardError(UnsafeRawBufferPointer($0)) } }

extension Journal {
  /// Record words: “source: text”, at most 320 bytes of it. For what has no event of its own: a fault that
  /// a library, a radio or a peer described.
  public func report(_ level: Level, at now: Instant, _ source: StaticString, _ text: String) {
    let bytes = Array("\(source): \(text)".utf8)
    bytes.withUnsafeBytes { recordText(level, .report, at: now, $0) }
  }
}
