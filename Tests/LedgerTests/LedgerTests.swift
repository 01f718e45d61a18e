import CSystem
import Primitives
import Testing

@testable import Relay

/// A file of the project, from its top.
private func projectFile(_ name: String) throws -> String {
  let here = "\(#filePath)"
  let top = here.dropLast("Tests/LedgerTests/LedgerTests.swift".utf8.count)
  let file = try #require(fopen("\(top)\(name)", "r"))
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 65_536)
  let count = fread(&bytes, 1, bytes.count, file)
  return String(decoding: bytes[..<count], as: UTF8.self)
}

private func lines(_ text: String) -> [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

@Test func theUnitGrantsWhatTheLedgerSays() throws {
  let granted = lines(try projectFile("config/causeway.service")).filter { $0.hasPrefix("MemoryMax=") }
  #expect(granted == ["MemoryMax=\(Ledger.memoryMax >> 20)M"])
}

@Test func theLimitsAddUpToLessThanIsGranted() {
  #expect(Ledger.sum(Ledger.entries()) <= Ledger.memoryMax)
  for entry in Ledger.entries() { #expect(entry.bytes > 0, "\(entry.owner)") }
}

@Test func theArchitecturePageShowsTheLedger() throws {
  let page = lines(try projectFile("ARCHITECTURE.md"))
  let missing = Ledger.table().filter { !page.contains("    \($0)") }
  #expect(missing.isEmpty)
}

@Test func aJournalBeyondWhatIsLeftIsSaidAtStart() throws {
  let free = Ledger.memoryMax - Ledger.sum(Ledger.entries(journalBytes: 0))
  #expect(Ledger.excess(journalBytes: free / 1024 * 1024) == nil)
  let text = try #require(Ledger.excess(journalBytes: 64 << 20))
  #expect(text.hasPrefix("[journal] size: with more than \(free / 1024)"))
}
