import Primitives
import Testing

@testable import Session

/// Which table message is due to one member, without sessions, handshakes or signatures.
@Suite struct TableSyncTests {
  private let start = Instant.zero + .seconds(1000)

  private func digest(_ byte: UInt8) -> TableDigest { TableDigest(InlineArray(repeating: byte)) }

  /// A table with this digest that has been unchanged since the start.
  private func own(_ byte: UInt8, sequence: UInt64 = 5, changedAt: Instant = .zero) -> TableSync.State {
    TableSync.State(digest: digest(byte), sequence: sequence, changedAt: changedAt)
  }

  /// The next message of the synchronisation, noted as sent.
  private func send(_ sync: inout TableSync, _ own: TableSync.State, _ now: Instant) -> TableSync.Message? {
    let message = sync.nextMessage(own, now)
    if let message { sync.sent(message, own, now) }
    return message
  }

  @Test func `no message is sent to a new member until something changes`() {
    var sync = TableSync()
    #expect(sync.nextMessage(own(1), start) == nil)
    #expect(sync.nextDeadline(after: start) == .never)
  }

  @Test func `a delta contains the records since the last message`() {
    var sync = TableSync()
    sync.scheduleDelta(at: start)
    #expect(send(&sync, own(1, sequence: 5), start) == .delta(since: 0))
    #expect(send(&sync, own(1, sequence: 5), start) == nil)
    sync.scheduleDelta(at: start)
    #expect(send(&sync, own(2, sequence: 8), start) == .delta(since: 5))
  }

  @Test func `after the start of a handshake a delta contains all records`() {
    var sync = TableSync()
    sync.scheduleDelta(at: start)
    _ = send(&sync, own(1), start)
    sync.begin()
    sync.scheduleDelta(at: start)
    #expect(send(&sync, own(1), start) == .delta(since: 0))
  }

  @Test func `an unchanged digest is not sent again`() {
    var sync = TableSync()
    sync.scheduleDigest(at: start)
    #expect(send(&sync, own(1), start) == .digest)
    sync.scheduleDigest(at: start)
    #expect(send(&sync, own(1), start) == nil)
    sync.scheduleDigest(at: start)
    #expect(send(&sync, own(2), start) == .digest)
  }

  @Test func `a member with the same digest needs no table`() {
    var sync = TableSync()
    sync.receive(digest(1), own(1), start)
    #expect(sync.nextDeadline(after: start) == .never)
    sync.scheduleDigest(at: start)
    #expect(send(&sync, own(1), start) == nil, "the member knows this digest")
  }

  @Test func `a member with another digest receives a snapshot after a pause`() {
    var sync = TableSync()
    sync.receive(digest(2), own(1), start)
    #expect(send(&sync, own(1), start) == nil)
    let due = sync.nextDeadline(after: start)
    #expect(due == start + SessionLimits.askPause * 2)
    #expect(send(&sync, own(1), due) == .snapshot)
  }

  @Test func `a digest that was sent before does not cancel the snapshot to a member with another digest`() {
    var sync = TableSync()
    sync.scheduleDigest(at: start)
    #expect(send(&sync, own(1), start) == .digest)
    sync.receive(digest(2), own(1), start)
    sync.scheduleDigest(at: start)
    #expect(send(&sync, own(1), start) == nil)
    #expect(send(&sync, own(1), start + SessionLimits.askPause * 2) == .snapshot)
  }

  @Test func `a digest that is sent meanwhile does not cancel the snapshot to a member with another digest`() {
    var sync = TableSync()
    sync.receive(digest(2), own(1), start)
    sync.scheduleDigest(at: start)
    #expect(send(&sync, own(1), start) == .digest)
    #expect(send(&sync, own(1), start + SessionLimits.askPause * 2) == .snapshot)
  }

  @Test func `a pending snapshot is cancelled if the member's table becomes equal`() {
    var sync = TableSync()
    sync.receive(digest(2), own(1), start)
    sync.receive(digest(1), own(1), start)
    #expect(send(&sync, own(1), start + .seconds(60)) == nil)
  }

  @Test func `an unchanged snapshot is repeated only after the long interval`() {
    var sync = TableSync()
    sync.receive(digest(2), own(1), start)
    let first = start + SessionLimits.askPause * 2
    #expect(send(&sync, own(1), first) == .snapshot)
    sync.receiveRequest(own(1), first)
    #expect(send(&sync, own(1), first + SessionLimits.tableTime) == nil)
    #expect(send(&sync, own(1), first + SessionLimits.sameTableTime) == .snapshot)
  }

  @Test func `a requested snapshot is not postponed by changes of the table`() {
    var sync = TableSync()
    sync.receive(digest(2), own(1, changedAt: start), start)
    sync.receiveRequest(own(1, changedAt: start), start)
    #expect(send(&sync, own(1, changedAt: start), start) == .snapshot)
  }

  @Test func `after a change the digest is sent first, and the snapshot only to a member that differs`() {
    var sync = TableSync()
    sync.receive(digest(2), own(1), start)
    let changed = own(3, sequence: 6, changedAt: start + .seconds(1))
    #expect(send(&sync, changed, start + .seconds(1)) == nil, "the table may change again")
    let rests = start + .seconds(1) + SessionLimits.quietTime
    #expect(send(&sync, changed, rests) == .digest)
    sync.receive(digest(2), changed, rests)
    #expect(send(&sync, changed, rests + SessionLimits.askPause * 2) == .snapshot)
  }

  @Test func `a lost member keeps only the pending delta`() {
    var sync = TableSync()
    sync.receive(digest(2), own(1), start)
    sync.scheduleDigest(at: start)
    sync.scheduleDelta(at: start)
    sync.lose()
    #expect(send(&sync, own(1), start) == .delta(since: 0))
    #expect(send(&sync, own(1), start + .seconds(60)) == nil)
  }
}
