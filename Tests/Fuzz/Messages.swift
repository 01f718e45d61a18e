import Messages
import Primitives
import TestSupport

/// Any bytes as a message of each kind, which is written back as it was read; then the same bytes as what two ends
/// of a transfer hear: kind, length, message, or one of the things that happen at this end.
func fuzzMessages(_ input: UnsafeRawBufferPointer) {
  if let kind = input.first.flatMap({ MessageKind(rawValue: $0) }) {
    readMessage(kind, UnsafeRawBufferPointer(rebasing: input.dropFirst()))
  }
  receive(Script(input))
  send(Script(input))
}

private func readMessage(_ kind: MessageKind, _ input: UnsafeRawBufferPointer) {
  let bytes = input.bytes
  let message: Message?
  switch kind {
  case .control: message = (try? ControlMessage(bytes))?.message
  case .text: message = (try? TextMessage(bytes))?.message
  case .resourceOffer:
    let offer = try? ResourceOffer(bytes)
    if let offer { checkName(ResourceName.sanitised(offer.name)) }
    message = offer?.message
  case .resourceAnswer: message = (try? ResourceAnswer(bytes))?.message
  case .resourceChunk: message = (try? ResourceChunk(bytes))?.message
  case .resourceEnd: message = (try? ResourceEnd(bytes))?.message
  case .resourceCancel: message = (try? ResourceCancel(bytes))?.message
  }
  if let message {
    expect(message.kind == kind && message.bytes == Array(input), "a message is written otherwise than it was read")
  }
}

/// An untrusted name as a file name.
private func checkName(_ name: [UInt8]) {
  expect(!name.isEmpty && name.count <= 240, "a file name of \(name.count) bytes")
  expect(String(validating: name, as: UTF8.self) != nil, "a file name that is no UTF-8")
  expect(!name.contains { $0 == 0x2F || $0 < 0x20 || $0 == 0x7F }, "a slash or control character in a file name")
  expect(name[0] != 0x2E && name[0] != 0x2D, "a file name that begins with a dot or a hyphen")
}

private let fileBytes: UInt64 = 40_000

private func offer() -> ResourceOffer {
  let digest = [UInt8](repeating: 0xD1, count: ResourceDigest.byteCount)
  guard let digest = ResourceDigest(digest.span.bytes),
    let offer = try? ResourceOffer(transfer: 1, size: fileBytes, digest: digest, name: [0x66])
  else { fatalError("the offer is not legal") }
  return offer
}

private func receive(_ script: consuming Script) {
  var now = Instant.zero + .seconds(1)
  var receiver = ResourceReceiver(offer: offer())
  receiver.accept(now: now)
  var written: UInt64 = 0
  var isOver = false
  func drain() {
    while let command = receiver.nextCommand() {
      expect(!isOver, "a command after the last one")
      switch command {
      case .send, .computeDigest, .store: break
      case .write(let offset, let data):
        expect(offset == written, "a write with a gap before it")
        written += UInt64(data.count)
        expect(written <= fileBytes, "a write behind the end")
      case .finish: isOver = true
      }
    }
  }
  drain()
  while !script.isOver {
    let what = script.u8()
    if let kind = MessageKind(rawValue: what) {
      let bytes = kind == .resourceChunk ? chunk(&script) : Array(script.bytes(Int(script.u8())))
      try? receiver.handle(kind, bytes.span.bytes, now: now)
    } else {
      switch what % 5 {
      case 0: receiver.digestComputed(receiver.offer.digest)
      case 1: receiver.stored()
      case 2: receiver.storageFailed(explanation: Array(script.bytes(Int(script.u8()))))
      case 3:
        now = now + .seconds(UInt64(script.u8()))
        receiver.handleTimeout(now: now)
      default: receiver.cancel()
      }
    }
    drain()
    expect(receiver.isFinished == isOver, "finished without having said so, or the other way round")
  }
}

/// A chunk of zeros that is valid except for the script's changes.
private func chunk(_ script: inout Script) -> [UInt8] {
  let transfer = UInt32(script.u8())
  let offset = UInt64(script.u16())
  let data = [UInt8](repeating: 0, count: Int(script.u16()) % 15_360 + 1)
  return (try? ResourceChunk(transfer: transfer, offset: offset, data: data))?.message.bytes ?? []
}

private func send(_ script: consuming Script) {
  var now = Instant.zero + .seconds(1)
  var sender = ResourceSender(offer: offer())
  var isOver = false
  var isReading: Int?
  func drain() {
    while let command = sender.nextCommand(now: now) {
      expect(!isOver, "a command after the last one")
      switch command {
      case .send: break
      case .read(let offset, let byteCount):
        expect(offset + UInt64(byteCount) <= fileBytes, "a read behind the end")
        isReading = byteCount
      case .finish: isOver = true
      }
    }
  }
  drain()
  while !script.isOver {
    let what = script.u8()
    if let kind = MessageKind(rawValue: what) {
      let bytes = Array(script.bytes(Int(script.u8())))
      try? sender.handle(kind, bytes.span.bytes, now: now)
    } else {
      switch what % 5 {
      case 0, 1:
        if let byteCount = isReading {
          isReading = nil
          sender.provide([UInt8](repeating: 0, count: what % 5 == 0 ? byteCount : Int(script.u8())))
        }
      case 2: sender.messageDelivered(now: now)
      case 3:
        now = now + .seconds(UInt64(script.u8()))
        sender.handleTimeout(now: now)
      default: sender.sourceFailed()
      }
    }
    drain()
    let progress = sender.progress
    expect(progress.delivered <= progress.done && progress.done <= progress.total, "more delivered than there is")
    expect(sender.isFinished == isOver, "finished without having said so, or the other way round")
  }
}
