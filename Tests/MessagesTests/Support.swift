import Messages
import Primitives

func at(_ seconds: UInt64) -> Instant { .zero + .seconds(seconds) }

/// "00 01 ff" → bytes. Spaces are free.
func bytes(_ hex: String) -> [UInt8] {
  var result: [UInt8] = []
  var high: UInt8?
  for character in hex where !character.isWhitespace {
    let digit = UInt8(character.hexDigitValue!)
    if let first = high {
      result.append(first << 4 | digit)
      high = nil
    } else {
      high = digit
    }
  }
  return result
}

let digestBytes = bytes("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
let digest = ResourceDigest(digestBytes.span.bytes)!
let otherDigest = ResourceDigest([UInt8](repeating: 7, count: 32).span.bytes)!

func offer(size: UInt64, name: String = "photo.jpg") -> ResourceOffer {
  try! ResourceOffer(transfer: 5, size: size, digest: digest, name: Array(name.utf8))
}

func refusal(_ body: () throws(MessageRefusal) -> Void) -> MessageRefusal? {
  do throws(MessageRefusal) {
    try body()
    return nil
  } catch { return error }
}

/// `golden` with the octets from `offset` on replaced.
func changed(_ golden: [UInt8], _ offset: Int, _ octets: String) -> [UInt8] {
  var result = golden
  for (index, octet) in bytes(octets).enumerated() { result[offset + index] = octet }
  return result
}

extension ResourceSender {
  mutating func handle(_ message: Message, now: Instant = .zero) throws(MessageRefusal) {
    try handle(message.kind, message.bytes.span.bytes, now: now)
  }
  mutating func commands(now: Instant = .zero) -> [ResourceSenderCommand] {
    var result: [ResourceSenderCommand] = []
    while let next = nextCommand(now: now) { result.append(next) }
    return result
  }
}

extension ResourceReceiver {
  mutating func handle(_ message: Message, now: Instant = .zero) throws(MessageRefusal) {
    try handle(message.kind, message.bytes.span.bytes, now: now)
  }
  mutating func commands() -> [ResourceReceiverCommand] {
    var result: [ResourceReceiverCommand] = []
    while let next = nextCommand() { result.append(next) }
    return result
  }
}
