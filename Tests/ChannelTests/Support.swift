import Channel
import Primitives
import Testing

func at(_ milliseconds: UInt64) -> Instant { .zero + .milliseconds(milliseconds) }

/// Converts hexadecimal text such as "00 01 ff" to bytes. White space is ignored.
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

func encoded(_ count: Int, _ encode: (UnsafeMutableRawBufferPointer) -> Void) -> [UInt8] {
  var result = [UInt8](repeating: 0xee, count: count)
  result.withUnsafeMutableBytes { encode($0) }
  return result
}

extension Channel {
  func send(
    _ message: [UInt8], kind: UInt8 = 1, lane: Lane = .interactive, now: Instant
  ) throws(SendError) -> MessageID {
    try send(kind: kind, message.span.bytes, lane: lane, now: now)
  }

  /// All frames that `nextFrame` returns now, at most `max`.
  func frames(_ now: Instant, max: Int = .max, joins: Bool = false) -> [(type: PayloadType, bytes: [UInt8])] {
    var result: [(PayloadType, [UInt8])] = []
    var buffer = [UInt8](repeating: 0, count: ChannelLimits.pathMTUMax)
    while result.count < max,
      let out = buffer.withUnsafeMutableBytes({ nextFrame(into: $0, now: now, joins: (joins, joins)) })
    {
      result.append((out.type, [UInt8](buffer[..<out.byteCount])))
    }
    return result
  }

  func receive(_ frame: (type: PayloadType, bytes: [UInt8]), now: Instant) throws(ChannelError) {
    switch frame.type {
    case .segment: try receiveSegment(frame.bytes.span.bytes, now: now)
    case .acknowledgement: try receiveAcknowledgement(frame.bytes.span.bytes, now: now)
    case .datagram: try receiveDatagram(frame.bytes.span.bytes, now: now)
    case .reset: try receiveReset(frame.bytes.span.bytes, now: now)
    case .joined: try receiveJoined(frame.bytes.span.bytes, now: now)
    }
  }

  func completions() -> [Completion] {
    var result: [Completion] = []
    while let next = nextCompletion() { result.append(next) }
    return result
  }

  func messages(_ lane: Lane) -> [ReceivedMessage] {
    var result: [ReceivedMessage] = []
    while let next = nextMessage(lane) { result.append(next) }
    return result
  }
}

/// Two channels that know each other's epochs and have a route to each other.
func pair(
  pathMTU: Int = 1_000, hops: Int = 1, settings: ChannelSettings = ChannelSettings(), now: Instant = at(1_000)
) -> (a: Channel, b: Channel) {
  let a = Channel(localEpoch: 0xa1, remoteEpoch: 0xb1, settings: settings)
  let b = Channel(localEpoch: 0xb1, remoteEpoch: 0xa1, settings: settings)
  a.routeChanged(pathMTU: pathMTU, hops: hops, now: now)
  b.routeChanged(pathMTU: pathMTU, hops: hops, now: now)
  return (a, b)
}

/// Delivers all frames at once in both directions, until neither channel has a frame to send.
func exchange(_ a: Channel, _ b: Channel, now: Instant) throws {
  var moved = true
  while moved {
    moved = false
    for frame in a.frames(now) {
      try b.receive(frame, now: now)
      moved = true
    }
    for frame in b.frames(now) {
      try a.receive(frame, now: now)
      moved = true
    }
  }
}

/// Calls `exchange` and waits for delayed acknowledgements, until no more segments are sent.
func settle(_ a: Channel, _ b: Channel, now: Instant) throws {
  var now = now
  var carried: UInt64
  repeat {
    carried = Lane.allCases.reduce(0) { $0 + a.statistics($1).segmentsSent + b.statistics($1).segmentsSent }
    try exchange(a, b, now: now)
    now = now + ChannelLimits.acknowledgementDelay
    a.handleTimeout(now: now)
    b.handleTimeout(now: now)
    try exchange(a, b, now: now)
  } while carried != Lane.allCases.reduce(0) { $0 + a.statistics($1).segmentsSent + b.statistics($1).segmentsSent }
}

/// A segment from channel a of `pair` to channel b.
func segmentFromA(
  _ offset: UInt64, _ data: [UInt8], lane: Lane = .interactive, timestamp: UInt32 = 77, epoch: UInt64 = 0xa1
) -> [UInt8] {
  let epochs = EpochPair(destination: 0xb1, source: epoch)
  let segment = Segment(epochs: epochs, lane: lane, timestamp: timestamp, offset: offset)
  return encoded(Segment.headerBytes) { segment.encodeHeader(into: $0) } + data
}

/// An acknowledgement from channel b of `pair` to channel a.
func acknowledgementFromB(
  _ cumulative: UInt64, window: UInt64, _ ranges: [ByteRange] = [], lane: Lane = .interactive, echo: UInt32 = 0
) -> [UInt8] {
  var value = Acknowledgement(
    epochs: EpochPair(destination: 0xa1, source: 0xb1), lane: lane, echo: echo, cumulative: cumulative,
    windowLimit: window)
  for range in ranges { value.append(range) }
  return encoded(value.byteCount) { value.encode(into: $0) }
}

func segmentOf(_ frame: (type: PayloadType, bytes: [UInt8])) throws -> (header: Segment, count: UInt64) {
  #expect(frame.type == .segment)
  return (try SegmentView(frame.bytes.span.bytes).checked(), UInt64(frame.bytes.count - Segment.headerBytes))
}

func acknowledgementOf(_ frame: (type: PayloadType, bytes: [UInt8])) throws -> Acknowledgement {
  #expect(frame.type == .acknowledgement)
  return try AcknowledgementView(frame.bytes.span.bytes).checked()
}

/// The error that `body` throws, or nil.
func refusal(_ body: () throws(ChannelError) -> Void) -> ChannelError? {
  do throws(ChannelError) {
    try body()
    return nil
  } catch { return error }
}
