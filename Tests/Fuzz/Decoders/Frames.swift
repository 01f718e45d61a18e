import Frame
import Link
import Primitives
import TestSupport

/// Decodes any bytes as the byte stream of a link. The stream is split into frames. Each header is decoded, and each
/// payload between neighbours by its type. A legal value must encode to the bytes that were read.
func fuzzFrames(_ input: UnsafeRawBufferPointer) {

  inbox.removeAll()
  // Two pieces of the stream must give the same frames as the undivided stream.
  let whole = cut(input, at: input.count)
  if input.count > 1, whole != cut(input, at: input.count / 2) { fatalError("another cut, other frames") }
}

nonisolated(unsafe) private var inbox = FrameInbox(
  .allocate(byteCount: Limits.frameBytesMax, alignment: 16))

private struct Cut: Equatable {
  var frameCount = 0
  var byteCount = 0
  var refusal: FrameError?
}

private func cut(_ input: UnsafeRawBufferPointer, at end: Int) -> Cut {
  inbox.removeAll()
  var cut = Cut()
  for piece in [input[..<end], input[end...]] {
    let bytes = UnsafeRawBufferPointer(rebasing: piece)
    var offset = 0
    do throws(FrameError) {
      while let frame = try inbox.next(bytes, &offset) {
        cut.frameCount += 1
        cut.byteCount += frame.count
        look(at: frame)
      }
    } catch {
      cut.refusal = error
      return cut
    }
  }
  return cut
}

private func look(at frame: UnsafeRawBufferPointer) {
  guard let header = try? FrameHeader(frame.bytes) else { return }
  if header.frameByteCount != frame.count { fatalError("a frame of another length than its header says") }
  if encoded({ output in header.write(to: &output) }) != [UInt8](frame.prefix(FrameHeader.byteCount)) {
    fatalError("a header is written otherwise than it was read")
  }
  let payload = UnsafeRawBufferPointer(rebasing: frame.dropFirst(FrameHeader.byteCount)).bytes
  switch header.knownType {
  case .hello:
    guard let hello = try? Hello(payload) else { return }
    let written = encoded { output in hello.write(to: &output) }
    if !payload.array.starts(with: written) { fatalError("a hello is written otherwise than it was read") }
  case .goodbye: _ = try? Goodbye(payload)
  case .request:
    guard let request = try? AdvertisementRequest(payload) else { return }
    let written = encoded { output in
      AdvertisementRequest.writeHead(count: request.count, to: &output)
      for index in 0..<request.count { output.append(request.node(index)) }
    }
    if payload.array != written { fatalError("a request is written otherwise than it was read") }
  case .advertisement: _ = try? AdvertisementView(payload)
  case .denyList: _ = try? DenyListView(payload)
  case .ping, .pong, .segment, .acknowledgement, .datagram, .reset, .handshake, .sealed, .joined, nil: break
  }
}
