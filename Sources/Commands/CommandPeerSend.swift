import CSystem
import Channel
import Diagnostics
import Messages
import Primitives
import Reactor

/// `causeway peer send`
func commandPeerSend(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var file = ""
  var to = ""
  var seconds: UInt64?
  CommandParser.parse(
    "causeway peer send", words, arguments: "FILE", count: 1...1,
    help:
      """
      Send a file to a peer that runs “causeway peer receive”. Exit code 0 tells that it has the whole file and \
      its SHA-256 is right.
      """,
    options: ClientOptions.options + [
      PeerOption.to, PeerOption.seconds("Give up after N seconds, with exit code 4"),
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    switch key {
    case CommandParser.argument: file = value
    case PeerOption.toKey: to = value
    default:
      guard let number = PeerOption.parseSeconds(value) else { return PeerOption.secondsAccepted }
      seconds = number
    }
    return nil
  }
  return run { () throws(CommandFailure) in
    if to.utf8.isEmpty { throw CommandFailure(saying: "whom to? name the peer by --to NAME", ExitCode.usage) }
    try send(file, to, options, seconds)
  }
}

private func send(
  _ file: String, _ to: String, _ options: ClientOptions, _ seconds: UInt64?
) throws(CommandFailure) {
  let end = deadline(after: seconds)
  let descriptor = csystem_open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0)
  var information = stat()
  guard descriptor >= 0, fstat(descriptor, &information) == 0 else {
    throw CommandFailure(saying: "\(file): \(SystemError.last.text)")
  }
  defer { close(descriptor) }
  guard information.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG) else {
    throw CommandFailure(saying: "\(file): not a regular file")
  }
  guard let digest = digest(ofFile: descriptor) else {
    throw CommandFailure(saying: "\(file): \(SystemError.last.text)")
  }
  let connection = try PeerConnection(
    options,
    kinds: [MessageKind.resourceAnswer.rawValue, MessageKind.resourceCancel.rawValue, MessageKind.control.rawValue])
  let appearEnd = seconds == nil ? deadline(after: PeerConnection.appearSecondsDefault) : end
  let peer = try connection.peer(named: to, until: appearEnd)
  let offer: ResourceOffer
  do throws(MessageRefusal) {
    offer = try ResourceOffer(
      transfer: UInt32.random(in: .min ... .max), size: UInt64(information.st_size), digest: digest,
      name: lastComponent(file))
  } catch {
    throw CommandFailure(saying: "\(file): a name of 1 to \(MessageLimits.nameBytesMax) bytes of UTF-8 is needed")
  }
  var transfer = OutgoingTransfer(connection, peer, descriptor, offer, name: connection.book.name(peer))
  try transfer.run(until: end)
}

private func lastComponent(_ path: String) -> [UInt8] {
  let bytes = Array(path.utf8)
  guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return bytes }
  return Array(bytes[(slash + 1)...])
}

/// One outgoing file, driven by the daemon's events.
private struct OutgoingTransfer {
  /// Messages passed to the daemon and not delivered yet: enough to keep the channel full.
  static let outstandingMax = 32

  private let connection: PeerConnection
  private let peer: NodeID
  private let descriptor: CInt
  private let name: String
  private var sender: ResourceSender
  private var progress: TransferProgress
  private var outstanding: [UInt32] = []
  private var outcome: ResourceOutcome?
  /// Why a message could not be delivered.
  private var failure: SendOutcome?

  init(_ connection: PeerConnection, _ peer: NodeID, _ descriptor: CInt, _ offer: ResourceOffer, name: String) {
    self.connection = connection
    self.peer = peer
    self.descriptor = descriptor
    self.name = name
    sender = ResourceSender(offer: offer)
    progress = TransferProgress("sending to \(name)", total: offer.size)
  }

  mutating func run(until end: Instant) throws(CommandFailure) {
    var isOutOfTime = false
    drain()
    while outcome == nil || (!outstanding.isEmpty && failure == nil && !isOutOfTime) {
      let happening = try connection.next(until: min(end, sender.nextDeadline))
      let now = monotonicNow()
      switch happening {
      case .message(let message): handle(message, now)
      case .completed(let request, let outcome): completed(request, outcome, now)
      case .vanished(let peer):
        if peer.id == self.peer { printError("\(name) is gone; waiting for it to come back") }
      case .appeared(let peer):
        if peer.id == self.peer { printError("\(name) is back") }
      case .changed, .otherReady: continue
      case .timedOut:
        if now >= end {
          isOutOfTime = true
          sender.cancel()
        } else {
          sender.handleTimeout(now: now)
        }
      }
      drain(isLast: isOutOfTime)
      progress.update(sender.progress.delivered)
    }
    progress.end()
    if isOutOfTime { throw CommandFailure(saying: "the time ran out", ExitCode.timedOut) }
    try conclude()
  }

