import CommandLine
import LocalAPI
import Primitives
import Session
import Text
import Transfer
import TransferFiles

/// An incoming transfer of the files and folders of one offer, from one member. If its streams break, the sender
/// repeats the offer over new streams. `Receiving` decides whether the offer is accepted.
final class IncomingFiles {
  enum Phase {
    /// The offer has not arrived yet.
    case opening
    case asking
    /// The offer is accepted, and waits for memory for its manifest (its list of files).
    case waiting
    case receiving
    /// The path to the sender failed, or the transfer gave its slot to another sender. The transfer waits until the
    /// sender repeats the offer.
    case away
    /// The last records of the transfer are being sent.
    case ending
    case over
  }

  let from: MemberAddress
  let resource: UInt64
  /// Whether the sender's key is verified, or the sender is accepted without a question.
  let isOfTrusted: Bool
  /// The name that the sender had when the offer arrived.
  let name: [UInt8]
  private(set) var session: UInt32
  /// The number of the stream on which the sender sends; 0 if the stream is not open.
  private(set) var stream: UInt32 = 0
  private(set) var answer = StreamWriter(0)
  private var window = StreamWindow()
  private var hasFinished = false
  private(set) var work = IncomingWork()
  private(set) var offer: OfferRecord?
  private(set) var phase = Phase.opening {
    didSet {
      // Every way out of `asking` passes here, so no question remains after its offer.
      if phase == .asking { return }
      question?.withdraw()
      question = nil
    }
  }
  /// The question to the user in the phase `asking`; otherwise nil.
  private(set) var question: OfferQuestion?
  /// The deadline of the current phase; see `timeUp`.
  private(set) var deadline = Instant.never
  /// Whether the offer was accepted before. A repetition of the offer is then accepted without a question.
  private(set) var isAccepted = false
  private(set) var outcome: ReceiverOutcome?
  /// The reason sent with a refusal, such as an error of the file system.
  private(set) var words = TextBuilder()
  var progress = FileProgress()
  var toldItems = 0
  var isResultShown = false
  private let connection: any LocalConnection
  private let console: any Console

  init(
    _ connection: any LocalConnection, _ console: any Console, _ from: MemberAddress, _ name: [UInt8],
    _ resource: UInt64, _ session: UInt32, isOfTrusted: Bool
  ) {
    self.isOfTrusted = isOfTrusted
    self.connection = connection
    self.console = console
    self.from = from
    self.name = name
    self.resource = resource
    self.session = session
  }

  /// The sender's address as text, in the form that the Swift library uses too. The partial folder, which keeps
  /// received data until all is complete, is found by this text.
  private var sender: [UInt8] {
    var text = TextBuilder()
    text.add(from.node.text)
    text.add("/")
    text.add(hex: UInt64(from.endpoint), digits: 8)
    return text.bytes
  }

  /// Whether `number` identifies one of the transfer's two streams: the sender's stream, or the answer stream.
  func has(_ number: UInt32) -> Bool { number != 0 && (number == stream || number == answer.stream) }

  // MARK: Streams

  /// Accepts a stream of the sender: the first stream, or one that repeats the offer after the path failed. The new
  /// stream replaces an earlier one.
  func take(_ received: UInt32, _ attempt: UInt64, _ session: UInt32) {
    dropStreams()
    work.close()
    (work, window, outcome) = (IncomingWork(), StreamWindow(), nil)
    self.session = session
    stream = connection.ask(.take(stream: received, isWanted: true, limit: window.limit))
    answer = StreamWriter(
      connection.ask(.stream(session: session, to: from, name: ResourceStream.answer(attempt: attempt).name)))
    phase = .opening
    lastHeard = console.now
    deadline = lastHeard + FileLimits.offerTime
  }

  /// Resets both streams. With `isPostponed` the reset asks the sender to try again.
  private func dropStreams(isPostponed: Bool = false) {
    if stream != 0 { connection.ask(.reset(stream: stream, isPostponed: isPostponed)) }
    if answer.stream != 0 { connection.ask(.reset(stream: answer.stream, isPostponed: isPostponed)) }
    (stream, answer) = (0, StreamWriter(0))
  }

  func room(_ limit: UInt64) {
    answer.room(limit, connection)
    finishAnswer()
  }

  /// The time when the sender last opened a stream or sent data.
  private(set) var lastHeard = Instant.zero

  /// Handles bytes from the sender. Returns whether these bytes complete an offer, which then needs an answer.
  func receive(_ bytes: [UInt8]) -> Bool {
    guard outcome == nil else { return false }
    let step = work.receive(bytes)
    lastHeard = console.now
    window.took(bytes.count, stream, connection)
    take(step)
    if let offer = step.offer { self.offer = offer }
    if work.receiver.isComplete, phase == .receiving, deadline == .never {
      deadline = console.now + FileLimits.verdictTime
    }
    // The bytes after the offer can be its cancellation.
    return step.offer != nil && outcome == nil
  }

  private func take(_ step: IncomingWork.Step) {
    answer.write(step.bytes, connection)
    guard let outcome = step.outcome else { return }
    self.outcome = outcome
    phase = .ending
    deadline = console.now + FileLimits.farewellTime
    finishAnswer()
  }

  /// Finishes the answer stream after the last records are written.
  private func finishAnswer() {
    guard outcome != nil, !hasFinished, answer.stream != 0, answer.isEmpty else { return }
    hasFinished = true
    connection.ask(.finish(stream: answer.stream))
  }

