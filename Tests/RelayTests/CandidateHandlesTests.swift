import Bearer
import BearerBluetooth
import BearerIP
import Discovery
import Primitives
import Testing

@testable import Relay

/// The handles by which the node refers to the endpoints that discovery reports.
struct CandidateHandlesTests {
  var table = CandidateHandles()

  private func candidate(_ host: UInt32, port: UInt16 = 41_820, _ bearer: BearerKind = .ethernet, hint: UInt64 = 0)
    -> Candidate
  {
    let endpoint = IPEndpoint(high: 0, low: 0xFFFF_0000_0000 | UInt64(host), port: port, scope: 0)
    return Candidate(bearer: bearer, address: .ip(endpoint), hint: hint)
  }

  @Test mutating func `an endpoint keeps its handle and its latest hint`() {
    let handle = table.enter(candidate(1, hint: 5), now: .zero)
    #expect(handle != nil && handle != 0)
    #expect(table.enter(candidate(1, hint: 6), now: .zero) == handle)
    #expect(handle.flatMap { table[$0]?.hint } == 6)
  }

  @Test mutating func `the same address with another port or bearer is another endpoint`() {
    let handles = [
      table.enter(candidate(1), now: .zero), table.enter(candidate(1, port: 5), now: .zero),
      table.enter(candidate(1, .wifi), now: .zero),
    ]
    #expect(Set(handles).count == 3 && !handles.contains(nil))
  }

  @Test mutating func `a removed endpoint is unknown and gets a new handle`() throws {
    let entered = table.enter(candidate(1), now: .zero)
    let handle = try #require(entered)
    #expect(table.strike(candidate(1)) == handle)
    #expect(table[handle] == nil && table.strike(candidate(1)) == nil)
    #expect(table.enter(candidate(1), now: .zero) != handle)
  }

  @Test mutating func `a full table accepts no new endpoint until one is removed`() {
    for host in 0..<UInt32(Limits.candidatesMax) { #expect(table.enter(candidate(host), now: .zero) != nil) }
    #expect(table.enter(candidate(70_000), now: .zero) == nil)
    #expect(table.enter(candidate(3), now: .zero) != nil)
    #expect(table.strike(candidate(3)) != nil)
    #expect(table.enter(candidate(70_000), now: .zero) != nil)
  }

  /// The table has a slot for every candidate that the sources together can hold. So no source can take the slots of
  /// another source.
  @Test func `the table has room for the candidates of all sources`() {
    #expect(
      Limits.candidatesMax == DiscoveryMemory.servicesMax + BluetoothRadios.heardMax + IPBearerSettings.entriesMax)
  }
}
