import Link
import Testing

/// The units of a stream in order, one string for each unit. The units do not depend on how the stream was cut into
/// chunks.
private struct Transcript: Equatable {
  var units: [String] = []
  var refusal: StreamDemultiplexer.Refusal?
}

private func next(
  _ demultiplexer: inout StreamDemultiplexer, _ bytes: [UInt8]
) throws(StreamDemultiplexer.Refusal) -> StreamDemultiplexer.Piece? {
  let result = bytes.withUnsafeBytes { raw in
    Result { () throws(StreamDemultiplexer.Refusal) in try demultiplexer.next(in: raw) }
  }
  return try result.get()
}

/// Feeds `chunks` in order. The demultiplexer does not separate TLS records that arrive in one piece. So adjacent
/// records are joined in the result.
private func demultiplex(_ chunks: [[UInt8]]) -> Transcript {
  var demultiplexer = StreamDemultiplexer()
  var transcript = Transcript()
  var sealed: [UInt8]?
  for chunk in chunks {
    var offset = 0
    while offset < chunk.count {
      let rest = Array(chunk[offset...])
      do throws(StreamDemultiplexer.Refusal) {
        guard let piece = try next(&demultiplexer, rest) else { return transcript }
        switch piece {
        case .records(let count):
          let text = String(repeating: "r", count: count)
          if transcript.units.last?.hasPrefix("r") == true {
            transcript.units[transcript.units.count - 1] += text
          } else {
            transcript.units.append(text)
          }
          offset += count
        case .sealed(let count, let begins, let ends):
          #expect(begins == (sealed == nil))
          sealed = (sealed ?? []) + rest[..<count]
          if ends {
            transcript.units.append("sealed \(sealed!)")
            sealed = nil
          }
          offset += count
        }
      } catch {
        transcript.refusal = error
        return transcript
      }
    }
  }
  return transcript
}

private func record(_ type: UInt8, _ count: Int) -> [UInt8] {
  [type, 3, 3, UInt8(count >> 8), UInt8(count & 0xFF)] + [UInt8](repeating: 0x81, count: count)
}

private func sealedFrame(_ payload: Int) -> [UInt8] {
  var header = [UInt8](repeating: 22, count: 48)
  header[0] = 0x81
  header[6] = UInt8(payload >> 8)
  header[7] = UInt8(payload & 0xFF)
  return header + [UInt8](repeating: 23, count: 8 + 16) + [UInt8](repeating: 0x55, count: payload)
}

struct StreamDemultiplexerTests {
  @Test func `a stream yields the same units at every split`() {
    let stream = record(22, 7) + sealedFrame(3) + sealedFrame(1) + record(23, 0) + record(23, 20) + sealedFrame(300)
    let whole = demultiplex([stream])
    #expect(
      whole.units == [
        String(repeating: "r", count: 12), "sealed \(sealedFrame(3))", "sealed \(sealedFrame(1))",
        String(repeating: "r", count: 30), "sealed \(sealedFrame(300))",
      ])
    #expect(whole.refusal == nil)
    for first in 0...stream.count {
      #expect(demultiplex([Array(stream[..<first]), Array(stream[first...])]) == whole)
    }
    #expect(demultiplex(stream.map { [$0] }) == whole)
  }

  @Test func `consecutive records are one piece`() throws {
    let stream = record(22, 7) + record(20, 1) + record(23, 16640)
    var demultiplexer = StreamDemultiplexer()
    let piece = try next(&demultiplexer, stream)
    #expect(piece == .records(byteCount: stream.count))
    let isBetweenUnits = demultiplexer.isBetweenUnits
    #expect(isBetweenUnits)
  }

  @Test func `records and sealed frames of maximum length are accepted`() {
    #expect(demultiplex([record(23, 16640), sealedFrame(16640)]).refusal == nil)
  }

  @Test(arguments: [1, 2, 3, 4])
  func `a record longer than TLS allows is refused by its header`(split: Int) {
    let header: [UInt8] = [23, 3, 3, 65, 1]
    #expect(demultiplex([Array(header[..<split]), Array(header[split...])]).refusal == .recordTooLong)
  }

  @Test func `a sealed frame longer than the limit is refused by its length`() {
    #expect(demultiplex([Array(sealedFrame(16641)[..<8])]).refusal == .sealedTooLong)
    #expect(demultiplex([Array(sealedFrame(0xFFFF)[..<8])]).refusal == .sealedTooLong)
  }

  @Test func `a sealed frame without a payload is refused`() {
    #expect(demultiplex([sealedFrame(0)]).refusal == .sealedEmpty)
  }

  @Test func `any other first byte is refused`() {
    for first in UInt8.min...UInt8.max where !(20...23).contains(first) && first != 0x81 {
      #expect(demultiplex([[first, 0, 0, 0, 0, 0, 0, 0]]).refusal == .unknownFirstByte)
    }
  }

  @Test func `valid records before an invalid one are delivered`() {
    let good = record(23, 4)
    let tooLong = demultiplex([good + [23, 3, 3, 0xFF, 0xFF]])
    #expect(tooLong == Transcript(units: [String(repeating: "r", count: 9)], refusal: .recordTooLong))
    let unknown = demultiplex([good + [0x47]])
    #expect(unknown == Transcript(units: [String(repeating: "r", count: 9)], refusal: .unknownFirstByte))
  }

  @Test func `a refusal is final`() {
    var demultiplexer = StreamDemultiplexer()
    for bytes in [[0x47], record(23, 4)] as [[UInt8]] {
      #expect(throws: StreamDemultiplexer.Refusal.unknownFirstByte) {
        try next(&demultiplexer, bytes)
      }
    }
  }

  @Test func `empty input yields nothing`() throws {
    var demultiplexer = StreamDemultiplexer()
    let piece = try next(&demultiplexer, [])
    #expect(piece == nil)
  }
}
