import CSystem
import Explain
import FileSupport
import Identity
import Journal
import Primitives
import Reactor
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

  /// The reason of the only refused node in the status.
  private func reason(_ reports: TrustReports) -> String {
    #expect(reports.strangers.count == 1)
    return reports.strangers.first?.reason ?? ""
  }

  @Test func `the reason of a refused name points to a command that knows the node`() throws {
    let (reports, keeper) = try reports()
    let pinned = NodeID(high: 1, low: 2), other = NodeID(high: 3, low: 4), name = Array("anna".utf8)
    _ = try keeper.pin(pinned, named: name)
    #expect(keeper.refusal(of: other, named: name, proof: nil) == .keyChanged)
    #expect(reports.alarms.isEmpty && reason(reports).hasSuffix("see: causeway explain \(other.shortText)"))
    let proof = KeyProof(from: 1, over: .ethernet, at: .zero)
    #expect(keeper.refusal(of: other, named: name, proof: proof) == .keyChanged)
    #expect(reports.alarms.count == 1 && reason(reports).hasSuffix("see: causeway identity alarms"))
    #expect(try keeper.keep(other) == 1)
    #expect(reason(reports).hasSuffix("see: causeway explain \(other.shortText)"))
  }

  @Test func `a refusal is a fault of trust only while it is in force`() throws {
    let (_, keeper) = try reports()
    let loop = try EventLoop()
    let contacts = ContactRecorder(loop, try makeNode(keeper.identity, now: loop.now), keeper)
    let pinned = NodeID(high: 1, low: 2), other = NodeID(high: 3, low: 4), name = Array("anna".utf8)
    _ = try keeper.pin(pinned, named: name)
    #expect(keeper.refusal(of: other, named: name, proof: nil) == .keyChanged)
    #expect(contacts.trustFault(other) == .otherKeyPinned)
    _ = try keeper.unpin(pinned, name: [])
    #expect(keeper.strangers.all.count == 1 && contacts.trustFault(other) == nil)
  }
}
