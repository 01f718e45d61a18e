import Bearer
import Primitives
import Testing

@testable import BearerBluetooth

private func device(_ address: UInt64) -> WireAddress { WireAddress(address: address, type: 1) }
private func candidate(_ address: UInt64, _ hint: UInt64) -> Candidate {
  Candidate(bearer: .bluetoothLE, address: device(address).remote, hint: hint)
}
private func after(_ seconds: UInt64) -> Instant { Instant.zero + .seconds(seconds) }

@Test func `a peer is found once, however often its advertisement is received`() {
  var table = HeardPeers()
  #expect(table.heard(device(1), hint: 7, .zero).found == candidate(1, 7))
  #expect(table.heard(device(1), hint: 7, after(1)) == .none)
  #expect(table.count == 1)
}

@Test func `a hint that is received later replaces the candidate`() {
  var table = HeardPeers()
  _ = table.heard(device(1), hint: 0, .zero)
  let change = table.heard(device(1), hint: 9, after(1))
  #expect(change == .init(lost: candidate(1, 0), found: candidate(1, 9)))
  #expect(table.heard(device(1), hint: 0, after(2)) == .none)
}

@Test func `a change of a peer's role replaces its candidate`() {
  var table = HeardPeers()
  _ = table.heard(device(1), hint: 7, .zero)
  let change = table.heard(device(1), hint: 7, relays: false, after(1))
  #expect(change.lost == candidate(1, 7) && change.found?.relays == false)
  // The scan response contains the hint and the role. Without the scan response an advertisement has hint 0, and the
  // table keeps the known hint and role.
  #expect(table.heard(device(1), hint: 0, after(2)) == .none)
}

@Test func `a public and a random address of equal bytes are two peers`() {
  var table = HeardPeers()
  _ = table.heard(device(1), hint: 0, .zero)
  #expect(table.heard(WireAddress(address: 1, type: 2), hint: 0, .zero).found != nil)
}

@Test func `a peer not received for 30 seconds of scanning is lost`() {
  var table = HeardPeers()
  table.scanning(true, .zero)
  _ = table.heard(device(1), hint: 7, .zero)
  #expect(table.expire(after(30)) == [])
  #expect(table.expire(after(31)) == [candidate(1, 7)])
  #expect(table.count == 0)
}

@Test func `no peer is lost while the node does not scan`() {
  var table = HeardPeers()
  table.scanning(true, .zero)
  _ = table.heard(device(1), hint: 7, .zero)
  table.scanning(false, after(10))
  #expect(table.expire(after(1000)) == [])
  table.scanning(true, after(1000))
  #expect(table.expire(after(1020)) == [])
  #expect(table.expire(after(1021)) == [candidate(1, 7)])
}

@Test func `a linked peer is not lost, and its timeout starts again after the link`() {
  var table = HeardPeers()
  table.scanning(true, .zero)
  _ = table.heard(device(1), hint: 7, .zero)
  table.linked(device(1), true, after(1))
  #expect(table.expire(after(100)) == [])
  table.linked(device(1), false, after(100))
  #expect(table.expire(after(130)) == [])
  #expect(table.expire(after(131)) == [candidate(1, 7)])
}

@Test func `a newcomer evicts only a silent peer from a full table`() {
  var table = HeardPeers()
  table.scanning(true, .zero)
  for address in 0..<UInt64(HeardPeers.entriesMax) {
    #expect(table.heard(device(address), hint: 0, .zero).found != nil)
  }
  #expect(table.heard(device(1000), hint: 0, after(12)) == .none)
  _ = table.heard(device(0), hint: 0, after(13))
  let change = table.heard(device(1000), hint: 0, after(13))
  #expect(change == .init(lost: candidate(1, 0), found: candidate(1000, 0)))
  #expect(table.count == HeardPeers.entriesMax)
}

/// A table that an attacker fills during the whole time, by advertising under as many addresses as fit.
private func advertised(until seconds: UInt64) -> HeardPeers {
  var table = HeardPeers()
  table.scanning(true, .zero)
  for second in 0...seconds {
    for address in 0..<UInt64(HeardPeers.entriesMax) { _ = table.heard(device(address), hint: 9, after(second)) }
  }
  return table
}

@Test func `a newcomer gets a slot although no peer is ever silent`() {
  var table = advertised(until: 13)
  #expect(table.heard(device(1000), hint: 7, after(13)) == .init(lost: candidate(0, 9), found: candidate(1000, 7)))
  #expect(table.heard(device(1001), hint: 7, after(13)) == .init(lost: candidate(1, 9), found: candidate(1001, 7)))
}

@Test func `a peer whose dial reached no node is evicted at once`() {
  var table = advertised(until: 1)
  #expect(table.heard(device(1000), hint: 7, after(1)) == .none)
  #expect(table.dialled(device(5), after(1)) == nil)
  #expect(table.heard(device(1000), hint: 7, after(1)) == .init(lost: candidate(5, 9), found: candidate(1000, 7)))
}

