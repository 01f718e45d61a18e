import Channel
import Primitives
import TestSupport

/// Decodes any bytes as each payload of reliable delivery. A legal payload must encode to the same bytes. The bytes are
/// then received by a channel with data in flight.
func fuzzPayloads(_ input: UnsafeRawBufferPointer) {
  let bytes = input.bytes
  var buffer = [UInt8](repeating: 0, count: 128)
  if let view = try? SegmentView(bytes), let segment = try? view.checked() {
    buffer.withUnsafeMutableBytes { segment.encodeHeader(into: $0) }
    if !bytes.array.starts(with: buffer.prefix(Segment.headerBytes)) { fatalError("a segment is written otherwise") }
  }
  if let view = try? AcknowledgementView(bytes), let acknowledgement = try? view.checked() {
    buffer.withUnsafeMutableBytes { acknowledgement.encode(into: $0) }
    if bytes.array != Array(buffer.prefix(acknowledgement.byteCount)) {
      fatalError("an acknowledgement is written otherwise")
    }
  }
  if let view = try? DatagramView(bytes), let datagram = try? view.checked() {
    buffer.withUnsafeMutableBytes { datagram.encodeHeader(into: $0) }
    if !bytes.array.starts(with: buffer.prefix(Datagram.headerBytes)) { fatalError("a datagram is written otherwise") }
  }
  if let reset = try? Reset(bytes) {
    buffer.withUnsafeMutableBytes { reset.encode(into: $0) }
    if bytes.array != Array(buffer.prefix(Reset.byteCount)) { fatalError("a reset is written otherwise") }
  }
  receive(bytes)
}

/// Receives the payload at a channel with local epoch 1 and remote epoch 2, as in the corpus. The channel has 3000
/// bytes of bulk data in flight.
private func receive(_ payload: RawSpan) {
  var now = Instant.zero + .seconds(100)
  let channel = Channel(localEpoch: 1, remoteEpoch: 2)
  channel.routeChanged(pathMTU: 2048, now: now)
  let message = [UInt8](repeating: 9, count: 3000)
  _ = try? channel.send(kind: 1, message.span.bytes, lane: .bulk, now: now)
  drain(channel, now)
  try? channel.receiveSegment(payload, now: now)
  try? channel.receiveAcknowledgement(payload, now: now)
  try? channel.receiveJoined(payload, now: now)
  try? channel.receiveDatagram(payload, now: now)
  while channel.nextDatagram() != nil {}
  try? channel.receiveReset(payload, now: now)
  drain(channel, now)
  for _ in 0..<4 where channel.nextDeadline != .never {
    now = max(now, channel.nextDeadline)
    channel.handleTimeout(now: now)
    drain(channel, now)
  }
}

nonisolated(unsafe) private let scratch = UnsafeMutableRawBufferPointer.allocate(
  byteCount: ChannelLimits.pathMTUMax, alignment: 16)

private func drain(_ channel: Channel, _ now: Instant) {
  var frameCount = 0
  while channel.nextFrame(into: scratch, now: now) != nil {
    frameCount += 1
    if frameCount > 10_000 { fatalError("a channel that never stops sending") }
  }
  while channel.nextCompletion() != nil {}
  while channel.nextMessage() != nil {}
}
