import CSystem
import Journal
import Primitives

/// The present faults of the parts of the daemon, for the status and the status light. Reports go to the journal and to
/// standard error.
final class FaultReports {
  /// A part without a fault has no entry. The oldest fault is first.
  private(set) var all: [(source: StaticString, text: String)] = []
  private let journal: Journal
  private let now: () -> Instant
  private let write: (StaticString, String) -> Void

  /// `write` writes a line for the operator.
  init(
    _ journal: Journal, now: @escaping () -> Instant, write: @escaping (StaticString, String) -> Void = say(_:_:)
  ) {
    self.journal = journal
    self.now = now
    self.write = write
  }

  /// Adds a fault that the start has reported already.
  func add(_ source: StaticString, _ text: String) { all.append((source, text)) }

  /// Reports a fault of a part, or an event that is no fault and ends the part's fault.
  func report(_ source: StaticString, _ text: String, isFault: Bool) {
    resolve(source)
    if isFault { all.append((source, text)) }
    journal.report(isFault ? .warning : .notice, at: now(), source, text)
    write(source, text)
  }

  /// Reports the start and the end of a fault, once each. `fault` is nil if the part has no fault.
  func note(_ source: StaticString, _ fault: String?) {
    if let fault {
      if self[source] == nil { report(source, fault, isFault: true) }
    } else if self[source] != nil {
      report(source, "works again", isFault: false)
    }
  }

  /// Removes the fault of a part, without a report.
  func resolve(_ source: StaticString) { all.removeAll { $0.source == source } }

  subscript(source: StaticString) -> String? { all.first { $0.source == source }?.text }
}

private func == (a: StaticString, b: StaticString) -> Bool {
  a.utf8CodeUnitCount == b.utf8CodeUnitCount && memcmp(a.utf8Start, b.utf8Start, a.utf8CodeUnitCount) == 0
}
