internal import Transfer
internal import TransferFiles

/// Files and folders that a member offers: `SessionEvent.offer`. It waits 10 minutes for its answer. One that is dropped
/// without an answer is declined; of those that are not answered eight of a session are kept, and more are refused.
/// docs/resources.md.
public final class Offer: Sendable {
  /// Who offers it, as it stood when the offer came.
  public let from: Member
  /// Of the first file or folder, at most 255 bytes: untrusted. It is no path, and not where it will be.
  public let name: String
  /// Of all files.
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

  /// Bytes of this resource, from this sender, that a transfer which broke has left for a directory: they are not sent
  /// again. More than 0 says that it was accepted into it in the last 24 h. 0 for a directory that cannot be read.
  public func bytesHeld(in directory: String) async -> UInt64 {
    let record = record, sender = Array(from.address.description.utf8)
    return await onThread { Partial.bytesHeld(record, from: sender, in: directory) ?? 0 }
  }

  /// Accepts it. Each file and folder that was offered appears in the directory when it is whole, under its name or, when
  /// that is taken, another one (`foto-2.jpg`); a `.` or `-` in front becomes `_`. Until then it is in a hidden folder
  /// there, also after a break or a restart, for 24 h.
  ///
  /// - Parameters:
  ///   - directory: one that exists. Nothing is written outside of it.
  ///   - bytesMax: a larger offer is refused.
  /// - Throws: `noSpace` when there is no room for it, or it is larger than `bytesMax`, and the sender is told so;
  ///   `storage` when the directory cannot be used: then the offer still waits; `busy` when it is being received into
  ///   this directory already; `ended` when it was answered or has ended.
  public func accept(into directory: String, bytesMax: UInt64 = .max) async throws(CausewayError) -> Transfer {
    try await run.accept(directory, bytesMax, record)
    return Transfer(from.address, run.inside)
  }

  /// Declines it, with a word of at most 200 bytes for the sender's user; a longer one is cut. One that has ended
  /// meanwhile is no error.
  public func decline(_ explanation: String = "") { run.decline(explanation) }
}

extension Offer: Hashable {
  public static func == (a: Offer, b: Offer) -> Bool { a === b }
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
