import Testing

@testable import Transfer

private func entry(_ path: String, _ size: UInt64?) throws(TransferError) -> Entry {
  try Entry(path.split(separator: "/").map { bytes(String($0)) }, size: size)
}

private func manifest(_ entries: [(String, UInt64?)]) throws(TransferError) -> Manifest {
  var list: [Entry] = []
  for (path, size) in entries { list.append(try entry(path, size)) }
  return try Manifest(list)
}

/// Encodes a manifest as given, without sorting or checking the entries.
private func written(_ entries: [(path: String, size: UInt64?)]) -> [UInt8] {
  var fields = FieldWriter()
  for (path, size) in entries {
    let components = path.split(separator: "/", omittingEmptySubsequences: false)
    fields.put(UInt8(size == nil ? 1 : 0))
    fields.put(UInt8(truncatingIfNeeded: components.count))
    for component in components { fields.put(text: Array(component.utf8)) }
    if let size { fields.put(size) }
  }
  return fields.bytes
}

/// Decodes a manifest after an offer that contains the given values. All other values of the offer match the manifest.
private func read(
  _ list: [UInt8], entries: UInt32, files: UInt32, bytes size: UInt64, digest: Digest? = nil
) throws(TransferError) -> Manifest {
  var fields = FieldWriter()
  fields.put(TransferLimits.version)
  fields.put((digest ?? SHA256.digest(list)).bytes)
  fields.put(UInt32(list.count))
  fields.put(entries)
  fields.put(files)
  fields.put(size)
  fields.put(text: bytes("x"))
  var reader = FieldReader(fields.bytes[...])
  return try Manifest(list, try OfferRecord(&reader))
}

@Test func `a manifest is sorted by path and decoded as it was encoded`() throws {
  let list = try manifest([("b", 3), ("a-b", 1), ("a", nil), ("a/c", 2), ("a/b", nil), ("a/b/x", 0)])
  #expect(list.entries.map { String(decoding: $0.path, as: UTF8.self) } == ["a", "a/b", "a/b/x", "a/c", "a-b", "b"])
  #expect(list.files == [2, 3, 4, 5] && list.byteCount == 6)
  #expect(
    list.items == [
      Item(entries: 0..<4, files: 0..<2), Item(entries: 4..<5, files: 2..<3), Item(entries: 5..<6, files: 3..<4),
    ])
  #expect((0..<4).map { list.item(file: $0) } == [0, 0, 1, 2])
  #expect(try Manifest(list.bytes, OfferRecord(list)) == list)
}

@Test func `a folder without files is an item that contains no file`() throws {
  let list = try manifest([("a", nil), ("b", 1), ("c", nil), ("d", 1)])
  #expect(list.items.map { $0.files } == [0..<0, 0..<1, 1..<1, 1..<2])
  #expect(list.item(file: 0) == 1 && list.item(file: 1) == 3)
}

@Test func `the same files have the same digest in any order`() throws {
  #expect(try manifest([("b", 3), ("a", 1)]).digest == manifest([("a", 1), ("b", 3)]).digest)
  #expect(try manifest([("b", 3), ("a", 1)]).digest != manifest([("a", 1), ("b", 4)]).digest)
}

@Test(
  arguments: [
    [("a", 1), ("a", 1)], [("b", 1), ("a", 1)], [("a", 1), ("a/b", 1)], [("a/b", 1)],
    [("a", nil), ("b", 1), ("a/b", 1)],
    [("a", nil), ("a/b/c", 1)], [("ab", nil), ("ab/x", 1), ("abc/x", 1)],
  ] as [[(path: String, size: UInt64?)]])
func `a path that occurs twice, out of order, below a file or without its folder is refused`(
  list: [(path: String, size: UInt64?)]
) {
  let files = UInt32(list.count { $0.size != nil })
  #expect(throws: TransferError.path) {
    try read(written(list), entries: UInt32(list.count), files: files, bytes: list.reduce(0) { $0 + ($1.size ?? 0) })
  }
}

@Test(arguments: [
  "../x", "a/../b", "/etc/passwd", "a//b", ".", "a/.", "a\0b", "a\nb", String(repeating: "x", count: 256),
])
func `a path that leads out of the folder, or is no path, is refused`(path: String) {
  #expect(throws: TransferError.self) { try read(written([(path: path, size: 1)]), entries: 1, files: 1, bytes: 1) }
}

@Test func `a manifest that differs from the offer is refused`() {
  let list = written([(path: "a", size: 1), (path: "b", size: 2)])
  #expect(throws: Never.self) { try read(list, entries: 2, files: 2, bytes: 3) }
  #expect(throws: TransferError.entries) { try read(list, entries: 1, files: 1, bytes: 3) }
  #expect(throws: TransferError.entries) { try read(list, entries: 3, files: 2, bytes: 3) }
  #expect(throws: TransferError.sizes) { try read(list, entries: 2, files: 2, bytes: 4) }
  #expect(throws: TransferError.manifestDigest) {
    try read(list, entries: 2, files: 2, bytes: 3, digest: SHA256.digest([]))
  }
  #expect(throws: TransferError.recordField) { try read(Array(list.dropLast()), entries: 2, files: 2, bytes: 3) }
  #expect(throws: TransferError.entries) { try read(written([(path: "a", size: nil)]), entries: 1, files: 1, bytes: 0) }
  #expect(throws: Never.self) { try read(written([(path: "a", size: nil)]), entries: 1, files: 0, bytes: 0) }
}

@Test func `sizes do not overflow`() {
  for size in [.max, 1 << 63, (1 << 62) + 1] as [UInt64] {
    #expect(throws: TransferError.sizes) {
      try read(written([(path: "a", size: size)]), entries: 1, files: 1, bytes: 0)
    }
  }
  let half: UInt64 = 1 << 61
  #expect(throws: TransferError.sizes) {
    try read(
      written([(path: "a", size: half), (path: "b", size: half), (path: "c", size: 1)]), entries: 3, files: 3, bytes: 1)
  }
}

@Test func `a path is at most 64 names deep`() throws {
  let deep = [[UInt8]](repeating: [0x61], count: 64), path = String(repeating: "a/", count: 64) + "a"
  #expect(throws: Never.self) { try Entry(deep, size: 1) }
  #expect(throws: TransferError.path) { try Entry(deep + [[0x61]], size: 1) }
  #expect(throws: TransferError.path) {
    try read(written([(path: path, size: 1)]), entries: 1, files: 1, bytes: 1)
  }
}

@Test func `too many files are refused`() throws {
  var list: [Entry] = []
  for number in 0..<65_537 { list.append(try Entry([bytes("\(number)")], size: 0)) }
  #expect(throws: Never.self) { try Manifest(Array(list.dropLast())) }
  #expect(throws: TransferError.entries) { try Manifest(list) }
}
