import Frame
import Primitives

/// Frames waiting for a link: one bounded queue for each priority, the most urgent first.
public struct FrameQueue {
  private var queues: InlineArray<4, ByteQueue>

  public static let byteCount =
    Limits.queueBytesMaxControl + Limits.queueBytesMaxRealtime + Limits.queueBytesMaxInteractive
    + Limits.queueBytesMaxBulk

  /// `memory` has `byteCount` bytes and is the queue's alone.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= Self.byteCount)
    var offset = 0
    func slice(_ count: Int) -> ByteQueue {
      defer { offset += count }
      return ByteQueue(UnsafeMutableRawBufferPointer(rebasing: memory[offset..<offset + count]))
    }
    let control = slice(Limits.queueBytesMaxControl)
    let realtime = slice(Limits.queueBytesMaxRealtime)
    let interactive = slice(Limits.queueBytesMaxInteractive)
    let bulk = slice(Limits.queueBytesMaxBulk)
    queues = [control, realtime, interactive, bulk]
  }

  /// Bytes waiting in all priorities.
  public var byteCount: Int {
    var sum = 0
    for index in queues.indices { sum += queues[index].count }
    return sum
  }

  public var isEmpty: Bool { byteCount == 0 }

  /// Bytes waiting in one priority.
  public func byteCount(_ priority: FramePriority) -> Int { queues[Int(priority.rawValue)].count }

  /// Queue a frame at its priority. False, with nothing queued, when it has no room there.
  public mutating func append(_ header: FrameHeader, _ payload: RawSpan) -> Bool {
    let index = Int(header.priority.rawValue)
    if queues[index].free < FrameHeader.byteCount + payload.byteCount { return false }
    var head = InlineArray<48, UInt8>(repeating: 0)
    var headBytes = head.mutableSpan
    headBytes.withUnsafeMutableBytes { bytes in
      var output = OutputRawSpan(buffer: bytes, initializedCount: 0)
      header.write(to: &output)
    }
    queues[index].append(head.span.bytes)
    queues[index].append(payload)
    return true
  }

  /// Move whole frames into `output`, the most urgent first, until the next one does not fit.
  /// Returns the bytes written.
  public mutating func pop(into output: UnsafeMutableRawBufferPointer) -> Int {
    var written = 0
    for index in queues.indices {
      while !queues[index].isEmpty {
        let byteCount = FrameHeader.byteCount + (Int(queues[index][6]) << 8 | Int(queues[index][7]))
        guard byteCount <= output.count - written, let base = output.baseAddress else { return written }
        queues[index].pop(byteCount, into: base + written)
        written += byteCount
      }
    }
    return written
  }

  public mutating func removeAll() {
    for index in queues.indices { queues[index].removeAll() }
  }
}
