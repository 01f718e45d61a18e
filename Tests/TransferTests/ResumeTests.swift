import Testing

@testable import Transfer

/// A transfer whose stream broke after `bytes` bytes of files.
private func broken(_ content: [UInt8], after bytes: Int) throws -> Exchange {
  var exchange = try Exchange(content)
  exchange.breaksAfter = bytes
  exchange.run()
  exchange.cut()
  #expect(exchange.sent == nil && exchange.received == nil)
  return exchange
}

private func isPrompt(_ record: Record) -> Bool { if case .prompt = record { true } else { false } }

@Test func `after a lost path a transfer continues without a question and resends nothing`() throws {
  var exchange = try broken(content(3, and: 5), after: 1_700_000)
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.disk == exchange.source)
  #expect(exchange.moved == exchange.source[0].count)
  #expect(exchange.log.count { isPrompt($0) } == 1)
  #expect(exchange.sender.bytesHeld > 1_700_000)
}

@Test func `only bytes in flight are sent again`() throws {
  let exchange = try broken(content(3), after: 1_700_000)
  // At the break 128 KiB were in flight, so the receiver has fewer bytes than were sent.
  let came = exchange.disk[0]?.count ?? 0
  var other = try Exchange(exchange.source[0])
  other.breaksAfter = came - 131_072
  other.run()
  other.cut()
  other.sender = exchange.sender
  (other.moved, other.breaksAfter) = (exchange.moved, .max)
  other.run()
  #expect(other.sent == .complete([.stored]) && other.disk == other.source)
  #expect(other.moved - other.source[0].count <= 131_072 + 65_536)
}

@Test func `a restarted receiver continues from its journal and the bytes after it`() throws {
  var exchange = try broken(content(3), after: 2_500_000)
  exchange.receiver = TransferReceiver()
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.disk == exchange.source)
  #expect(exchange.moved == exchange.source[0].count)
}

@Test func `a restarted sender compares leaves and continues`() throws {
  var exchange = try broken(content(3), after: 2_500_000)
  exchange.sender = TransferSender(exchange.sender.manifest)
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.disk == exchange.source)
  #expect(exchange.moved == exchange.source[0].count)
}

@Test func `a changed file is sent from its first different leaf on`() throws {
  var exchange = try broken(content(3), after: 2_500_000)
  exchange.sender = TransferSender(exchange.sender.manifest)
  exchange.source[0][1_500_000] ^= 1
  let before = exchange.moved
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.disk == exchange.source)
  #expect(exchange.moved - before == 2 * 1_048_576)
  #expect(exchange.log.contains(.compare(file: 0)))
}

@Test func `a journal with an incomplete last entry counts up to that entry`() throws {
  var exchange = try broken(content(3), after: 2_500_000)
  exchange.journal.removeLast(10)
  exchange.receiver = TransferReceiver()
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.disk == exchange.source)
  #expect(exchange.moved == exchange.source[0].count)
}

@Test func `leaves lost in a power failure are sent again`() throws {
  var exchange = try broken(content(3), after: 2_500_000)
  // The journal lists two leaves, which are hashed pieces of 1 MiB. The bytes of the second leaf were lost and are
  // zeros on the disk.
  exchange.disk[0]?.replaceSubrange(1_048_576..<2_000_000, with: [UInt8](repeating: 0, count: 951_424))
  exchange.receiver = TransferReceiver()
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.disk == exchange.source)
}

@Test func `a file shorter than its journal is sent from its end on`() throws {
  var exchange = try broken(content(3), after: 2_500_000)
  exchange.disk[0] = exchange.disk[0].map { Array($0.prefix(1_100_000)) }
  exchange.receiver = TransferReceiver()
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.disk == exchange.source)
  let again = exchange.moved - exchange.source[0].count
  #expect(again > 0 && again <= 1_600_000)
}

@Test func `the journal of another resource is ignored`() throws {
  var exchange = try Exchange(content(1))
  exchange.journal = PartialJournal.header(SHA256.digest([])) + [UInt8](repeating: 0, count: 56)
  exchange.run()
  #expect(exchange.sent == .complete([.stored]))
  #expect(Array(exchange.journal.prefix(40)) == PartialJournal.header(exchange.sender.manifest.digest))
}

@Test func `a completed file is not sent again after a restart`() throws {
  var exchange = try Exchange(content(1, and: 1))
  exchange.run()
  #expect(exchange.sent == .complete([.stored]))
  exchange.sender = TransferSender(exchange.sender.manifest)
  (exchange.receiver, exchange.disk) = (TransferReceiver(), [nil])
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.received == .complete([.stored]))
  #expect(exchange.moved == exchange.source[0].count && exchange.placed == [0] && exchange.disk == [nil])
}

@Test func `entries of a journal are decoded as they were encoded`() throws {
  let digest = Digest(Array(0..<32)[...])!
  let entries: [PartialJournal.Entry] = [
    .leaf(file: 1, leaf: 2, bytes: 1_048_576, digest), .whole(file: 1, root: digest), .truncated(file: 1, leaves: 1),
    .placed(item: 0, number: 2),
  ]
  #expect(
    hex(entries[0].encoded)
      == "01000000000000010000000200100000000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f7aee54a29bf19fa5"
  )
  let manifest = SHA256.digest([]), whole = PartialJournal.header(manifest) + entries.flatMap { $0.encoded }
  #expect(PartialJournal.read(whole, manifest)?.entries == entries)
  #expect(PartialJournal.read(whole, manifest)?.bytes == whole.count)
  #expect(PartialJournal.read(whole, SHA256.digest([1])) == nil)
  for end in 40..<whole.count {
    let read = PartialJournal.read(Array(whole[..<end]), manifest)
    #expect(read?.entries == Array(entries[..<((end - 40) / 56)]))
  }
  var wrong = whole
  wrong[40 + 56 + 8] ^= 1
  #expect(PartialJournal.read(wrong, manifest)?.entries == [entries[0]])
}

@Test func `truncated leaves do not count as held`() {
  let digest = SHA256.digest([])
  func leaf(_ file: Int, _ leaf: Int, _ bytes: Int) -> PartialJournal.Entry {
    .leaf(file: file, leaf: leaf, bytes: bytes, digest)
  }
  #expect(PartialJournal.bytesHeld([leaf(0, 0, 10), leaf(1, 0, 20), leaf(1, 1, 30)]) == 60)
  #expect(
    PartialJournal.bytesHeld([leaf(0, 0, 10), leaf(1, 0, 20), leaf(1, 1, 30), .truncated(file: 1, leaves: 1)]) == 30)
}

@Test func `a journal that truncates a file after a short leaf does not stop the transfer`() throws {
  var exchange = try Exchange([1, 2, 3])
  let leaf = PartialJournal.Entry.leaf(file: 0, leaf: 0, bytes: 3, SHA256.digest([]))
  let next = PartialJournal.Entry.leaf(file: 0, leaf: 1, bytes: 3, SHA256.digest([]))
  let entries = [leaf, .truncated(file: 0, leaves: 1), next, .truncated(file: 0, leaves: 1)]
  exchange.journal = PartialJournal.header(exchange.sender.manifest.digest) + entries.flatMap { $0.encoded }
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.disk == exchange.source)
}
