import CSystem
import Primitives
import Testing

@testable import Relay

/// The text of a project file. `name` is relative to the root of the repository.
private func projectFile(_ name: String) throws -> String {
  let here = "\(#filePath)"
  let top = here.dropLast("Tests/LedgerTests/LedgerTests.swift".utf8.count)
  let file = try #require(fopen("\(top)\(name)", "r"))
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 262_144)
  let count = fread(&bytes, 1, bytes.count, file)
  return String(decoding: bytes[..<count], as: UTF8.self)
}

/// The cells of the table “Bounded tables” in docs/security.md. Each array is one row; the heading is omitted.
private func boundedTables() throws -> [[String]] {
  let page = lines(try projectFile("docs/security.md"))
  let start = try #require(page.firstIndex(of: "## Bounded tables"))
  return page[(start + 1)...].prefix { !$0.hasPrefix("## ") }.filter {
    $0.hasPrefix("| ") && !$0.hasPrefix("| table |")
  }.map { row in
    row.dropFirst(2).dropLast(2).split(separator: " | ", omittingEmptySubsequences: false).map(String.init)
  }
}

private func lines(_ text: String) -> [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

@Test func `the memory limit of the systemd unit is that of the ledger`() throws {
  let granted = lines(try projectFile("config/causeway.service")).filter { $0.hasPrefix("MemoryMax=") }
  #expect(granted == ["MemoryMax=\(Ledger.memoryMax >> 20)M"])
}

@Test func `the sum of all memory limits is at most the limit of the unit`() {
  #expect(Ledger.sum(Ledger.entries()) <= Ledger.memoryMax)
  for entry in Ledger.entries() { #expect(entry.bytes > 0, "\(entry.owner)") }
}

@Test func `the page about memory contains the ledger`() throws {
  let page = lines(try projectFile("docs/design/memory.md"))
  let missing = Ledger.table().filter { !page.contains("    \($0)") }
  #expect(missing.isEmpty)
}

@Test func `a journal size beyond the free memory is reported at start`() throws {
  let free = Ledger.memoryMax - Ledger.sum(Ledger.entries(journalBytes: 0))
  #expect(Ledger.excess(journalBytes: free / 1024 * 1024) == nil)
  let text = try #require(Ledger.excess(journalBytes: 64 << 20))
  #expect(text.hasPrefix("[journal] size: above \(free / 1024)"))
}

@Test func `the security page has a row for each owner of the ledger`() throws {
  let owners = Set(try boundedTables().map { $0[0] })
  for entry in Ledger.entries() {
    #expect(owners.contains(String(entry.owner)), "docs/security.md, “Bounded tables”, has no row “\(entry.owner)”")
  }
}

@Test func `each row of the security page names the filler, the content and a test`() throws {
  for row in try boundedTables() {
    #expect(row.count == 4 && row.allSatisfy { !$0.isEmpty }, "\(row)")
    // A text in backquotes that starts with `Tests/` is the path of a test. The cell “–” marks memory that no peer can
    // fill.
    let tests = row[3].split(separator: "`").filter { $0.hasPrefix("Tests/") }
    #expect(!tests.isEmpty || row[3] == "–", "\(row[0]): which test?")
    for test in tests { #expect(throws: Never.self, "\(row[0]): \(test)") { try projectFile(String(test)) } }
  }
}
