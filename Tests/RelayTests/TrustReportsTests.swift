import CSystem
import FileSupport
import Identity
import Journal
import Primitives
import Testing
import Trust

@testable import Relay

@Suite struct TrustReportsTests {
  private final class Watch {
    var isSynchronised = false
  }

  private let scratch = Scratch()

  private func reports(_ watch: Watch = Watch()) throws -> (TrustReports, TrustKeeper) {
    let directory = try StateDirectory(scratch.path)
    let keeper = TrustKeeper(
      try NodeIdentity.loadOrCreate(directory: scratch.path), try TrustStore(directory), policy: .firstUse,
      anchors: TrustAnchors(), operators: [], clock: { (TrustTime.releaseSeconds + 1000, watch.isSynchronised) })
    return (TrustReports(keeper, .none, FaultReports(.none, now: { .zero }) { _, _ in }), keeper)
  }

  @Test func `a new deny-list requests one check of the links`() throws {
    let (reports, keeper) = try reports()
    #expect(!reports.report(.zero))
    try keeper.revoke(NodeID(high: 1, low: 2))
    #expect(reports.report(.zero))
    #expect(!reports.report(.zero))
  }

  @Test func `the synchronisation of the clock is reported once`() throws {
    let watch = Watch()
    let (reports, _) = try reports(watch)
    #expect(!reports.clockBecameSynchronised())
    watch.isSynchronised = true
    #expect(reports.clockBecameSynchronised())
    #expect(!reports.clockBecameSynchronised())
  }

  @Test func `the status counts pins and revocations`() throws {
    let (reports, keeper) = try reports()
    _ = try keeper.pin(NodeID(high: 1, low: 2), named: Array("anna".utf8))
    try keeper.revoke(NodeID(high: 3, low: 4))
    #expect(reports.text.hasSuffix("1 pinned, 1 revoked"))
    #expect(reports.alarm.isEmpty && reports.alarms.isEmpty && reports.strangers.isEmpty)
  }
}
