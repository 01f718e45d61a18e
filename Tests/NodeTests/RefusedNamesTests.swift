import Frame
import Primitives
import TestSupport
import Testing

@testable import Node

@Suite struct RefusedNamesTests {
  private func id(_ number: Int) -> NodeID { NodeID(high: UInt64(number), low: 1) }

  @Test func `a name is found under the epoch of its profile`() {
    var names = RefusedNames()
    names.note(id(1), DisplayName("bob"), in: 5, on: 2)
    #expect(names.name(of: id(1), in: 5)?.text == "bob")
    #expect(names.name(of: id(1), in: 6) == nil && names.name(of: id(2), in: 5) == nil)
    // A profile from before a restart replaces nothing.
    names.note(id(1), DisplayName("old"), in: 4, on: 2)
    names.forget(id(1), in: 4)
    #expect(names.name(of: id(1), in: 5)?.text == "bob")
    names.note(id(1), DisplayName("alice"), in: 6, on: 2)
    #expect(names.all.map { $0.name.text } == ["alice"])
    names.forget(id(1), in: 6)
    #expect(names.all.isEmpty)
  }

  @Test func `many impostors behind one link do not displace the names behind another`() {
    var names = RefusedNames()
    names.note(id(1), DisplayName("bob"), in: 1, on: 3)
    for number in 100..<1000 { names.note(id(number), DisplayName("bob"), in: 1, on: 2) }
    #expect(names.name(of: id(1), in: 1) != nil && names.all.count == RefusedNames.entriesMax)
    #expect(names.name(of: id(999), in: 1) != nil && names.name(of: id(100), in: 1) == nil)
    // A neighbour that repeats the profiles of others does not get their entries charged to its own link.
    names.note(id(1), DisplayName("bob"), in: 1, on: 2)
    for number in 1000..<2000 { names.note(id(number), DisplayName("bob"), in: 1, on: 2) }
    #expect(names.name(of: id(1), in: 1) != nil)
    names.linkClosed(3)
    #expect(names.name(of: id(1), in: 1) != nil)
  }
}