@Test func `a linked peer is never evicted, and a proven peer only if all others are linked`() {
  var table = advertised(until: 13)
  for address in 0..<UInt64(HeardPeers.entriesMax) {
    if address % 2 == 0 { table.linked(device(address), true, after(13)) } else { table.proved(device(address)) }
    _ = table.dialled(device(address), after(13))
  }
  #expect(table.heard(device(1000), hint: 7, after(13)) == .init(lost: candidate(1, 9), found: candidate(1000, 7)))
  for address in 0..<UInt64(HeardPeers.entriesMax) { table.linked(device(address), true, after(13)) }
  table.linked(device(1000), true, after(13))
  #expect(table.heard(device(1001), hint: 7, after(13)) == .none)
}

@Test func `an unproven peer is evicted before a proven one that was found earlier`() {
  var table = advertised(until: 13)
  table.proved(device(0))
  #expect(table.heard(device(1000), hint: 7, after(13)) == .init(lost: candidate(1, 9), found: candidate(1000, 7)))
}

@Test func `a withheld peer that is evicted is not lost again`() {
  var table = advertised(until: 1)
  for _ in 0..<3 { _ = table.dialled(device(5), after(1)) }
  #expect(table.heard(device(1000), hint: 7, after(1)) == .init(lost: nil, found: candidate(1000, 7)))
}

@Test func `all peers are lost when the adapter goes down`() {
  var table = HeardPeers()
  _ = table.heard(device(1), hint: 7, .zero)
  _ = table.heard(device(2), hint: 8, .zero)
  #expect(table.removeAll(after(1)) == [candidate(1, 7), candidate(2, 8)])
  #expect(table.count == 0)
}

@Test func `a PSM that led to a node is reused for one dial`() {
  var table = HeardPeers()
  _ = table.heard(device(1), hint: 7, .zero)
  table.opened(device(1), psm: 0x81)
  #expect(table.takePSM(device(1)) == nil)
  table.proved(device(1))
  #expect(table.takePSM(device(1)) == 0x81)
  #expect(table.takePSM(device(1)) == nil)
  // The proof shows that the PSM led to a node again, so one more dial may use the PSM.
  table.proved(device(1))
  #expect(table.takePSM(device(1)) == 0x81)
}

@Test func `a device that answers an inquiry is a candidate for Bluetooth classic`() {
  var table = HeardPeers()
  let found = table.heard(WireAddress(classic: 1), hint: 7, .zero).found
  #expect(found == Candidate(bearer: .bluetoothClassic, address: .bluetoothClassic(1), hint: 7))
}

@Test func `a peer is withheld after three dials that reached no node`() {
  var table = HeardPeers()
  _ = table.heard(device(1), hint: 7, .zero)
  #expect(table.dialled(device(1), .zero) == nil)
  #expect(table.dialled(device(1), .zero) == nil)
  #expect(table.dialled(device(1), .zero) == candidate(1, 7))
  // The peer stays withheld for the full 30 s, even if it advertises another hint.
  #expect(table.heard(device(1), hint: 8, after(29)) == .none)
  #expect(table.heard(device(1), hint: 8, after(30)).found == candidate(1, 8))
  #expect(table.heard(device(1), hint: 8, after(31)) == .none)
}

@Test func `the time that a peer is withheld doubles up to half an hour`() {
  var table = HeardPeers()
  _ = table.heard(device(1), hint: 7, .zero)
  for _ in 0..<3 { _ = table.dialled(device(1), .zero) }
  for seconds in [30, 60, 120, 240, 480, 960, 1920, 1920] as [UInt64] {
    #expect(table.heard(device(1), hint: 7, after(seconds - 1)) == .none)
    #expect(table.heard(device(1), hint: 7, after(seconds)).found != nil)
    _ = table.dialled(device(1), .zero)
  }
}

@Test func `a peer whose node has proved its key is no longer withheld`() {
  var table = HeardPeers()
  _ = table.heard(device(1), hint: 7, .zero)
  for _ in 0..<3 { _ = table.dialled(device(1), .zero) }
  table.proved(device(1))
  #expect(table.heard(device(1), hint: 7, after(1)).found == candidate(1, 7))
  #expect(table.dialled(device(1), after(1)) == nil)
}

@Test func `in a full table of proven peers, the one found first is evicted for a newcomer`() {
  var table = HeardPeers()
  for number in 1...64 {
    _ = table.heard(device(UInt64(number)), hint: UInt64(number), .zero)
    table.proved(device(UInt64(number)))
  }
  table.linked(device(1), true, .zero)
  #expect(table.heard(device(100), hint: 100, after(1)) == .init(lost: candidate(2, 2), found: candidate(100, 100)))
  // The newcomer is unproven, so no further proven peer gives way to a flood of addresses.
  for number in 101...200 { #expect(table.heard(device(UInt64(number)), hint: 0, after(2)) == .none) }
}
