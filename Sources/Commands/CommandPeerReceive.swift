import CSystem
import Channel
import Configuration
import Diagnostics
import Messages
import Primitives
import Reactor

/// `causeway peer receive`
func commandPeerReceive(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var directory = ""
  var count: UInt64?
  var seconds: UInt64?
  CommandParser.parse(
    "causeway peer receive", words, arguments: "DIRECTORY", count: 1...1,
    help:
      """
      Receive the files that peers send. A file appears in DIRECTORY when it is whole and its SHA-256 is right; \
      until then its name ends in .part.
      """,
    options: ClientOptions.options + [
      CommandOption(name: "count", key: 0x63 + 0x100, argument: "N", help: "End after N files"),
      PeerOption.seconds("End after N seconds; exit code 4 when --count is not reached"),
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    switch key {
    case CommandParser.argument: directory = value
    case PeerOption.secondsKey:
      guard let number = PeerOption.parseSeconds(value) else { return PeerOption.secondsAccepted }
      seconds = number
    default:
      guard let number = Text(value).number(in: 1...1_000_000) else { return "a number from 1 to 1000000" }
      count = number
    }
    return nil
  }
  return run { () throws(CommandFailure) in
    if access(directory, W_OK | X_OK) != 0 { throw CommandFailure(saying: "\(directory): \(SystemError.last.text)") }
    let kinds: [MessageKind] = [.resourceOffer, .resourceChunk, .resourceEnd, .resourceCancel]
    var receiving = Receiving(try PeerConnection(options, kinds: kinds.map { $0.rawValue }), directory)
    try receiving.run(count: count, until: deadline(after: seconds))
  }
}

/// One run of `causeway peer receive`.
private struct Receiving {
  /// Transfers at once; further offers are answered with `busy`.
  static let transfersMax = 8

  private let connection: PeerConnection
  private let directory: String
  private var transfers: [IncomingTransfer] = []
  /// Messages passed to the daemon and not delivered yet.
  private var outstanding: [UInt32] = []
  private var completed: UInt64 = 0
  private var failed: UInt64 = 0

  init(_ connection: PeerConnection, _ directory: String) {
    self.connection = connection
    self.directory = directory
  }

  mutating func run(count: UInt64?, until end: Instant) throws(CommandFailure) {
    while true {
      // The final answer must be delivered before this process ends.
      if let count, completed >= count, transfers.isEmpty, outstanding.isEmpty { return }
      var wake = end
      for transfer in transfers { wake = min(wake, transfer.receiver.nextDeadline) }
      let happening: PeerConnection.Happening
      do throws(CommandFailure) {
        happening = try connection.next(until: wake)
      } catch {
        for transfer in transfers { transfer.discard() }
        throw error
      }
      let now = monotonicNow()
      switch happening {
      case .message(let message): handle(message, now, mayAccept: count.map { completed < $0 } ?? true)
      case .completed(let request, let outcome):
        outstanding.removeAll { $0 == request }
        if outcome != .delivered { printError("an answer did not arrive: \(outcome.text)") }
      case .vanished(let peer): printError("\(peer.name) (\(peer.id.shortText)) is gone")
      case .appeared, .changed, .otherReady: continue
      case .timedOut:
        if now >= end { return try concludeInTime(count) }
        for index in transfers.indices { transfers[index].receiver.handleTimeout(now: now) }
      }
      drain()
    }
  }

  private func concludeInTime(_ count: UInt64?) throws(CommandFailure) {
    for transfer in transfers { transfer.discard() }
    if let count, completed < count {
      throw CommandFailure(saying: "the time ran out: \(completed) of \(count) files arrived", ExitCode.timedOut)
    }
    if failed > 0 { throw CommandFailure(ExitCode.failed) }
  }

  private mutating func handle(_ message: Diagnostics.ControlMessage, _ now: Instant, mayAccept: Bool) {
    let bytes = message.bytes
    guard let kind = MessageKind(rawValue: message.kind), let address = ResourceAddress(kind, bytes.span.bytes),
      address.role == .receiver
    else { return }
    if let index = transfers.firstIndex(where: { $0.peer == message.peer && $0.receiver.address == address }) {
      // A malformed message is ignored; a stalled transfer ends by its deadline.
      try? transfers[index].receiver.handle(kind, bytes.span.bytes, now: now)
    } else if kind == .resourceOffer, let offer = try? ResourceOffer(bytes.span.bytes) {
      begin(offer, from: message.peer, now, mayAccept: mayAccept)
    } else if kind == .resourceChunk {
      send(address.unknownTransfer, to: message.peer)
    }
  }

  private mutating func begin(_ offer: ResourceOffer, from peer: NodeID, _ now: Instant, mayAccept: Bool) {
    var transfer = IncomingTransfer(
      ResourceReceiver(offer: offer), peer, name: connection.book.name(peer), directory: directory)
    if !mayAccept || transfers.count >= Self.transfersMax {
      transfer.receiver.refuse(.busy)
    } else if transfer.open() {
      show("receiving ", "\(transfer.fileName) from \(transfer.peerName): \(offer.size) bytes")
      transfer.receiver.accept(now: now)
    }
    transfers.append(transfer)
  }

  private mutating func drain() {
    for index in transfers.indices {
      while let command = transfers[index].receiver.nextCommand() {
        switch command {
        case .send(let message): send(message, to: transfers[index].peer)
        case .finish(let outcome):
          transfers[index].finished(outcome)
          if outcome == .complete { completed += 1 } else { failed += 1 }
        case .write, .computeDigest, .store: transfers[index].carryOut(command)
        }
      }
    }
    transfers.removeAll { $0.receiver.isFinished }
  }

  private mutating func send(_ message: Message, to peer: NodeID) {
    outstanding.append(connection.send(message.kind.rawValue, message.bytes, lane: Lane.bulk.rawValue, to: peer))
  }
}
