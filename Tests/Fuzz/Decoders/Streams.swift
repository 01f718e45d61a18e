import FuzzSupport
import Link

/// Splits the bytes below TLS into TLS records and sealed frames. The result must not depend on how the bytes arrive in
/// pieces.
func fuzzStreams(_ input: UnsafeRawBufferPointer) {
  let whole = divide(input, step: max(input.count, 1))
  for step in [1, 7] {
    let pieces = divide(input, step: step)
    expect(whole.refusal == pieces.refusal, "another cut, another refusal")
    if whole.refusal == nil {
      expect(whole.kinds == pieces.kinds, "another cut, other units")
    } else {
      // How much of a refused unit was accepted before the refusal depends on the pieces.
      expect(pieces.kinds.starts(with: whole.kinds), "another cut, other units before the refusal")
    }
  }
}

private struct Division {
  /// For each accepted byte, the kind of the unit around this byte.
  var kinds: [UInt8] = []
  var refusal: StreamDemultiplexer.Refusal?
}

private func divide(_ input: UnsafeRawBufferPointer, step: Int) -> Division {
  var demultiplexer = StreamDemultiplexer()
  var division = Division()
  var start = 0
  while start < input.count {
    var part = UnsafeRawBufferPointer(rebasing: input[start..<min(start + step, input.count)])
    start += part.count
    do throws(StreamDemultiplexer.Refusal) {
      while let piece = try demultiplexer.next(in: part) {
        let byteCount: Int
        switch piece {
        case .records(let count):
          byteCount = count
          division.kinds += Array(repeating: 0, count: count)
        case .sealed(let count, let begins, let ends):
          byteCount = count
          division.kinds += Array(repeating: 1, count: count)
          if begins, count > 0 { division.kinds[division.kinds.count - count] |= 2 }
          if ends { division.kinds[division.kinds.count - 1] |= 4 }
        }
        expect(byteCount > 0 && byteCount <= part.count, "a piece of \(byteCount) bytes of \(part.count)")
        part = UnsafeRawBufferPointer(rebasing: part[byteCount...])
      }
    } catch {
      division.refusal = error
      return division
    }
  }
  return division
}
