import CSystem
import Journal
import Primitives
import Reactor

/// The journal for `panic`. Set once at start-up by `JournalFile`, while there is only one thread.
nonisolated(unsafe) var panicJournal = Journal.none

/// Stops after a broken invariant: writes a message to the journal, which survives the process, and to stderr; then
/// aborts.
public func panic(_ message: StaticString) -> Never {
  say(message)
  abort()
}

/// Records traps of broken invariants (Swift's own print nothing) in the journal before they end the process. Call it
/// once the journal is open.
public func reportTraps() {
  // Not SIGABRT, with which `panic` ends.
  for trap in [SIGILL, SIGTRAP, SIGSEGV, SIGFPE] { signal(trap) { reportTrap($0) } }
  // Except for the journal's own pages: see `JournalFile`.
  csystem_on_other_bus_error { reportTrap($0) }
}

private func reportTrap(_ number: CInt) {
  signal(number, nil)  // the default action: a second trap, and the one raised below, end the process
  // This only stores into mapped memory, which is safe in a signal handler; allocation would not be.
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

/// Writes the message to journal and stderr.
private func say(_ message: StaticString) {
  message.withUTF8Buffer { panicJournal.recordText(.fault, .panic, at: monotonicNow(), UnsafeRawBufferPointer($0)) }
  tell("causeway: panic: ")
  tell(message)
  tell("\n")
}

private func tell(_ text: StaticString) { text.withUTF8Buffer { offerToStandardError(UnsafeRawBufferPointer($0)) } }

extension Journal {
  /// Records a text, “source: text”, at most 320 bytes. For faults without an event of their own, which a library, a
  /// radio or a peer describes. `isCounted`: as `recordText`.
  public func report(
    _ level: Level, at now: Instant, _ source: StaticString, _ text: String, isCounted: Bool = true
  ) {
    let bytes = Array("\(source): \(text)".utf8)
    bytes.withUnsafeBytes { recordText(level, .report, at: now, $0, isCounted: isCounted) }
  }
}
