import Primitives
@testable import Messages
import Testing

/// A file that passes from a sender to a receiver through queues, as between two processes.
private struct Transfer {
  /// Associations takes no more than so many messages at once.
  static let underWayMax = 4
  let content: [UInt8]
  var sender: ResourceSender
  var receiver: ResourceReceiver?
  var file: [UInt8] = []
  var toReceiver: [Message] = []
  var toSender: [Message] = []
  var sent: ResourceOutcome?
  var received: ResourceOutcome?
  var resumeOffset: UInt64 = 0
  var computed = digest
  var sizeMax = MessageLimits.acceptedBytesMaxDefault

  init(size: Int) {
    content = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    sender = ResourceSender(offer: offer(size: UInt64(size)))
  }

  /// Moves everything until nothing moves, or until so many messages have reached the receiver.
  mutating func run(messagesMax: Int = .max) throws {
    var left = messagesMax
    var moved = true
    while moved {
      moved = false
      while toReceiver.count < Self.underWayMax, let command = sender.nextCommand(now: .zero) {
        moved = true
        switch command {
        case .send(let message): toReceiver.append(message)
        case .read(let offset, let count): sender.provide(Array(content[Int(offset)..<Int(offset) + count]))
        case .finish(let outcome):
          #expect(sent == nil)
          sent = outcome
        }
      }
      while !toReceiver.isEmpty, left > 0 {
        moved = true
        left -= 1
        let message = toReceiver.removeFirst()
        sender.messageDelivered(now: .zero)
        if message.kind == .resourceOffer {
          receiver = ResourceReceiver(offer: try ResourceOffer(message.bytes.span.bytes), acceptedBytesMax: sizeMax)
          receiver?.accept(resumeOffset: resumeOffset, now: .zero)
        } else {
          try receiver?.handle(message)
        }
        drainReceiver()
      }
      while !toSender.isEmpty {
        moved = true
        try sender.handle(toSender.removeFirst())
      }
    }
  }

  mutating func drainReceiver() {
    while let command = receiver?.nextCommand() {
      switch command {
      case .send(let message): toSender.append(message)
      case .write(let offset, let data):
        #expect(offset == UInt64(file.count))
        file += data
      case .computeDigest: receiver?.digestComputed(computed)
      case .store: receiver?.stored()
      case .finish(let outcome):
        #expect(received == nil)
        received = outcome
      }
    }
  }
}

@Suite struct ResourceTransferTests {
  @Test(arguments: [0, 1, 15_359, 15_360, 15_361, 100_000]) func `a resource arrives whole`(_ size: Int) throws {
    var transfer = Transfer(size: size)
    try transfer.run()
    #expect(transfer.file == transfer.content)
    #expect(transfer.sent == .complete)
    #expect(transfer.received == .complete)
    #expect(transfer.sender.isFinished)
    #expect(transfer.receiver!.isFinished)
    let size = UInt64(size)
    #expect(transfer.sender.progress == ResourceProgress(done: size, delivered: size, total: size))
    #expect(transfer.receiver!.progress == ResourceProgress(done: size, delivered: size, total: size))
  }

  @Test func `a resource goes on from where an earlier try ended`() throws {
    var transfer = Transfer(size: 50_000)
    transfer.file = Array(transfer.content[..<20_001])
    transfer.resumeOffset = 20_001
    try transfer.run()
    #expect(transfer.file == transfer.content)
    #expect(transfer.sent == .complete)
  }

  @Test func `a resource that is there already takes no chunk`() throws {
    var transfer = Transfer(size: 50_000)
    transfer.file = transfer.content
    transfer.resumeOffset = 50_000
    try transfer.run()
    #expect(transfer.sent == .complete)
    #expect(transfer.received == .complete)
  }

  @Test func `both ends tell how far they are`() throws {
    var transfer = Transfer(size: 100_000)
    try transfer.run(messagesMax: 3)
    #expect(transfer.receiver!.progress.done == 30_720)
    #expect(transfer.sender.progress == ResourceProgress(done: 92_160, delivered: 30_720, total: 100_000))
  }

