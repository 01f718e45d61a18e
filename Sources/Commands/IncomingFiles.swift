import Diagnostics
import LocalAPI
import LocalClient
import Primitives
import Reactor
import Session
import Transfer
import TransferFiles

/// Files and folders from a member: one offer, over as many streams as it takes. `CommandReceive` decides on it.
final class IncomingFiles {
  enum Phase {
    /// The offer has not come yet.
    case opening
    case asking
    /// Accepted; it waits until there is memory for its manifest.
    case waiting
    case receiving
    /// The path broke, or the sender is gone: the same offer is waited for.
    case away
    /// The last words are on their way.
    case ending
    case over
  }

  let from: MemberAddress
  let resource: UInt64
  /// Its sender is one that is accepted without a question, or whose key is verified.
  let isOfTrusted: Bool
  /// The sender's name as it was when the offer came.
  let name: [UInt8]
  private(set) var session: UInt32
  /// The sender's stream.
  private(set) var stream: UInt32 = 0
  private(set) var answer = StreamWriter(0)
  private var window = StreamWindow()
  private var hasFinished = false
  private(set) var work = IncomingWork()
  private(set) var offer: OfferRecord?
  private(set) var phase = Phase.opening
  /// What of a phase takes too long ends then.
  private(set) var deadline = Instant.never
  /// It was accepted once: nobody is asked again.
  private(set) var isAccepted = false
  private(set) var outcome: ReceiverOutcome?
  /// Why it was refused or cannot be stored.
  private(set) var words = TextBuilder()
  var progress = FileProgress()
  var toldItems = 0
  private let connection: DaemonConnection

  init(
    _ connection: DaemonConnection, _ from: MemberAddress, _ name: [UInt8], _ resource: UInt64, _ session: UInt32,
    isOfTrusted: Bool
  ) {
    self.isOfTrusted = isOfTrusted
    self.connection = connection
    self.from = from
    self.name = name
    self.resource = resource
    self.session = session
  }

  /// The sender as text: what the library calls it too.
  private var sender: [UInt8] {
    var text = TextBuilder()
    text.add(from.node.text)
    text.add("/")
    text.add(hex: UInt64(from.endpoint), digits: 8)
    return text.bytes
  }

  /// Whether these numbers are of its streams.
  func has(_ number: UInt32) -> Bool { number != 0 && (number == stream || number == answer.stream) }

  // MARK: Streams

  /// Takes a stream of the sender: the first one, or the same offer after a break. The latest one counts.
  func take(_ received: UInt32, _ attempt: UInt64, _ session: UInt32) {
    dropStreams()
    work.close()
    (work, window, outcome) = (IncomingWork(), StreamWindow(), nil)
    self.session = session
    stream = connection.ask(.take(stream: received, isWanted: true, limit: window.limit))
    answer = StreamWriter(
      connection.ask(.stream(session: session, to: from, name: ResourceStream.answer(attempt: attempt).name)))
    phase = .opening
    lastHeard = monotonicNow()
    deadline = lastHeard + FileLimits.offerTime
  }

  /// `isPostponed` tells the sender to come again.
  private func dropStreams(isPostponed: Bool = false) {
    if stream != 0 { connection.ask(.reset(stream: stream, isPostponed: isPostponed)) }
    if answer.stream != 0 { connection.ask(.reset(stream: answer.stream, isPostponed: isPostponed)) }
    (stream, answer) = (0, StreamWriter(0))
  }

  func room(_ limit: UInt64) {
    answer.room(limit, connection)
    finishAnswer()
  }

  /// When the sender said something last.
  private(set) var lastHeard = Instant.zero

  /// Bytes of the sender. True when an offer is to be answered.
  func hear(_ bytes: [UInt8]) -> Bool {
    guard outcome == nil else { return false }
    let step = work.hear(bytes)
    lastHeard = monotonicNow()
    window.took(bytes.count, stream, connection)
    take(step)
    if let offer = step.offer { self.offer = offer }
    if work.receiver.isComplete, phase == .receiving, deadline == .never {
      deadline = monotonicNow() + FileLimits.verdictTime
    }
    return step.offer != nil
  }

