import CSystem
import Journal
import Primitives
import Reactor
import Text

/// The journal in which a trap is recorded. `JournalFile` sets the variable once at start-up, while the process has
/// only one thread.
nonisolated(unsafe) var panicJournal = Journal.none

/// Installs signal handlers that record a trap in the journal before the process ends. Without them a trap of Swift
/// prints nothing. Call this function after the journal is opened.
public func reportTraps() {
  for trap in [SIGILL, SIGTRAP, SIGSEGV, SIGFPE, SIGABRT] { signal(trap) { reportTrap($0) } }
  // This handler receives only SIGBUS outside the journal's pages. `JournalFile` handles the signal inside them.
  csystem_on_other_bus_error { reportTrap($0) }
}

private func reportTrap(_ number: CInt) {
  signal(number, nil)  // restores the default action, so a second trap or `raise` below ends the process
  // A signal handler must not allocate. `say` allocates nothing: it stores into mapped memory and writes to stderr.
  say(trapText(number))
  raise(number)
}

private func trapText(_ number: CInt) -> StaticString {
  switch number {
  case SIGILL, SIGTRAP: "a check in the code failed (trap)"
  case SIGSEGV: "invalid memory access (SIGSEGV)"
  case SIGBUS: "inaccessible memory (SIGBUS)"
  case SIGABRT: "aborted by a library, or by the watchdog of systemd (SIGABRT)"
  default: "invalid arithmetic (SIGFPE)"
  }
}

/// Writes the message to the journal and to stderr.
private func say(_ message: StaticString) {
  message.withUTF8Buffer { panicJournal.recordText(.fault, .panic, at: monotonicNow(), UnsafeRawBufferPointer($0)) }
  write("causeway: panic: ")
  write(message)
  write("\n")
}

private func write(_ text: StaticString) { text.withUTF8Buffer { offerToStandardError(UnsafeRawBufferPointer($0)) } }

extension Journal {
  /// Records a text, “source: text”, of at most 320 bytes. Use it for a fault that has no `Event` of its own and that a
  /// library, a radio or a peer describes in words. `cause` is who caused the fault. If `isCounted`, the journal counts
  /// repetitions instead of writing each; callers with their own rate limit pass false.
  public func report(
    _ level: Level, at now: Instant, _ source: StaticString, _ text: String, cause: RecordCause = .box,
    isCounted: Bool = true
  ) {
    let bytes = Array("\(source): \(text)".utf8)
    bytes.withUnsafeBytes { recordText(level, .report, at: now, $0, cause: cause, isCounted: isCounted) }
  }
}
