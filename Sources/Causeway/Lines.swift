/// The lines of standard input, without their ends: for programs at a terminal. What is no UTF-8 is repaired; a line of
/// more than 65,000 bytes is told in pieces. Nothing is read before it is asked for. For one reader in a process.
public func standardInputLines() -> Events<String> {
  let lines = LineReader()
  return Events { await .success(lines.next()) }
}

private actor LineReader {
  private var bytes: [UInt8] = []
  private var hasEnded = false
  /// A read that a cancelled task began: the next one takes what it finds.
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
    // A terminal blocks: a thread waits for it, not a task.
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
