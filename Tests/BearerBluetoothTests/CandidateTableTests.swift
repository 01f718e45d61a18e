import Bearer
import Primitives
import Testing

@testable import BearerBluetooth

private func endpoint(_ address: UInt64) -> BluetoothEndpoint { BluetoothEndpoint(address: address, isRandom: false) }
private func candidate(_ address: UInt64, _ hint: UInt64) -> Candidate {
  Candidate(bearer: .bluetoothLE, address: .bluetooth(endpoint(address)), hint: hint)
}
private func after(_ seconds: UInt64) -> Instant { Instant.zero + .seconds(seconds) }

@Test func aPeerIsFoundOnceHoweverOftenItIsHeard() {
  var table = CandidateTable()
  #expect(table.heard(endpoint(1), hint: 7, .zero).found == candidate(1, 7))
  #expect(table.heard(endpoint(1), hint: 7, after(1)) == .none)
  #expect(table.count == 1)
}

@Test func aHintThatComesLaterReplacesTheCandidate() {
  var table = CandidateTable()
  _ = table.heard(endpoint(1), hint: 0, .zero)
  let change = table.heard(endpoint(1), hint: 9, after(1))
  #expect(change == .init(lost: candidate(1, 0), found: candidate(1, 9)))
  #expect(table.heard(endpoint(1), hint: 0, after(2)) == .none)
}

@Test func aPeerThatNoLongerForwardsReplacesTheCandidate() {
  var table = CandidateTable()
  _ = table.heard(endpoint(1), hint: 7, .zero)
  let change = table.heard(endpoint(1), hint: 7, relays: false, after(1))
  #expect(change.lost == candidate(1, 7) && change.found?.relays == false)
  // An advertisement whose scan response was lost says nothing.
  #expect(table.heard(endpoint(1), hint: 0, after(2)) == .none)
}

@Test func aPublicAndARandomAddressAreTwoPeers() {
  var table = CandidateTable()
  _ = table.heard(BluetoothEndpoint(address: 1, isRandom: false), hint: 0, .zero)
  #expect(table.heard(BluetoothEndpoint(address: 1, isRandom: true), hint: 0, .zero).found != nil)
}

@Test func aPeerNotHeardFor30SecondsOfScanningIsLost() {
  var table = CandidateTable()
  table.scanning(true, .zero)
  _ = table.heard(endpoint(1), hint: 7, .zero)
  #expect(table.expire(after(30)) == [])
  #expect(table.expire(after(31)) == [candidate(1, 7)])
  #expect(table.count == 0)
}

@Test func nobodyIsLostWhileWeDoNotScan() {
  var table = CandidateTable()
  table.scanning(true, .zero)
  _ = table.heard(endpoint(1), hint: 7, .zero)
  table.scanning(false, after(10))
  #expect(table.expire(after(1000)) == [])
  table.scanning(true, after(1000))
  #expect(table.expire(after(1020)) == [])
  #expect(table.expire(after(1021)) == [candidate(1, 7)])
}

@Test func aLinkedPeerIsNotLostAndAfterTheLinkHasTheWholeTimeAgain() {
  var table = CandidateTable()
  table.scanning(true, .zero)
  _ = table.heard(endpoint(1), hint: 7, .zero)
  table.linked(endpoint(1), true, after(1))
  #expect(table.expire(after(100)) == [])
  table.linked(endpoint(1), false, after(100))
  #expect(table.expire(after(130)) == [])
  #expect(table.expire(after(131)) == [candidate(1, 7)])
}

@Test func aFullTableTakesANewcomerOnlyInPlaceOfASilentPeer() {
  var table = CandidateTable()
  table.scanning(true, .zero)
  for address in 0..<UInt64(CandidateTable.entriesMax) {
    #expect(table.heard(endpoint(address), hint: 0, .zero).found != nil)
  }
  #expect(table.heard(endpoint(1000), hint: 0, after(12)) == .none)
  _ = table.heard(endpoint(0), hint: 0, after(13))
  let change = table.heard(endpoint(1000), hint: 0, after(13))
  #expect(change == .init(lost: candidate(1, 0), found: candidate(1000, 0)))
  #expect(table.count == CandidateTable.entriesMax)
}

@Test func allAreLostWithTheAdapter() {
  var table = CandidateTable()
  _ = table.heard(endpoint(1), hint: 7, .zero)
  _ = table.heard(endpoint(2), hint: 8, .zero)
  #expect(table.removeAll(after(1)) == [candidate(1, 7), candidate(2, 8)])
  #expect(table.count == 0)
}

@Test func aPSMIsKnownWhenItLedToANodeAndForOneDialOnly() {
  var table = CandidateTable()
  _ = table.heard(endpoint(1), hint: 7, .zero)
  table.opened(endpoint(1), psm: 0x81)
  #expect(table.takePSM(endpoint(1)) == nil)
  table.proved(endpoint(1))
  #expect(table.takePSM(endpoint(1)) == 0x81)
  #expect(table.takePSM(endpoint(1)) == nil)
  // It led to a node again.
  table.proved(endpoint(1))
  #expect(table.takePSM(endpoint(1)) == 0x81)
}
