internal import Transfer
internal import TransferFiles

/// Files and folders that a member offers, from `SessionEvent.offer`. See docs/resources.md.
///
/// An offer waits 10 minutes for its answer. It is declined if the application releases it without an answer. At most
/// eight unanswered offers of a session are kept; more are refused.
public final class Offer: Sendable {
  /// The member that made the offer, in its state at that time.
  public let from: Member
  /// The name of the first file or folder, at most 255 bytes: untrusted. It is not a path, and not the final name.
  public let name: String
  /// Bytes of all files.
  public let byteCount: UInt64
  public let fileCount: Int
  let run: IncomingRun
  private let record: OfferRecord

  init(_ run: IncomingRun, _ record: OfferRecord) {
    self.run = run
    self.record = record
    from = run.sender
    name = readable(record.name)
    byteCount = record.bytes
    fileCount = Int(record.files)
  }

  deinit { run.decline("") }

  /// The number of bytes that an interrupted transfer of this resource from this sender has left in a directory. They
  /// are not sent again.
  ///
  /// A value above 0 means that the resource was accepted into this directory in the last 24 hours. The value is 0 for
  /// a directory that cannot be read.
  public func bytesHeld(in directory: String) async -> UInt64 {
    let record = record, sender = Array(from.address.description.utf8)
    return await onThread { Partial.bytesHeld(record, from: sender, in: directory) ?? 0 }
  }

  /// Accepts the offer.
  ///
  /// Each offered file or folder appears in the directory once it is complete. It keeps its name, or gets another one
  /// if the name is taken (`foto-2.jpg`); a leading `.` or `-` becomes `_`. Until then it is kept in a hidden folder in
  /// the directory, across breaks and restarts, for 24 hours.
  ///
  /// - Parameters:
  ///   - directory: an existing directory. Nothing is written outside it.
  ///   - bytesMax: a larger offer is refused.
  /// - Throws: `noSpace` if there is no room or the offer is larger than `bytesMax`, and the sender is notified;
  ///   `storage` if the directory cannot be used, and the offer remains open; `busy` if the resource is already being
  ///   received into this directory; `ended` if the offer was answered or has ended.
  public func accept(into directory: String, bytesMax: UInt64 = .max) async throws(CausewayError) -> Transfer {
    try await run.accept(directory, bytesMax, record)
    return Transfer(from.address, run.inside)
  }

  /// Declines the offer. It has no effect on an offer that has ended.
  ///
  /// - Parameter explanation: shown to the sender's user; cut after 200 bytes.
  public func decline(_ explanation: String = "") { run.decline(explanation) }
}

extension Offer: Hashable {
  public static func == (a: Offer, b: Offer) -> Bool { a === b }
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
