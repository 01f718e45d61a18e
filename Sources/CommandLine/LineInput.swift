import Primitives

/// Reads lines from a console's input. A returned line is valid UTF-8 of at most `byteCountMax` bytes. Longer lines are
/// split between characters.
public struct LineInput {
  private static let chunkBytes = 4_096

  private let byteCountMax: Int
  private var buffer: [UInt8] = []
  public private(set) var isOver = false

  public init(byteCountMax: Int) { self.byteCountMax = byteCountMax }

  /// Reads once from the console, at most `chunkBytes` bytes.
  public mutating func read(_ console: any Console) {
    switch console.read(atMost: Self.chunkBytes) {
    case .bytes(let bytes): buffer += bytes
    case .nothing: return
    case .end, .failed: isOver = true
    }
  }

  public mutating func close() { isOver = true }

  /// Discards all input that `next` has not returned, including input that the terminal has not delivered.
  public mutating func discard(_ console: any Console) {
    buffer = []
    console.discardInput()
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
