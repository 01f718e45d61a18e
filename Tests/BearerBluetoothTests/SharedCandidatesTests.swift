import Bearer
import Testing

@testable import BearerBluetooth

@Suite struct SharedCandidatesTests {
  private func candidate(_ address: UInt64, hint: UInt64) -> Candidate {
    Candidate(
      bearer: .bluetoothLE, address: .bluetooth(.init(address: address, isRandom: false)), hint: hint, relays: true)
  }

  @Test func `a peer that two adapters receive is found once, and lost when the second adapter loses it`() {
    var shared = SharedCandidates()
    let peer = candidate(1, hint: 7)
    #expect(shared.found(peer, by: 0) == .init(found: peer))
    #expect(shared.found(peer, by: 1) == .init())
    #expect(shared.lost(peer, by: 0) == nil)
    #expect(shared.lost(peer, by: 1) == peer)
    #expect(shared.found(peer, by: 1) == .init(found: peer))
  }

  @Test func `a peer with a new identity is a new candidate, and its former identity is forgotten`() {
    var shared = SharedCandidates()
    let (former, present) = (candidate(1, hint: 7), candidate(1, hint: 8))
    _ = shared.found(former, by: 0)
    #expect(shared.found(present, by: 1) == .init(lost: former, found: present))
    #expect(shared.lost(former, by: 0) == nil)
    #expect(shared.lost(present, by: 1) == present)
  }

  @Test func `an adapter receives a peer from the time it is found until it is lost`() {
    var shared = SharedCandidates()
    _ = shared.found(candidate(1, hint: 7), by: 1)
    let address = RemoteAddress.bluetooth(BluetoothEndpoint(address: 1, isRandom: false))
    #expect(shared.isInRange(address, 1) && !shared.isInRange(address, 0))
    _ = shared.lost(candidate(1, hint: 7), by: 1)
    #expect(!shared.isInRange(address, 1))
  }
}
