internal import Transfer
internal import TransferFiles

/// Files and folders that a member offers, from `SessionEvent.offer`. See docs/resources.md.
///
/// An offer waits 10 minutes for an answer. An offer that the application releases without an answer is declined. At
/// most eight unanswered offers of a session are kept; further offers are refused.
public final class Offer: Sendable {
  /// The member that made the offer, with the member's state at the time of the offer.
  public let from: Member
  /// The name of the first file or folder, at most 255 bytes; untrusted. The name is not a path, and the stored file
  /// can have another name.
  public let name: String
  /// The sum of the sizes of all files, in bytes.
  public let byteCount: UInt64
  public let fileCount: Int
  let run: IncomingTransferTask
  private let record: OfferRecord

  init(_ run: IncomingTransferTask, _ record: OfferRecord) {
    self.run = run
    self.record = record
    from = run.sender
    name = readable(record.name)
    byteCount = record.bytes
    fileCount = Int(record.files)
  }

  deinit { run.decline("") }

  /// The number of bytes that an interrupted transfer of the same files from the same sender has left in a directory.
  /// These bytes are not sent again.
  ///
  /// A value above 0 means that the same offer was accepted into this directory before. The value is 0 for a directory
  /// that cannot be read.
  public func bytesHeld(in directory: String) async -> UInt64 {
    let record = record, sender = Array(from.address.description.utf8)
    return await onThread { Partial.bytesHeld(record, from: sender, in: directory) ?? 0 }
  }

  /// Accepts the offer.
  ///
  /// Each offered file or folder appears in the directory when the file or folder is complete. If the name is taken,
  /// the file or folder gets another name (`foto-2.jpg`). A `.` or `-` at the beginning of a name becomes `_`.
  /// Incomplete files are kept in a hidden folder of the directory, across breaks and restarts, for 24 hours.
  ///
  /// - Parameters:
  ///   - directory: an existing directory. Nothing is written outside this directory.
  ///   - bytesMax: the maximum sum of the file sizes, in bytes. A larger offer is refused.
  /// - Throws: `noSpace` if the free space is too small or the offer is larger than `bytesMax`; the sender is notified.
  ///   `storage` if the directory cannot be used; the offer remains open. `busy` if the same offer is already being
  ///   received into this directory; `ended` if the offer was answered or has ended.
  public func accept(into directory: String, bytesMax: UInt64 = .max) async throws(CausewayError) -> Transfer {
    try await run.accept(directory, bytesMax, record)
    return Transfer(from.address, run.core)
  }

  /// Declines the offer. The call has no effect on an offer that has ended.
  ///
  /// - Parameter explanation: shown to the sender's user; cut after 200 bytes.
  public func decline(_ explanation: String = "") { run.decline(explanation) }
}

extension Offer: Hashable {
  public static func == (a: Offer, b: Offer) -> Bool { a === b }
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
