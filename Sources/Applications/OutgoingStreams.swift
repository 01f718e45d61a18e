import LocalAPI
import Session
import Transfer

/// The two streams of one attempt to send: the sender's, which carries the offer and the files, and the receiver's
/// answer.
struct OutgoingStreams {
  private let attempt: UInt64
  private var writer: StreamWriter
  /// The number of the answer stream; nil until the receiver has opened it.
  private var answer: UInt32?
  private var window = StreamWindow()

  /// Opens the sender's stream to a member.
  init(_ connection: any LocalConnection, _ session: UInt32, to address: MemberAddress, _ manifest: Manifest) {
    attempt = UInt64.random(in: .min ... .max)
    let name = ResourceStream.offer(resource: ResourceStream.resource(manifest.digest), attempt: attempt).name
    writer = StreamWriter(connection.ask(.stream(session: session, to: address, name: name)))
  }

  // MARK: The sender's stream

  /// The number of the sender's stream; nil after the receiver has cancelled it.
  var stream: UInt32? { writer.stream == 0 ? nil : writer.stream }

  /// Whether few bytes wait until the limit of the sender's stream rises.
  var isShort: Bool { writer.isShort }
  /// Whether no bytes wait until the limit of the sender's stream rises.
  var isEmpty: Bool { writer.isEmpty }

  /// Handles a new limit of the sender's stream.
  mutating func room(_ limit: UInt64, _ connection: any LocalConnection) { writer.room(limit, connection) }

  mutating func write(_ bytes: [UInt8], _ connection: any LocalConnection) {
    if stream != nil { writer.write(bytes, connection) }
  }

  /// Forgets the sender's stream, which the receiver has cancelled. The answer may still arrive.
  mutating func cancelled() { writer = StreamWriter(0) }

  // MARK: The answer

  /// Handles a stream that a member has opened: accepts the answer to this attempt, and refuses any other stream.
  mutating func opened(
    _ received: UInt32, _ name: [UInt8], isFromReceiver: Bool, _ connection: any LocalConnection
  ) {
    let isAnswer = answer == nil && ResourceStream(name) == .answer(attempt: attempt) && isFromReceiver
    let limit = isAnswer ? window.limit : 0
    let number = connection.ask(.take(stream: received, isWanted: isAnswer, limit: limit))
    if isAnswer { answer = number }
  }

  func isAnswer(_ stream: UInt32) -> Bool { stream == answer }

  /// Counts bytes of the answer that were handled.
  mutating func took(_ byteCount: Int, _ connection: any LocalConnection) {
    if let answer { window.took(byteCount, answer, connection) }
  }

  /// Forgets the answer after the attempt has failed. A later answer is refused.
  mutating func failed() { answer = nil }
}
