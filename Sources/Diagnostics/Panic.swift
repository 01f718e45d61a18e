import CSystem
import Journal
import Primitives
import Reactor

/// The journal for `panic`. `JournalFile` sets it once at start-up, while there is only one thread.
nonisolated(unsafe) var panicJournal = Journal.none

/// Aborts the process after a violated invariant. Writes the message to stderr and to the journal, which survives the
/// process.
public func panic(_ message: StaticString) -> Never {
  say(message)
  abort()
}

/// Installs signal handlers that record traps in the journal before they end the process; Swift's own traps print
/// nothing. Call it once the journal is open.
public func reportTraps() {
  // SIGABRT is left out, because `panic` raises it.
  for trap in [SIGILL, SIGTRAP, SIGSEGV, SIGFPE] { signal(trap) { reportTrap($0) } }
  // SIGBUS in the journal's own pages is handled elsewhere; see `JournalFile`.
  csystem_on_other_bus_error { reportTrap($0) }
}

private func reportTrap(_ number: CInt) {
  signal(number, nil)  // the default action: a second trap, and the one raised below, end the process
  // This only stores into mapped memory, which is safe in a signal handler. Allocation would not be.
  say(trapText(number))
  raise(number)
}

private func trapText(_ number: CInt) -> StaticString {
  switch number {
  case SIGILL, SIGTRAP: "a check in the code failed (trap)"
  case SIGSEGV: "invalid memory access (SIGSEGV)"
  case SIGBUS: "inaccessible memory (SIGBUS)"
  default: "invalid arithmetic (SIGFPE)"
  }
}

/// Writes the message to the journal and to stderr.
private func say(_ message: StaticString) {
  message.withUTF8Buffer { panicJournal.recordText(.fault, .panic, at: monotonicNow(), UnsafeRawBufferPointer($0)) }
  tell("causeway: panic: ")
  tell(message)
  tell("\n")
}

private func tell(_ text: StaticString) { text.withUTF8Buffer { offerToStandardError(UnsafeRawBufferPointer($0)) } }

extension Journal {
  /// Records a text, “source: text”, of at most 320 bytes. It serves faults without their own event, described by a
  /// library, a radio or a peer. `isCounted`: see `recordText`.
  public func report(
    _ level: Level, at now: Instant, _ source: StaticString, _ text: String, isCounted: Bool = true
  ) {
    let bytes = Array("\(source): \(text)".utf8)
    bytes.withUnsafeBytes { recordText(level, .report, at: now, $0, isCounted: isCounted) }
  }
}
