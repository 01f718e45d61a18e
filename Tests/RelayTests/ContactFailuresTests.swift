import Bearer
import Explain
import Primitives
import Testing

@testable import Relay

/// The failed dials and handshakes that the relay remembers.
struct ContactFailuresTests {
  var failures = ContactFailures()
  let now = Instant.zero + .seconds(100)

  private func address(_ host: UInt32) -> RemoteAddress {
    .ip(IPEndpoint(high: 0, low: 0xFFFF_0000_0000 | UInt64(host), port: 41_820, scope: 0))
  }

  private func node(_ number: UInt64) -> NodeID { NodeID(high: number, low: 1) }

  @Test mutating func `the last failure per address and bearer is kept, with the number of failures in a row`() {
    for _ in 0..<3 {
      failures.note(.none, .ethernet, address(1), isInbound: false, .dialFailed("no"), now: .zero)
    }
    #expect(failures.all(now: now).map { $0.count } == [3] && failures.all(now: now)[0].secondsAgo == 100)
    failures.note(.none, .ethernet, address(1), isInbound: false, .handshakeTimedOut, now: now)
    failures.note(.none, .wifi, address(1), isInbound: false, .silent, now: now)
    #expect(failures.all(now: now).map { $0.cause } == [.silent, .handshakeTimedOut])
  }

  @Test mutating func `a later failed dial is attributed to the node once proved at that address`() {
    failures.note(node(7), .ethernet, address(1), isInbound: false, .refusedThere(alert: 48), now: .zero)
    failures.note(.none, .ethernet, address(1), isInbound: false, .dialFailed("no"), now: now)
    failures.note(NodeID(high: 7, low: 0), .ethernet, address(1), isInbound: false, .dialFailed("no"), now: now)
    #expect(failures.all(now: now).map { $0.node } == [node(7)])
  }

  @Test mutating func `a caller that has proved no key leaves no entry`() {
    failures.note(.none, .ethernet, address(1), isInbound: true, .handshakeTimedOut, now: .zero)
    #expect(failures.all(now: now).isEmpty)
  }

  @Test mutating func `callers with new keys use at most half of the slots`() {
    for number in 0..<UInt32(8) {
      failures.note(.none, .ethernet, address(number), isInbound: false, .silent, now: .zero)
    }
    for number in 1..<UInt64(200) {
      failures.note(node(number), .ethernet, address(9), isInbound: true, .refusedHere(.revoked), now: .zero)
    }
    let all = failures.all(now: now)
    #expect(all.count == 8 + ContactFailures.entriesMax / 2 && all.count { $0.node == .none } == 8)
  }

  @Test mutating func `a caller with many keys does not evict the failure of another caller`() {
    failures.note(node(500), .ethernet, address(8), isInbound: true, .refusedHere(.revoked), now: .zero)
    for number in 1..<UInt64(200) {
      failures.note(node(number), .ethernet, address(9), isInbound: true, .refusedHere(.revoked), now: .zero)
    }
    #expect(failures.all(now: now).contains { $0.node == node(500) })
  }

  @Test mutating func `announced addresses of one network do not evict failures over other bearers`() {
    failures.note(.none, .wifi, address(1), isInbound: false, .silent, now: .zero)
    for number in 2..<UInt32(200) {
      failures.note(.none, .ethernet, address(number), isInbound: false, .dialFailed("no"), now: .zero)
    }
    #expect(failures.all(now: now).contains { $0.bearer == .wifi })
  }

  @Test mutating func `a failure of a pinned node stays, even after later dials to its address`() {
    failures.note(node(7), .ethernet, address(1), isInbound: false, isPinned: true, .silent, now: .zero)
    failures.note(.none, .ethernet, address(1), isInbound: false, .dialFailed("no"), now: .zero)
    for number in 2..<UInt32(200) {
      failures.note(.none, .ethernet, address(number), isInbound: false, .dialFailed("no"), now: .zero)
    }
    #expect(failures.all(now: now).contains { $0.node == node(7) })
  }

  @Test mutating func `the oldest failure is evicted, and a long reason is truncated`() {
    let long = String(repeating: "x", count: 1_000)
    for number in 0..<UInt32(100) {
      failures.note(.none, .ethernet, address(number), isInbound: false, .dialFailed(long), now: .zero)
    }
    let all = failures.all(now: now)
    #expect(all.count == ContactFailures.entriesMax)
    guard case .dialFailed(let text) = all[0].cause else { Issue.record("another cause"); return }
    #expect(text.utf8.count == ContactFailures.reasonBytesMax)
    #expect(all[0].address == "0.0.0.99:41820")
  }
}