  @Test func `another digest is a mismatch at both ends`() throws {
    var transfer = Transfer(size: 20_000)
    transfer.computed = otherDigest
    try transfer.run()
    #expect(transfer.sent == .digestMismatch)
    #expect(transfer.received == .digestMismatch)
  }

  @Test func `one terabyte is refused when less is accepted`() throws {
    var sender = ResourceSender(offer: offer(size: 1 << 40))
    guard case .send(let message)? = sender.nextCommand(now: .zero) else { Issue.record("no offer"); return }
    var receiver = ResourceReceiver(offer: try ResourceOffer(message.bytes.span.bytes))
    receiver.accept(now: .zero)
    let answer = ResourceAnswer(transfer: 5, status: .tooLarge).message
    #expect(receiver.commands() == [.send(answer), .finish(.refused(.tooLarge, explanation: []))])
    try sender.handle(answer)
    #expect(sender.commands() == [.finish(.refused(.tooLarge, explanation: []))])
  }

  @Test func `a refusal reaches the sender with its explanation`() throws {
    var receiver = ResourceReceiver(offer: offer(size: 10))
    receiver.refuse(.busy, explanation: Array("later".utf8))
    receiver.accept(now: .zero)
    let commands = receiver.commands()
    #expect(commands.count == 2)
    guard case .send(let answer) = commands[0] else { Issue.record("no answer"); return }
    var sender = ResourceSender(offer: offer(size: 10))
    _ = sender.commands()
    try sender.handle(answer)
    #expect(sender.commands() == [.finish(.refused(.busy, explanation: Array("later".utf8)))])
  }

  @Test func `a sender that cancels in the middle ends both ends once`() throws {
    var transfer = Transfer(size: 100_000)
    try transfer.run(messagesMax: 3)
    transfer.sender.cancel()
    transfer.sender.cancel()
    try transfer.run()
    #expect(transfer.sent == .cancelledHere)
    #expect(transfer.received == .cancelledByPeer(.wanted, explanation: []))
  }

  @Test func `a receiver that cancels in the middle ends both ends once`() throws {
    var transfer = Transfer(size: 100_000)
    try transfer.run(messagesMax: 3)
    transfer.receiver?.cancel()
    transfer.drainReceiver()
    try transfer.run()
    #expect(transfer.received == .cancelledHere)
    #expect(transfer.sent == .cancelledByPeer(.wanted, explanation: []))
  }

  @Test func `a full disk is told to the sender`() throws {
    var transfer = Transfer(size: 100_000)
    try transfer.run(messagesMax: 3)
    transfer.receiver?.storageFailed(explanation: Array("No space left on device".utf8))
    transfer.drainReceiver()
    try transfer.run()
    let outcome = ResourceOutcome.storageFailed(explanation: Array("No space left on device".utf8))
    #expect(transfer.received == outcome)
    #expect(transfer.sent == outcome)
  }

  @Test func `a lost peer ends each end once and tells nobody`() throws {
    var transfer = Transfer(size: 100_000)
    try transfer.run(messagesMax: 3)
    transfer.sender.peerLost()
    transfer.receiver?.peerLost()
    transfer.receiver?.cancel()
    #expect(transfer.sender.commands() == [.finish(.peerLost)])
    #expect(transfer.receiver!.commands() == [.finish(.peerLost)])
    #expect(transfer.sender.commands().isEmpty)
  }
}

@Suite struct ResourceSenderTests {
  /// A sender of 40 000 bytes whose offer was accepted.
  private func accepted() throws -> ResourceSender {
    var sender = ResourceSender(offer: offer(size: 40_000))
    _ = sender.commands()
    try sender.handle(ResourceAnswer(transfer: 5, status: .accepted).message)
    return sender
  }
  private func cancelled(_ reason: ResourceCancel.Reason, _ outcome: ResourceOutcome) -> [ResourceSenderCommand] {
    [.send(ResourceCancel(transfer: 5, role: .sender, reason: reason).message), .finish(outcome)]
  }

