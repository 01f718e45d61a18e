internal import Transfer

/// A transfer of files and folders to or from a member, created by `Session.offer` or `Offer.accept`. See
/// docs/resources.md.
///
/// If the connection between the two members breaks, the transfer resumes by itself when they are connected again. A
/// transfer is cancelled when no reference to the `Transfer` remains.
public final class Transfer: Sendable {
  /// The progress of a transfer.
  public struct Progress: Hashable, Sendable {
    /// The phase of a transfer.
    public enum State: Hashable, Sendable {
      /// The member has not answered the offer yet.
      case offered
      /// Bytes are transferred, or files from an earlier attempt are compared.
      case moving
      /// The member is out of reach. In this state, the transfer waits at most one hour for the member.
      case away
      /// The transfer has ended; `finish` has the result.
      case ended
    }

    public internal(set) var state = State.offered
    /// At the receiver: bytes of the files that are stored. At the sender: bytes that were sent in this attempt, and
    /// bytes that the receiver had before.
    public internal(set) var bytesDone: UInt64 = 0
    /// The sum of the sizes of all files, in bytes.
    public internal(set) var byteCount: UInt64
    /// Bytes that the receiver had before the current attempt began. The bytes that the receiver already had are not
    /// sent again.
    public internal(set) var bytesHeld: UInt64 = 0
    /// Bytes of files that were sent or received since the transfer was created. Bytes that were sent twice are counted
    /// twice.
    public internal(set) var bytesMoved: UInt64 = 0
    /// At the receiver: the number of complete files. At the sender: the number of files for which the receiver has
    /// reported a result.
    public internal(set) var filesDone = 0
    public internal(set) var fileCount: Int
  }

  /// The member at the other end of the transfer.
  public let member: Address
  let core: TransferCore

  init(_ member: Address, _ core: TransferCore) {
    self.member = member
    self.core = core
  }

  deinit { core.cancel("") }

  /// The progress of the transfer after each change. An application that reads late receives only the latest value. The
  /// sequence ends with the transfer and throws no error.
  public var progress: Events<Progress> {
    Events { await self.core.progress.next() }
  }

  /// Waits until the transfer ends. Cancelling the waiting task cancels the transfer.
  ///
  /// - Returns: at the receiver, the paths of the received files and folders; at the sender, the paths that were
  ///   offered.
  /// - Throws: `declined`, with the member's explanation; `timedOut` if the offer was not answered in 10 minutes, or
  ///   the other end did not return within an hour; `noSpace`; `storage`; `incomplete`; `cancelled`, where `text` names
  ///   the end that cancelled; `busy`; `ended`; `daemonEnded`; `stream` if the member does not support offers of files
  ///   or violated the protocol.
  public func finish() async throws(CausewayError) -> [String] {
    guard let end = await core.ended.value() else {
      core.cancel("")
      throw .cancelled
    }
    return try end.get()
  }

  /// Cancels the transfer. This call has no effect on a transfer that has ended.
  ///
  /// The receiver keeps the received bytes for 24 hours; a repeated offer resumes after these bytes.
  ///
  /// - Parameter explanation: shown to the member's user; cut after 200 bytes.
  public func cancel(_ explanation: String = "") { core.cancel(explanation) }
}

/// The state of a transfer that is the same for the sender's and the receiver's side.
final class TransferCore: Sendable {
  let progress: Mailbox<LastProgress>
  let ended = Promise<Result<[String], CausewayError>>()
  /// Fulfilled with the explanation when the application cancels the transfer.
  let cancelled = Promise<String>()

  init(byteCount: UInt64, fileCount: Int) {
    progress = Mailbox(LastProgress(last: Transfer.Progress(byteCount: byteCount, fileCount: fileCount)))
  }

  func cancel(_ explanation: String) { cancelled.fulfil(explanation) }

  func change(_ body: (inout Transfer.Progress) -> Void) { progress.change { $0.change(body) } }

  func end(_ result: Result<[String], CausewayError>) {
    change { $0.state = .ended }
    progress.end(.success(()))
    ended.fulfil(result)
  }
}

/// The latest progress of a transfer. A new value replaces a value that the application has not read.
struct LastProgress: Content {
  private(set) var last: Transfer.Progress
  private(set) var isEmpty = false

  init(last: Transfer.Progress) { self.last = last }

  mutating func change(_ body: (inout Transfer.Progress) -> Void) {
    let before = last
    body(&last)
    if last != before { isEmpty = false }
  }

  mutating func take() -> Transfer.Progress? {
    guard !isEmpty else { return nil }
    isEmpty = true
    return last
  }
}

/// A signal that can be awaited repeatedly.
final class Signal: Sendable {
  private let mailbox = Mailbox(News())

  private struct News: Content {
    var isEmpty = true
    mutating func take() -> Bool? {
      defer { isEmpty = true }
      return isEmpty ? nil : true
    }
  }

  func notify() { mailbox.change { $0.isEmpty = false } }

  /// Waits until `notify` has been called since `next` last returned. Returns nil if the task was cancelled.
  func next() async -> Void? {
    guard case .success(true?) = await mailbox.next() else { return nil }
    return ()
  }
}

/// Runs a call that may block on a disk on a separate thread, so that no task of the application blocks.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
  await withCheckedContinuation { continuation in
    let isWaiting = Platform.startThread { continuation.resume(returning: body()) }
    if !isWaiting { continuation.resume(returning: body()) }
  }
}

/// The result of `body`, or nil if `body` takes longer than `time`. In the latter case `body` is cancelled.
func within<Value: Sendable>(_ time: Duration, _ body: @escaping @Sendable () async -> Value?) async -> Value? {
  await withTaskGroup(of: Value?.self) { group in
    group.addTask { await body() }
    group.addTask {
      try? await Task.sleep(for: time)
      return nil
    }
    defer { group.cancelAll() }
    return await group.next() ?? nil
  }
}

/// Untrusted text, made safe to print on a terminal.
func readable(_ bytes: [UInt8]) -> String { harmless(String(decoding: bytes, as: UTF8.self)) }
