import Transfer

/// Whether a file is transferred in memory and the root of its hash tree equals one that was computed independently.
func resourceIsTransferred() -> Bool {
  let content = Array("hello".utf8)
  guard let entry = try? Entry([Array("a".utf8)], size: UInt64(content.count)),
    let manifest = try? Manifest([entry])
  else { return false }
  var sender = TransferSender(manifest), receiver = TransferReceiver()
  var stored: [UInt8] = [], isComplete = false, root: [UInt8] = []
  sender.start()
  // The two ends are polled in turn. The transfer has at most a dozen records, so 32 rounds are enough.
  for _ in 0..<32 {
    while let command = sender.nextCommand() {
      switch command {
      case .send(let record):
        if case .root(_, let digest) = record { root = digest.hexadecimal(bytes: 32) }
        receiver.handle(record)
      case .read(_, let offset, let count):
        sender.provide(Array(content[Int(offset)..<(Int(offset) + count)]))
      case .finish(let outcome): isComplete = outcome == .complete([.stored])
      }
    }
    while let command = receiver.nextCommand() {
      switch command {
      case .send(let record): sender.handle(record)
      case .ask: _ = receiver.accept(freeBytes: .max)
      case .read: receiver.provide([])
      case .write(_, _, let bytes): stored += bytes
      case .place(let item): receiver.placed(item: item, number: 1)
      case .makeFolders, .truncate, .note, .keep, .finish: break
      }
    }
  }
  // SHA-256 of a zero byte and “hello”.
  return isComplete && stored == content
    && root == Array("8a2a5c9b768827de5a9552c38a044c66959c68f6d2f21b5260af54d2f87db827".utf8)
}
