import FuzzSupport
import Transfer

/// Decodes any bytes as the stream of a file transfer, at the sender and at the receiver. Also decodes the bytes as the
/// journal of a partial, which is an incomplete transfer on disk. The receiver's commands must stay within the files of
/// the manifest.
func fuzzResources(_ input: UnsafeRawBufferPointer) {
  guard let first = input.first else { return }
  let bytes = Array(input.dropFirst())
  switch first % 3 {
  case 0: receive(bytes)
  case 1: send(bytes)
  default: restore(bytes)
  }
}

private func records(_ bytes: [UInt8]) -> [Record] {
  var splitter = RecordSplitter(), records: [Record] = []
  splitter.append(bytes)
  while let record = try? splitter.next() { records.append(record) }
  return records
}

private func receive(_ bytes: [UInt8], journal: [UInt8] = [], read: [UInt8] = []) {
  var receiver = TransferReceiver(), ends = 0
  var sizes: [Int: UInt64] = [:]
  for record in records(bytes) {
    receiver.handle(record)
    while let command = receiver.nextCommand() {
      switch command {
      case .ask: _ = receiver.accept(freeBytes: .max, journal: journal)
      case .read(_, _, let count): receiver.provide(Array(read.prefix(count)))
      case .write(let file, let offset, let data):
        let size = receiver.manifest?.size(file: file) ?? 0
        expect(offset <= size && UInt64(data.count) <= size - offset, "bytes behind the end of a file")
        if journal.isEmpty { expect(offset == sizes[file, default: 0], "a gap in a file") }
        sizes[file] = offset + UInt64(data.count)
      case .truncate(let file, let bytes):
        expect(bytes <= receiver.manifest?.size(file: file) ?? 0, "a file longer than it is")
        sizes[file] = bytes
      case .place(let item): receiver.placed(item: item, number: 1)
      case .finish: ends += 1
      case .send(let record):
        expect(record.encoded.count <= TransferLimits.recordBytesMax + 4, "a record that is too long")
      case .makeFolders, .note, .keep: break
      }
    }
  }
  expect(ends <= 1, "\(ends) ends")
}

/// Offers a file of three bytes, and handles the input as the receiver's answers.
private func send(_ bytes: [UInt8]) {
  guard let manifest = try? Manifest([Entry([[0x61]], size: 3)]) else { return }
  var sender = TransferSender(manifest), ends = 0
  sender.start()
  for record in [nil] + records(bytes).map({ Optional($0) }) {
    if let record { sender.handle(record) }
    while let command = sender.nextCommand() {
      switch command {
      case .read(_, let offset, let count):
        expect(offset + UInt64(count) <= 3, "bytes behind the end of a file")
        sender.provide(Array([1, 2, 3][Int(offset)..<(Int(offset) + count)]))
      case .finish: ends += 1
      case .send: break
      }
    }
  }
  expect(ends <= 1, "\(ends) ends")
}

/// Restores a journal whose entries have correct checksums. The input determines the other fields of the entries.
private func restore(_ bytes: [UInt8]) {
  guard let manifest = try? Manifest([Entry([[0x61]], size: 3), Entry([[0x62]], size: 2_000_000)]) else { return }
  var journal = PartialJournal.header(manifest.digest)
  let digest = SHA256.digest([])
  for start in stride(from: 0, to: bytes.count - 3, by: 4) {
    let file = Int(bytes[start + 1] & 3), leaf = Int(bytes[start + 2] & 3)
    switch bytes[start] % 4 {
    case 0:
      let count = bytes[start + 3] < 128 ? 3 : Tree.leafBytes
      journal += PartialJournal.Entry.leaf(file: file, leaf: leaf, bytes: count, digest).encoded
    case 1: journal += PartialJournal.Entry.whole(file: file, root: digest).encoded
    case 2: journal += PartialJournal.Entry.truncated(file: file, leaves: leaf).encoded
    default: journal += PartialJournal.Entry.placed(item: file, number: leaf).encoded
    }
  }
  let talk: [Record] = [
    .offer(OfferRecord(manifest)), .manifest(manifest.bytes), .begin(file: 0, offset: 0), .bytes([1, 2, 3]),
  ]
  receive(talk.flatMap { $0.encoded }, journal: journal, read: bytes)
}
