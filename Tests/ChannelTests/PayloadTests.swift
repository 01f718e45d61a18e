import Channel
import Testing

private let epochs = EpochPair(destination: 0x0102_0304_0506_0708, source: 0x1112_1314_1516_1718)
private let goldenSegment = bytes(
  "0102030405060708 1112131415161718 01 00 0000 0badcafe 0000000000123456 68656c6c6f")
private let goldenAcknowledgement = bytes(
  """
  0102030405060708 1112131415161718 00 02 0000 0badcafe 0000000000001000 0000000000041000
  0000000000001400 0000000000001800  0000000000002000 0000000000002001
  """)

/// A copy of `golden` whose octets from `offset` on are replaced by `octets`, given in hexadecimal.
private func changed(_ golden: [UInt8], _ offset: Int, _ octets: String) -> [UInt8] {
  var result = golden
  for (index, octet) in bytes(octets).enumerated() { result[offset + index] = octet }
  return result
}

private func refusal(segment octets: [UInt8]) -> PayloadError? {
  do throws(PayloadError) {
    _ = try SegmentView(octets.span.bytes).checked()
    return nil
  } catch { return error }
}

private func refusal(acknowledgement octets: [UInt8]) -> PayloadError? {
  do throws(PayloadError) {
    _ = try AcknowledgementView(octets.span.bytes).checked()
    return nil
  } catch { return error }
}

private func refusal(reset octets: [UInt8]) -> PayloadError? {
  do throws(PayloadError) {
    _ = try Reset(octets.span.bytes)
    return nil
  } catch { return error }
}

@Suite struct SegmentTests {
  @Test func `a segment encodes to its golden vector`() {
    let segment = Segment(epochs: epochs, lane: .bulk, timestamp: 0x0bad_cafe, offset: 0x12_3456)
    let header = encoded(Segment.headerBytes) { segment.encodeHeader(into: $0) }
    #expect(header + Array("hello".utf8) == goldenSegment)
  }

  @Test func `the golden segment decodes to its values`() throws {
    let view = try SegmentView(goldenSegment.span.bytes)
    let segment = try view.checked()
    let data = view.data.withUnsafeBytes { Array($0) }
    #expect(segment == Segment(epochs: epochs, lane: .bulk, timestamp: 0x0bad_cafe, offset: 0x12_3456))
    #expect(data == Array("hello".utf8))
  }

  @Test func `a segment without data is too short`() {
    for count in 0...Segment.headerBytes { #expect(refusal(segment: Array(goldenSegment[..<count])) == .tooShort) }
  }

  @Test func `a segment longer than any frame is too long`() {
    let room = ChannelLimits.pathMTUMax - goldenSegment.count
    #expect(refusal(segment: goldenSegment + [UInt8](repeating: 0, count: room)) == nil)
    #expect(refusal(segment: goldenSegment + [UInt8](repeating: 0, count: room + 1)) == .tooLong)
  }

  @Test func `a segment of an unknown lane is refused`() {
    #expect(refusal(segment: changed(goldenSegment, 16, "02")) == .unknownLane)
  }

  @Test func `a segment with flags or reserved bits is refused`() {
    #expect(refusal(segment: changed(goldenSegment, 17, "01")) == .reservedNotZero)
    #expect(refusal(segment: changed(goldenSegment, 18, "80")) == .reservedNotZero)
    #expect(refusal(segment: changed(goldenSegment, 19, "01")) == .reservedNotZero)
  }

  @Test func `a segment beyond the maximum offset is refused`() {
    #expect(refusal(segment: changed(goldenSegment, 24, "4000000000000000")) == nil)
    #expect(refusal(segment: changed(goldenSegment, 24, "4000000000000001")) == .offsetTooLarge)
    #expect(refusal(segment: changed(goldenSegment, 24, "ffffffffffffffff")) == .offsetTooLarge)
  }
}

@Suite struct AcknowledgementTests {
  @Test func `an acknowledgement encodes to its golden vector`() {
    var value = Acknowledgement(
      epochs: epochs, lane: .interactive, echo: 0x0bad_cafe, cumulative: 0x1000, windowLimit: 0x41000)
    value.append(ByteRange(start: 0x1400, end: 0x1800))
    value.append(ByteRange(start: 0x2000, end: 0x2001))
    #expect(encoded(value.byteCount) { value.encode(into: $0) } == goldenAcknowledgement)
  }

  @Test func `the golden acknowledgement decodes to its values`() throws {
    let value = try AcknowledgementView(goldenAcknowledgement.span.bytes).checked()
    #expect(value.epochs == epochs)
    #expect(value.lane == .interactive)
    #expect(value.echo == 0x0bad_cafe)
    #expect(value.cumulative == 0x1000)
    #expect(value.windowLimit == 0x41000)
    #expect(value.rangeCount == 2)
    #expect(value.range(0) == ByteRange(start: 0x1400, end: 0x1800))
    #expect(value.range(1) == ByteRange(start: 0x2000, end: 0x2001))
  }

