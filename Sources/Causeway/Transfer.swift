internal import Transfer

/// Files and folders on their way to or from a member: made by `Session.offer` and `Offer.accept`. When the stream below
/// breaks it goes on by itself as soon as both ends are there again. It is cancelled when it is no longer held.
/// docs/resources.md.
public final class Transfer: Sendable {
  /// How far a transfer is.
  public struct Progress: Hashable, Sendable {
    /// What is going on.
    public enum State: Hashable, Sendable {
      /// The member has not answered yet.
      case offered
      /// Bytes move, or what was there before is compared.
      case moving
      /// The member, or the way to it, is not there; it is waited for, an hour at most.
      case away
      /// It has ended: `finish` says how.
      case ended
    }

    public internal(set) var state = State.offered
    /// Bytes of the files that are there, or at the sender: that were sent.
    public internal(set) var bytesDone: UInt64 = 0
    /// Of all files.
    public internal(set) var byteCount: UInt64
    /// Bytes that were there before this stream began: they are not sent again.
    public internal(set) var bytesHeld: UInt64 = 0
    /// Bytes of files that were sent or received since the transfer was made, those included that were sent twice.
    public internal(set) var bytesMoved: UInt64 = 0
    /// Files that are whole; at the sender: of which the receiver has said what became of them.
    public internal(set) var filesDone = 0
    public internal(set) var fileCount: Int
  }

  /// The other end.
  public let member: Address
  let inside: TransferInside

  init(_ member: Address, _ inside: TransferInside) {
    self.member = member
    self.inside = inside
  }

  deinit { inside.cancel("") }

  /// How far it is, each time that it has come further: of what was not taken the last. The sequence ends with the
  /// transfer, without an error.
  public var progress: Events<Progress> {
    Events { await self.inside.progress.next() }
  }

  /// Waits for its end. A task that is cancelled cancels the transfer.
  ///
  /// - Returns: at the receiver the paths where the files and folders are now; at the sender those that were offered.
  /// - Throws: `declined`, with the word of the member; `timedOut` when nobody answered in 10 minutes, or the other end
  ///   did not return in an hour; `noSpace`; `storage`; `incomplete`; `cancelled`, by whom `text` says; `busy`;
  ///   `ended`; `daemonEnded`; `stream`: the member takes no resources, or broke the protocol.
  public func finish() async throws(CausewayError) -> [String] {
    guard let end = await inside.ended.value() else {
      inside.cancel("")
      throw .cancelled
    }
    return try end.get()
  }

  /// Ends it, with a word of at most 200 bytes for the member's user; a longer one is cut. What came is kept for 24 h at
  /// its receiver: the same call goes on there. One that has ended is not changed.
  public func cancel(_ explanation: String = "") { inside.cancel(explanation) }
}

/// What both ends of a transfer have.
final class TransferInside: Sendable {
  let progress: Mailbox<LastProgress>
  let ended = Promise<Result<[String], CausewayError>>()
  /// Kept with the word when the application cancels it.
  let cancelled = Promise<String>()

  init(byteCount: UInt64, fileCount: Int) {
    progress = Mailbox(LastProgress(last: Transfer.Progress(byteCount: byteCount, fileCount: fileCount)))
  }

  func cancel(_ explanation: String) { cancelled.fulfil(explanation) }

  func tell(_ body: (inout Transfer.Progress) -> Void) { progress.change { $0.change(body) } }

  func end(_ result: Result<[String], CausewayError>) {
    tell { $0.state = .ended }
    progress.end(.success(()))
    ended.fulfil(result)
  }
}

/// Of progress that nobody took the last stands for all.
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

/// Something to wait for again and again.
final class Signal: Sendable {
  private let mailbox = Mailbox(News())

  private struct News: Content {
    var isEmpty = true
    mutating func take() -> Bool? {
      defer { isEmpty = true }
      return isEmpty ? nil : true
    }
  }

  func tell() { mailbox.change { $0.isEmpty = false } }

  /// Until it was told since the last time. Nil when the task was cancelled.
  func next() async -> Void? {
    guard case .success(true?) = await mailbox.next() else { return nil }
    return ()
  }
}

/// A call that may wait for a disk, on a thread of its own: no task of the application waits for it.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
  await withCheckedContinuation { continuation in
    let isWaiting = Platform.startThread { continuation.resume(returning: body()) }
    if !isWaiting { continuation.resume(returning: body()) }
  }
}

/// What `body` returns within a time; nil when it took longer, and then its task is cancelled.
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

/// Text of others, harmless for a terminal.
func readable(_ bytes: [UInt8]) -> String { harmless(String(decoding: bytes, as: UTF8.self)) }
