import CSystem
import Journal
import Primitives
import Reactor

/// Where `panic` writes. Set once at start-up by `JournalFile`, on the only thread.
nonisolated(unsafe) var panicJournal = Journal.none

/// Stop for a broken invariant: say so in the journal, which outlives the process, then on stderr; then abort.
public func panic(_ message: StaticString) -> Never {
  recordPanic(message, in: panicJournal)
  tell("causeway: panic: ")
  tell(message)
  tell("\n")
  abort()
}

private func tell(_ text: StaticString) { text.withUTF8Buffer { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) } }

/// One record for each 40 bytes of the message: a, b, c and the 16 bytes, as they stand.
func recordPanic(_ message: StaticString, in journal: Journal) {
  let now = monotonicNow()
  var offset = 0
  message.withUTF8Buffer { bytes in
    repeat {
      var words: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
      withUnsafeMutableBytes(of: &words) { target in
        let part = bytes[offset..<min(offset + target.count, bytes.count)]
        target.copyBytes(from: part)
        offset += target.count
        let text = JournalText(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(target)[24...]))
        let raw = UnsafeRawBufferPointer(target)
        journal.record(
          .fault, .panic, at: now, raw.load(as: UInt64.self), raw.load(fromByteOffset: 8, as: UInt64.self),
          raw.load(fromByteOffset: 16, as: UInt64.self), text: text)
      }
    } while offset < bytes.count
  }
}