  /// Handles the end of one of the two streams.
  func ended(_ number: UInt32, _ end: StreamEnd) {
    let isAnswer = number == answer.stream
    if isAnswer { answer = StreamWriter(0) } else { stream = 0 }
    if phase == .ending {
      // The answer stream has ended, so the sender has received the result.
      if isAnswer { close() }
      return
    }
    switch end {
    case .finished: if !isAnswer { take(work.finished()) }
    // A transfer needs both streams, so the reset of one ends both.
    case .reset: gone(isCut: true)
    case .lost: gone(isCut: false)
    }
  }

  /// Gives this transfer's slot to another sender. As after a failed path, the transfer waits, and continues when its
  /// sender tries again.
  func giveWay() { gone(isCut: false, isPostponed: true) }

  /// Handles a failed path to the sender, or with `isCut` the sender's cancellation.
  func gone(isCut: Bool, isPostponed: Bool = false) {
    dropStreams(isPostponed: isPostponed)
    if phase == .ending { return close() }
    let isComplete = work.receiver.isComplete
    switch ReceiverPolicy.attemptFailed(isCut: isCut, isAccepted: isAccepted, isComplete: isComplete) {
    case .isComplete:
      outcome = work.finished().outcome
      close()
    case .cancelledByPeer:
      work.close()
      // A sender that only lost its path before the answer offers again.
      if isCut { outcome = .cancelledByPeer(.wanted, text: []) }
      close()
    case .awaitsReturn:
      work.close()
      // This also frees the memory of the manifest.
      work = IncomingWork()
      phase = .away
      deadline = console.now + FileLimits.returnTime
    }
  }

  /// Handles the expiry of `deadline`.
  func timeUp() {
    switch phase {
    case .asking, .waiting: refuse(.timedOut, TextBuilder())
    case .receiving where work.receiver.isComplete: gone(isCut: false)
    case .opening, .receiving, .ending, .away, .over: close()
    }
  }

  private func close() {
    if case .complete(let verdicts)? = outcome, phase == .ending, verdicts.allSatisfy({ $0 == .stored }) {
      // Remove the partial folder only after the result was sent. A sender that did not receive the result repeats the
      // offer. The partial folder then shows that everything is stored, so nothing is sent again.
      work.removePartial()
    }
    if case .broken? = outcome { work.removePartial() }
    dropStreams()
    work.close()
    phase = .over
    deadline = .never
  }

  // MARK: The answer

  /// The number of bytes of the offer that are already stored in `directory`; nil if the offer was never accepted
  /// there.
  func bytesHeld(in directory: String) -> UInt64? {
    offer.flatMap { Partial.bytesHeld($0, from: sender, in: directory) }
  }

  /// Enters the phase in which the transfer waits for the user's answer to `question`.
  func asked(_ question: OfferQuestion) {
    self.question = question
    phase = .asking
    deadline = console.now + .seconds(UInt64(TransferLimits.offerSeconds))
  }

  /// Marks the offer as accepted, and lets it wait for memory for its manifest.
  func wait() {
    isAccepted = true
    if phase == .waiting { return }
    phase = .waiting
    deadline = console.now + .seconds(UInt64(TransferLimits.offerSeconds))
  }

  /// The size of the manifest as stated in the offer, whether or not the manifest has arrived.
  var manifestSize: (bytes: UInt64, entries: UInt64) {
    offer.map { (UInt64($0.manifestBytes), UInt64($0.entries)) } ?? (0, 0)
  }

  var holdsManifest: Bool {
    switch phase {
    case .receiving, .ending: isAccepted
    case .opening, .asking, .waiting, .away, .over: false
    }
  }

  func accept(_ directory: String, _ bytesMax: UInt64) {
    guard let offer else { return }
    do throws(ResourceError) {
      let step = try work.accept(directory, bytesMax, offer, from: sender)
      (phase, deadline, isAccepted) = (.receiving, .never, true)
      take(step)
    } catch {
      var text = TextBuilder()
      text.add(message: error.text.utf8)
      switch error.reason {
      case .busy: refuse(.busy, text)
      case .noSpace: refuse(.noSpace, text)
      case .invalid, .storage, .unsupported, .outOfReach, .timedOut, .cancelled: refuse(.declined, text)
      }
    }
  }

  func refuse(_ code: AnswerCode, _ text: TextBuilder) {
    words = text
    take(work.refuse(code, text.bytes))
  }

  /// Cancels the transfer at the user's request. Stored data is kept.
  func cancel() {
    switch phase {
    case .receiving: take(work.cancel([]))
    case .asking, .waiting: refuse(.declined, TextBuilder())
    case .opening, .away: close()
    case .ending, .over: break
    }
  }

  /// This transfer as an entry of `TransferSlots`, which divides the slots among senders. A transfer that waits for
  /// memory is treated as active, because its sender cannot end the wait.
  func entry(now: Instant) -> TransferSlots<NodeID>.Entry {
    TransferSlots.Entry(
      sender: from.node, isTrusted: isAccepted || isOfTrusted,
      stillMilliseconds: phase == .waiting ? 0 : (now - lastHeard).milliseconds, mayYield: phase != .ending)
  }

  var state: FileProgress.State {
    let receiver = work.receiver
    return FileProgress.State(
      done: receiver.bytesDone, total: offer?.bytes ?? 0, held: receiver.bytesHeld, moved: receiver.bytesReceived)
  }
}
