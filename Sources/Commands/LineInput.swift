import CSystem
import Primitives

/// Standard input, or a terminal that draws what is typed itself, in lines: of at most so many bytes of valid UTF-8, longer ones
/// in parts that end between characters.
struct LineInput {
  private static let chunkBytes = 4_096

  let descriptor: CInt
  private let byteCountMax: Int
  private var buffer: [UInt8] = []
  private(set) var isOver = false

  init(byteCountMax: Int, from descriptor: CInt = STDIN_FILENO) {
    self.byteCountMax = byteCountMax
    self.descriptor = descriptor
  }

  /// Reads once what is there.
  mutating func read() {
    let before = buffer.count
    buffer.append(contentsOf: repeatElement(0, count: Self.chunkBytes))
    let count = buffer.withUnsafeMutableBytes {
      CSystem.read(descriptor, $0.baseAddress! + before, Self.chunkBytes)
    }
    buffer.removeLast(Self.chunkBytes - max(count, 0))
    if count < 0 && (csystem_errno() == EINTR || csystem_errno() == EAGAIN) { return }
    if count <= 0 { isOver = true }
  }

  mutating func close() { isOver = true }

  /// Forgets all input that has not been taken, including what waits in the terminal.
  mutating func discard() {
    buffer = []
    tcflush(descriptor, TCIFLUSH)
  }

  /// Whether something can be read now: of a terminal a whole line, or its end.
  var isReadable: Bool {
    var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) > 0
  }

  /// Whether a line can be taken.
  var hasLine: Bool {
    buffer.contains(0x0A) || buffer.count > byteCountMax || isOver && !buffer.isEmpty
  }

  /// The next line, or the next part of a long one.
  mutating func next() -> [UInt8]? {
    guard hasLine else { return nil }
    let end = buffer.firstIndex(of: 0x0A)
    var line = Array(buffer[..<(end ?? buffer.count)])
    let isValid = UTF8Text.isValid(line.span.bytes)
    // What replaces a byte that is no UTF-8 is three times as long.
    let most = isValid ? byteCountMax : byteCountMax / 3
    var taken = end.map { $0 + 1 } ?? buffer.count
    if line.count > most {
      taken = max(UTF8Text.prefixLength(line.span.bytes, byteCountMax: most), 1)
      line.removeLast(line.count - taken)
    }
    buffer.removeFirst(taken)
    return isValid ? line : Array(String(decoding: line, as: UTF8.self).utf8)
  }
}