  @Test func `nothing is read before the offer is accepted, and one chunk at a time after`() throws {
    var sender = ResourceSender(offer: offer(size: 40_000))
    #expect(sender.commands() == [.send(offer(size: 40_000).message)])
    try sender.handle(ResourceAnswer(transfer: 5, status: .accepted).message)
    #expect(sender.commands() == [.read(offset: 0, byteCount: 15_360)])
    #expect(sender.commands().isEmpty)
  }

  @Test func `a source that gives another number of bytes has changed`() throws {
    var sender = try accepted()
    _ = sender.commands()
    sender.provide([1, 2, 3])
    #expect(sender.commands() == cancelled(.sourceFailed, .sourceFailed))
  }

  @Test func `a source that cannot be read ends the transfer`() throws {
    var sender = try accepted()
    sender.sourceFailed()
    #expect(sender.commands() == cancelled(.sourceFailed, .sourceFailed))
  }

  @Test func `a cancellation before the offer went out tells nobody`() {
    var sender = ResourceSender(offer: offer(size: 1))
    sender.cancel()
    #expect(sender.commands() == [.finish(.cancelledHere)])
  }

  @Test func `no answer for two minutes is a timeout`() {
    var sender = ResourceSender(offer: offer(size: 1))
    _ = sender.commands(now: at(10))
    #expect(sender.nextDeadline == at(130))
    sender.messageDelivered(now: at(20))
    sender.handleTimeout(now: at(130))
    #expect(sender.commands().isEmpty)
    sender.handleTimeout(now: at(140))
    #expect(sender.commands() == cancelled(.timedOut, .timedOut))
    #expect(sender.nextDeadline == .never)
  }

  @Test(arguments: [ResourceStatus.accepted, .declined, .tooLarge, .busy, .complete, .digestMismatch])
  func `an answer out of turn breaks the protocol`(_ status: ResourceStatus) throws {
    var sender = try accepted()
    try sender.handle(ResourceAnswer(transfer: 5, status: status).message)
    #expect(sender.commands() == cancelled(.protocolBroken, .protocolBroken))
  }

  @Test func `a resume beyond the end breaks the protocol`() throws {
    var sender = ResourceSender(offer: offer(size: 10))
    _ = sender.commands()
    try sender.handle(ResourceAnswer(transfer: 5, status: .accepted, resumeOffset: 11).message)
    #expect(sender.commands() == cancelled(.protocolBroken, .protocolBroken))
  }

  @Test func `messages of other transfers and malformed ones change nothing`() throws {
    var sender = try accepted()
    try sender.handle(ResourceAnswer(transfer: 6, status: .complete).message)
    try sender.handle(ResourceCancel(transfer: 5, role: .sender, reason: .wanted).message)
    #expect(
      refusal { () throws(MessageRefusal) in
        try sender.handle(Message(kind: .resourceAnswer, bytes: bytes("00000005 ff 0000 00 0000000000000000")))
      } == .unknownCode)
    #expect(sender.commands() == [.read(offset: 0, byteCount: 15_360)])
  }

  @Test func `nothing follows the end`() throws {
    var sender = try accepted()
    sender.cancel()
    _ = sender.commands()
    try sender.handle(ResourceAnswer(transfer: 5, status: .complete).message)
    sender.provide([1])
    sender.sourceFailed()
    sender.peerLost()
    sender.handleTimeout(now: .never)
    #expect(sender.commands().isEmpty)
  }
}

@Suite struct ResourceReceiverTests {
  private func accepted(size: UInt64 = 40_000) -> ResourceReceiver {
    var receiver = ResourceReceiver(offer: offer(size: size))
    receiver.accept(now: .zero)
    _ = receiver.commands()
    return receiver
  }
  private func chunk(_ offset: UInt64, _ count: Int) -> Message {
    try! ResourceChunk(transfer: 5, offset: offset, data: [UInt8](repeating: 1, count: count)).message
  }
  private let broken: [ResourceReceiverCommand] = [
    .send(ResourceCancel(transfer: 5, role: .receiver, reason: .protocolBroken).message), .finish(.protocolBroken),
  ]