  private func take(_ step: IncomingWork.Step) {
    answer.write(step.bytes, connection)
    guard let outcome = step.outcome else { return }
    self.outcome = outcome
    phase = .ending
    deadline = monotonicNow() + FileLimits.farewellTime
    finishAnswer()
  }

  /// Behind the last words.
  private func finishAnswer() {
    guard outcome != nil, !hasFinished, answer.stream != 0, answer.isEmpty else { return }
    hasFinished = true
    connection.ask(.finish(stream: answer.stream))
  }

  /// A stream of it has ended.
  func ended(_ number: UInt32, _ end: StreamEnd) {
    let isAnswer = number == answer.stream
    if isAnswer { answer = StreamWriter(0) } else { stream = 0 }
    if phase == .ending {
      // The sender has heard it.
      if isAnswer { close() }
      return
    }
    switch end {
    case .finished: if !isAnswer { take(work.finished()) }
    // Without an answer there is no transfer.
    case .reset: gone(isCut: true)
    case .lost: gone(isCut: false)
    }
  }

  /// Another sender gets its place. It waits outside, as after a break, and goes on when its sender comes again.
  func giveWay() { gone(isCut: false, isPostponed: true) }

  /// The path broke, or the sender gave up.
  func gone(isCut: Bool, isPostponed: Bool = false) {
    dropStreams(isPostponed: isPostponed)
    if phase == .ending { return close() }
    if work.receiver.isComplete {
      // All that is missing is that the sender has heard it.
      outcome = work.finished().outcome
      return close()
    }
    work.close()
    if isCut {
      outcome = .cancelledByPeer(.wanted, text: [])
      return close()
    }
    guard isAccepted else { return close() }
    // With the memory of its manifest.
    work = IncomingWork()
    phase = .away
    deadline = monotonicNow() + FileLimits.returnTime
  }

  /// It took too long.
  func timeUp() {
    switch phase {
    case .asking, .waiting: refuse(.timedOut, TextBuilder())
    case .receiving where work.receiver.isComplete: gone(isCut: false)
    case .opening, .receiving, .ending, .away, .over: close()
    }
  }

  private func close() {
    if case .complete(let verdicts)? = outcome, phase == .ending, verdicts.allSatisfy({ $0 == .stored }) {
      // Who has not heard it asks again, and must not send everything once more.
      work.removePartial()
    }
    if case .broken? = outcome { work.removePartial() }
    dropStreams()
    work.close()
    phase = .over
    deadline = .never
  }

  // MARK: The answer

  /// Bytes that are in a directory already; nil when this was never accepted into it.
  func bytesHeld(in directory: String) -> UInt64? {
    offer.flatMap { Partial.bytesHeld($0, from: sender, in: directory) }
  }

  /// Until somebody has answered.
  func asked() {
    phase = .asking
    deadline = monotonicNow() + .seconds(UInt64(TransferLimits.offerSeconds))
  }

  /// It is accepted, but not now.
  func wait() {
    isAccepted = true
    if phase == .waiting { return }
    phase = .waiting
    deadline = monotonicNow() + .seconds(UInt64(TransferLimits.offerSeconds))
  }

  /// What its manifest takes, or will take.
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
    do throws(ResourceFailure) {
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

  /// The user cancels it: what came is kept.
  func cancel() {
    switch phase {
    case .receiving: take(work.cancel([]))
    case .asking, .waiting: refuse(.declined, TextBuilder())
    case .opening, .away: close()
    case .ending, .over: break
    }
  }

  /// Among others that share places. One that waits for memory here is not its sender's to move.
  func entry(now: Instant) -> TransferPlaces<NodeID>.Entry {
    TransferPlaces.Entry(
      sender: from.node, isTrusted: isAccepted || isOfTrusted,
      stillMilliseconds: phase == .waiting ? 0 : (now - lastHeard).milliseconds, mayYield: phase != .ending)
  }

  var state: FileProgress.State {
    let receiver = work.receiver
    return FileProgress.State(
      done: receiver.bytesDone, total: offer?.bytes ?? 0, held: receiver.bytesHeld, moved: receiver.bytesReceived)
  }
}
