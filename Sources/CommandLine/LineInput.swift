import CSystem
import Primitives

/// Reads lines from standard input, or from a terminal in line mode. A returned line is valid UTF-8 of at most
/// `byteCountMax` bytes. Longer lines are split between characters.
public struct LineInput {
  private static let chunkBytes = 4_096

  public let descriptor: CInt
  private let byteCountMax: Int
  private var buffer: [UInt8] = []
  public private(set) var isOver = false

  public init(byteCountMax: Int, from descriptor: CInt = STDIN_FILENO) {
    self.byteCountMax = byteCountMax
    self.descriptor = descriptor
  }

  /// Reads once from the descriptor, at most `chunkBytes` bytes.
  public mutating func read() {
    let before = buffer.count
    buffer.append(contentsOf: repeatElement(0, count: Self.chunkBytes))
    let count = buffer.withUnsafeMutableBytes {
      CSystem.read(descriptor, $0.baseAddress! + before, Self.chunkBytes)
    }
    buffer.removeLast(Self.chunkBytes - max(count, 0))
    if count < 0 && (csystem_errno() == EINTR || csystem_errno() == EAGAIN) { return }
    if count <= 0 { isOver = true }
  }

  public mutating func close() { isOver = true }

  /// Discards all input that `next` has not returned, including input that the terminal has not delivered.
  public mutating func discard() {
    buffer = []
    tcflush(descriptor, TCIFLUSH)
  }

  /// Whether input can be read now. A terminal in line mode has input after a complete line, or at the end of input.
  public var isReadable: Bool {
    var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) > 0
  }

  /// Whether `next` returns a line.
  public var hasLine: Bool {
    buffer.contains(0x0A) || buffer.count > byteCountMax || isOver && !buffer.isEmpty
  }

  /// The next line, or the next part of a line that is too long; nil if there is none.
  public mutating func next() -> [UInt8]? {
    guard hasLine else { return nil }
    let end = buffer.firstIndex(of: 0x0A)
    var line = Array(buffer[..<(end ?? buffer.count)])
    let isValid = UTF8Text.isValid(line.span.bytes)
    // An invalid byte is replaced by U+FFFD, which has three bytes.
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
