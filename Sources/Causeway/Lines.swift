/// The lines of standard input, without line endings, for programs at a terminal.
///
/// Bytes that are not UTF-8 are replaced by U+FFFD. A line of more than 65,000 bytes is delivered in pieces. Standard
/// input is read only when the application requests the next line. A process must use only one sequence of these lines.
public func standardInputLines() -> Events<String> {
  let lines = LineReader()
  return Events { await .success(lines.next()) }
}

private actor LineReader {
  private var bytes: [UInt8] = []
  private var hasEnded = false
  /// The read of standard input that is in progress. If the task that started the read is cancelled, the next call uses
  /// the result.
  private var reading: Promise<[UInt8]>?

  func next() async -> String? {
    while true {
      if let end = bytes.prefix(Limits.lineBytesMax).firstIndex(of: 0x0a) { return take(end, with: 1) }
      if bytes.count >= Limits.lineBytesMax { return take(Limits.lineBytesMax, with: 0) }
      if hasEnded { return bytes.isEmpty ? nil : take(bytes.count, with: 0) }
      let reading = self.reading ?? read()
      self.reading = reading
      guard let more = await reading.value() else { return nil }
      self.reading = nil
      hasEnded = more.isEmpty
      bytes += more
    }
  }

  private func read() -> Promise<[UInt8]> {
    let promise = Promise<[UInt8]>()
    // A read from a terminal blocks, so a dedicated thread waits instead of a task.
    let isWaiting = Platform.startThread {
      var buffer = [UInt8](repeating: 0, count: 4_096)
      let count = Platform.readInput(&buffer)
      promise.fulfil(Array(buffer[..<count]))
    }
    if !isWaiting { promise.fulfil([]) }
    return promise
  }

  private func take(_ count: Int, with ending: Int) -> String {
    defer { bytes.removeFirst(count + ending) }
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}