  @Test func `a truncated acknowledgement is too short`() {
    for count in 0..<goldenAcknowledgement.count {
      #expect(refusal(acknowledgement: Array(goldenAcknowledgement[..<count])) == .tooShort)
    }
  }

  @Test func `an acknowledgement with bytes after its last range is too long`() {
    #expect(refusal(acknowledgement: goldenAcknowledgement + [0]) == .tooLong)
  }

  @Test func `more than four ranges are refused`() {
    #expect(refusal(acknowledgement: changed(goldenAcknowledgement, 17, "05")) == .tooManyRanges)
    #expect(refusal(acknowledgement: changed(goldenAcknowledgement, 17, "ff")) == .tooManyRanges)
  }

  @Test func `an acknowledgement of an unknown lane is refused`() {
    #expect(refusal(acknowledgement: changed(goldenAcknowledgement, 16, "ff")) == .unknownLane)
  }

  @Test func `an acknowledgement with reserved bits is refused`() {
    #expect(refusal(acknowledgement: changed(goldenAcknowledgement, 18, "0001")) == .reservedNotZero)
  }

  @Test func `a window that ends below the cumulative offset is refused`() {
    #expect(refusal(acknowledgement: changed(goldenAcknowledgement, 32, "0000000000001000")) == nil)
    #expect(refusal(acknowledgement: changed(goldenAcknowledgement, 32, "0000000000000fff")) == .windowBelowCumulative)
  }

  @Test func `empty, touching, overlapping or descending ranges are refused`() {
    for (offset, octets) in [
      (40, "0000000000001800"),  // empty
      (40, "0000000000001900"),  // negative
      (40, "0000000000001000"),  // touches the cumulative offset
      (56, "0000000000001800"),  // touches its predecessor
      (56, "0000000000001100"),  // before its predecessor
    ] {
      #expect(refusal(acknowledgement: changed(goldenAcknowledgement, offset, octets)) == .rangesUnordered)
    }
  }

  @Test func `an offset above the maximum is refused in every field`() {
    for offset in [24, 32, 64] {
      #expect(refusal(acknowledgement: changed(goldenAcknowledgement, offset, "4000000000000001")) == .offsetTooLarge)
    }
  }
}

@Suite struct DatagramPayloadTests {
  private let golden = bytes("0102030405060708 1112131415161718 2a 000000 0000000000000107 68656c6c6f")

  private func refusal(_ octets: [UInt8]) -> PayloadError? {
    do throws(PayloadError) {
      _ = try DatagramView(octets.span.bytes).checked()
      return nil
    } catch { return error }
  }

  @Test func `a datagram encodes to and decodes from its golden vector`() throws {
    let datagram = Datagram(epochs: epochs, kind: 42, number: 0x107)
    #expect(encoded(Datagram.headerBytes) { datagram.encodeHeader(into: $0) } + Array("hello".utf8) == golden)
    let view = try DatagramView(golden.span.bytes)
    let message = view.message.withUnsafeBytes { Array($0) }
    #expect(try view.checked() == datagram)
    #expect(message == Array("hello".utf8))
  }

  @Test func `a datagram may be empty, but not shorter than its header or longer than a frame`() {
    for count in 0..<Datagram.headerBytes { #expect(refusal(Array(golden[..<count])) == .tooShort) }
    #expect(refusal(Array(golden[..<Datagram.headerBytes])) == nil)
    let room = ChannelLimits.pathMTUMax - golden.count
    #expect(refusal(golden + [UInt8](repeating: 0, count: room)) == nil)
    #expect(refusal(golden + [UInt8](repeating: 0, count: room + 1)) == .tooLong)
  }

  @Test func `a datagram with reserved bits or without a number is refused`() {
    for offset in 17...19 { #expect(refusal(changed(golden, offset, "01")) == .reservedNotZero) }
    #expect(refusal(changed(golden, 20, "0000000000000000")) == .numberZero)
  }
}

@Suite struct ResetTests {
  private let golden = bytes("0102030405060708 1112131415161718")

  @Test func `a reset encodes to and decodes from its golden vector`() throws {
    let reset = Reset(meantEpoch: 0x0102_0304_0506_0708, currentEpoch: 0x1112_1314_1516_1718)
    #expect(encoded(Reset.byteCount) { reset.encode(into: $0) } == golden)
    #expect(try Reset(golden.span.bytes) == reset)
  }

  @Test func `a reset of any other length is refused`() {
    for count in 0..<16 { #expect(refusal(reset: Array(golden[..<count])) == .tooShort) }
    #expect(refusal(reset: golden + [0]) == .tooLong)
  }

  @Test func `a reset that names one epoch twice is refused`() {
    #expect(refusal(reset: Array(golden[..<8]) + Array(golden[..<8])) == .sameEpoch)
  }
}