  /// `isLast`: only the cancellation is left, which is sent regardless of `outstandingMax`.
  private mutating func drain(isLast: Bool = false) {
    while isLast || outstanding.count < Self.outstandingMax, let command = sender.nextCommand(now: monotonicNow()) {
      switch command {
      case .send(let message):
        outstanding.append(
          connection.send(message.kind.rawValue, message.bytes, lane: Lane.bulk.rawValue, to: peer))
      case .read(let offset, let count):
        var bytes = [UInt8](repeating: 0, count: count)
        let got = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
        if got == count { sender.provide(bytes) } else { sender.sourceFailed() }
      case .finish(let outcome): self.outcome = outcome
      }
    }
  }

  private mutating func handle(_ message: Diagnostics.ControlMessage, _ now: Instant) {
    guard message.peer == peer, let kind = MessageKind(rawValue: message.kind) else { return }
    if kind == .control {
      let control = try? Messages.ControlMessage(message.bytes.span.bytes)
      let isAboutOffer = control?.code == .noListener && control?.kind == MessageKind.resourceOffer.rawValue
      if isAboutOffer && outcome == nil {
        printError("\(name) does not receive files now; run “causeway peer receive” there")
        outcome = .refused(.declined, explanation: [])
      }
      return
    }
    // A malformed message is ignored; the other end notices by its own deadline.
    try? sender.handle(kind, message.bytes.span.bytes, now: now)
  }

  private mutating func completed(_ request: UInt32, _ outcome: SendOutcome, _ now: Instant) {
    guard let index = outstanding.firstIndex(of: request) else { return }
    outstanding.remove(at: index)
    if outcome == .delivered { return sender.messageDelivered(now: now) }
    if failure == nil { failure = outcome }
    sender.peerLost()
  }

  private func conclude() throws(CommandFailure) {
    if outcome == .complete {
      let size = sender.offer.size
      return show(
        "sent ",
        String(decoding: sender.offer.name, as: UTF8.self)
          + " to \(name): \(size) bytes, \(progress.rate(size))/s, SHA-256 confirmed"
      )
    }
    let reason = failure.map { "\($0.text)" } ?? outcome.map { describe($0) } ?? "it did not end"
    throw CommandFailure(saying: "not sent to \(name): \(reason)")
  }
}

/// The outcome of a transfer, as the end of a sentence.
func describe(_ outcome: ResourceOutcome) -> String {
  switch outcome {
  case .complete: "complete"
  case .refused(.tooLarge, let text): "it is larger than the peer takes" + explanation(text)
  case .refused(.busy, let text): "the peer is busy with other transfers" + explanation(text)
  case .refused(_, let text): "the peer does not want it" + explanation(text)
  case .digestMismatch: "what arrived is not what was offered (SHA-256 differs)"
  case .storageFailed(let text): "the receiver cannot store it" + explanation(text)
  case .sourceFailed: "the file cannot be read, or changed meanwhile"
  case .cancelledHere: "cancelled"
  case .cancelledByPeer(let reason, let text): "the peer gave up: \(describe(reason))" + explanation(text)
  case .timedOut: "the peer was silent for too long"
  case .peerLost: "the peer is gone"
  case .protocolBroken: "the peer broke the protocol; is it of another version?"
  }
}

private func describe(_ reason: ResourceCancel.Reason) -> StaticString {
  switch reason {
  case .wanted: "cancelled"
  case .sourceFailed: "the file cannot be read, or changed meanwhile"
  case .protocolBroken: "it met something unexpected"
  case .timedOut: "it heard nothing for too long"
  case .unknownTransfer: "it does not know the transfer, or restarted"
  }
}

private func explanation(_ text: [UInt8]) -> String {
  text.isEmpty ? "" : ": " + String(decoding: text, as: UTF8.self)
}
