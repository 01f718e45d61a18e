import Testing

@testable import Transfer

private let manifest = try! Manifest([
  Entry([bytes("z")], size: 3_000_000_000), Entry([bytes("in"), bytes("a.txt")], size: 5),
  Entry([bytes("in")], size: nil),
])
private let root = Digest(Array(0..<32)[...])!
private let count = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/// Records and their bytes. docs/resources.md shows the same bytes.
private let golden: [(record: Record, bytes: String)] = [
  (
    .offer(OfferRecord(manifest)),
    "0000003a0100015589063d5e9d8d0c0085acea4df51493f9a2bb81e0c15a01ebd89e017bb5f02c00000024000000030000000200000000"
      + "b2d05e0502696e"
  ),
  (.prompt(seconds: 600), "000000050200000258"),
  (.answer(.declined, text: bytes("no")), "000000050302026e6f"),
  (.manifest([1, 1, 2, 0x69]), "000000050401010269"),
  (.held(file: 1, bytes: 1 << 32, root: root), "0000002d05000000010000000100000000" + count),
  (.ready, "0000000106"),
  (.begin(file: 1, offset: 1 << 20), "0000000d07000000010000000000100000"),
  (.bytes(bytes("hello")), "000000060868656c6c6f"),
  (.root(file: 1, root), "000000250900000001" + count),
  (.skip(file: 1, text: bytes("gone")), "0000000a0a0000000104676f6e65"),
  (.verdict(file: 1, .kept), "000000060b0000000103"),
  (.compare(file: 1), "000000050c00000001"),
  (.leaves(file: 1, first: 0, [root]), "0000002b0d00000001000000000001" + count),
  (.cancel(.storageFull, text: bytes("full")), "000000070e020466756c6c"),
]

private func read(_ bytes: [UInt8]) throws(TransferError) -> Record? {
  var splitter = RecordSplitter()
  splitter.append(bytes)
  return try splitter.next()
}

@Test func `each record has its golden bytes`() throws {
  for (record, expected) in golden {
    #expect(hex(record.encoded) == expected)
    #expect(try read(record.encoded) == record)
  }
}

@Test func `fields and records of later versions are skipped`() throws {
  for (record, _) in golden {
    // The content of these records extends to the end of the record, so they cannot have a later field.
    if case .manifest = record { continue }
    if case .bytes = record { continue }
    var longer = record.encoded + [7, 7]
    longer[3] += 2
    #expect(try read(longer) == record)
  }
  #expect(try read([0, 0, 0, 2, 200, 1] + Record.ready.encoded) == .ready)
}

@Test func `records arrive in pieces of any size`() throws {
  let all = golden.flatMap { $0.record.encoded }
  for size in [1, 2, 3, 7, 64, 1_000] {
    var splitter = RecordSplitter(), records: [Record] = []
    for start in stride(from: 0, to: all.count, by: size) {
      splitter.append(Array(all[start..<min(start + size, all.count)]))
      while let record = try splitter.next() { records.append(record) }
    }
    #expect(records == golden.map { $0.record } && splitter.isEmpty)
  }
}

@Test func `a record that is truncated or has a byte changed is decoded or refused`() throws {
  for (record, _) in golden {
    let encoded = record.encoded
    for end in encoded.indices { #expect(try read(Array(encoded[..<end])) == nil) }
    for index in encoded.indices {
      for change in [1, 0x20, 0x80, 0xff] as [UInt8] {
        var other = encoded
        other[index] ^= change
        _ = try? read(other)
      }
    }
  }
}

@Test func `the size of a record is limited`() {
  for length in [[0, 0, 0, 0], [0, 1, 1, 0xd1], [0xff, 0xff, 0xff, 0xff]] as [[UInt8]] {
    #expect(throws: TransferError.recordLength) { try read(length + [8]) }
  }
  // A record of the type “bytes” contains 1 to 65,536 bytes of a file.
  #expect(throws: TransferError.recordLength) { try read([0, 0, 0, 1, 8]) }
  #expect(throws: TransferError.recordLength) { try read(Record.bytes([UInt8](repeating: 0, count: 65_537)).encoded) }
  #expect(throws: TransferError.recordLength) {
    try read(Record.manifest([UInt8](repeating: 0, count: 32_769)).encoded)
  }
  #expect(throws: TransferError.recordField) { try read(Record.leaves(file: 1, first: 0, []).encoded) }
}

@Test func `an offer beyond a limit is refused at once`() {
  func offer(_ range: Range<Int>, _ value: UInt8, _ more: [UInt8] = []) -> [UInt8] {
    var encoded = Record.offer(OfferRecord(manifest)).encoded
    for index in range { encoded[index] = value }
    return encoded
  }
  // The offsets in these lines follow from the fields of an offer and their sizes: length 4, type 1, version 2, digest
  // 32, manifest bytes 4, entries 4, files 4, bytes 8, name.
  #expect(throws: TransferError.version) { try read(offer(5..<7, 0)) }
  #expect(throws: TransferError.manifestLength) { try read(offer(39..<40, 1)) }
  #expect(throws: TransferError.entries) { try read(offer(43..<44, 1)) }
  #expect(throws: TransferError.entries) { try read(offer(43..<47, 0)) }
  #expect(throws: TransferError.entries) { try read(offer(50..<51, 4)) }
  // An offer without files is legal, because it can consist of folders.
  #expect(throws: Never.self) { try read(offer(47..<51, 0)) }
  #expect(throws: TransferError.sizes) { try read(offer(51..<59, 0xff)) }
  #expect(throws: TransferError.name) { try read(offer(60..<61, UInt8(ascii: "/"))) }
}