  @Test func `the name is never a path`() {
    let receiver = ResourceReceiver(offer: offer(size: 1, name: "../../etc/passwd"))
    #expect(receiver.safeName == Array("_._.._etc_passwd".utf8))
  }

  @Test func `nothing happens before the offer is decided on`() {
    var receiver = ResourceReceiver(offer: offer(size: 1))
    #expect(receiver.commands().isEmpty)
    #expect(receiver.nextDeadline == .never)
  }

  @Test func `a chunk that is not the next one breaks the protocol`() throws {
    for offset: UInt64 in [1, 15_360] {
      var receiver = accepted()
      try receiver.handle(chunk(offset, 10))
      #expect(receiver.commands() == broken)
    }
  }

  @Test func `more bytes than offered break the protocol and are not written`() throws {
    var receiver = accepted(size: 10)
    try receiver.handle(chunk(0, 11))
    #expect(receiver.commands() == broken)
  }

  @Test func `an end before the last byte breaks the protocol`() throws {
    var receiver = accepted(size: 10)
    try receiver.handle(chunk(0, 9))
    _ = receiver.commands()
    try receiver.handle(ResourceEnd(transfer: 5).message)
    #expect(receiver.commands() == broken)
  }

  @Test func `chunks before the answer or after the end break the protocol`() throws {
    var undecided = ResourceReceiver(offer: offer(size: 10))
    try undecided.handle(chunk(0, 10))
    #expect(undecided.commands() == broken)
    var ended = accepted(size: 0)
    try ended.handle(ResourceEnd(transfer: 5).message)
    try ended.handle(chunk(0, 1))
    #expect(ended.commands() == broken)
  }

  @Test func `a second offer of a running transfer breaks the protocol`() throws {
    var receiver = accepted()
    try receiver.handle(offer(size: 40_000).message)
    #expect(receiver.commands() == broken)
  }

  @Test func `the sender hears of completion only after the file is in its place`() throws {
    var receiver = accepted(size: 10)
    try receiver.handle(chunk(0, 10))
    try receiver.handle(ResourceEnd(transfer: 5).message)
    #expect(receiver.commands() == [.write(offset: 0, [UInt8](repeating: 1, count: 10)), .computeDigest])
    receiver.stored()
    #expect(receiver.commands().isEmpty)
    receiver.digestComputed(digest)
    #expect(receiver.commands() == [.store])
    receiver.stored()
    #expect(
      receiver.commands() == [
        .send(ResourceAnswer(transfer: 5, status: .complete).message), .finish(.complete),
      ])
  }

  @Test func `a file that cannot be put in its place is a storage failure`() throws {
    var receiver = accepted(size: 0)
    try receiver.handle(ResourceEnd(transfer: 5).message)
    _ = receiver.commands()
    receiver.digestComputed(digest)
    _ = receiver.commands()
    receiver.storageFailed(explanation: Array("read-only".utf8))
    #expect(receiver.commands().last == .finish(.storageFailed(explanation: Array("read-only".utf8))))
  }

  @Test func `a sender that falls silent is given up after two minutes`() throws {
    var receiver = accepted()
    try receiver.handle(chunk(0, 10), now: at(60))
    _ = receiver.commands()
    receiver.handleTimeout(now: at(179))
    #expect(receiver.commands().isEmpty)
    receiver.handleTimeout(now: at(180))
    #expect(receiver.commands().last == .finish(.timedOut))
  }

  @Test func `a resume offset beyond the size is held to it`() throws {
    var receiver = ResourceReceiver(offer: offer(size: 10))
    receiver.accept(resumeOffset: 99, now: .zero)
    #expect(receiver.commands() == [.send(ResourceAnswer(transfer: 5, status: .accepted, resumeOffset: 10).message)])
  }
}
