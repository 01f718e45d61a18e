import CSystem
import Configuration
import FileSupport
import Identity
import Journal
import Primitives
import SecureTransport
import Testing
import Trust

@testable import Relay

/// A reload decides about trust what a start would decide with the same files.
@Suite struct ReloadTests {
  private final class Box {
    let scratch = Scratch()
    var configuration = Configuration()
    private(set) var keeper: TrustKeeper!

    /// A box with an authority and no list. The authority has issued `node` and `intermediate`.
    init(policy: String = "ca") throws {
      try scratch.makeFleet()
      try #require(mkdir(scratch.file("anchors"), 0o755) == 0)
      try scratch.write("anchors/root.pem", scratch.bytes("root.pem")!)
      try scratch.certificate("bad", by: "root", extensions: Scratch.node)
      try scratch.certificate("good", by: "root", extensions: Scratch.node)
      try configure(policy: policy)
      configuration = try Configuration.load(path: scratch.file("box.conf"))
      keeper = try start()
    }

    func configure(policy: String = "ca", anchors: String = "anchors", _ text: String = "") throws {
      try scratch.write("box.conf", "[trust]\npolicy = \(policy)\nanchors = \(scratch.file(anchors))\n\(text)")
    }

    /// The trust of a start with the present files.
    func start() throws -> TrustKeeper {
      TrustKeeper(
        try NodeIdentity.loadOrCreate(directory: scratch.path), try TrustStore(StateDirectory(scratch.path)),
        configuration.trust)
    }

    func reload() -> Reload { Reload(scratch.file("box.conf"), &configuration, keeper) }

    func refusal(of name: String, by keeper: TrustKeeper? = nil) throws -> PeerRefusal? {
      try scratch.openssl("x509 -in \(name).pem -outform DER -out \(name).der")
      var refusal: PeerRefusal?
      PeerChain.withDER([scratch.bytes("\(name).der")!]) {
        refusal = (keeper ?? self.keeper).refusal(of: $0, NodeID(high: 1, low: 2))
      }
      return refusal
    }

    func list(_ name: String, revoking names: [String]) throws {
      try scratch.revocationList(name, by: "root", revoking: names)
      try scratch.write("anchors/\(name).crl", scratch.bytes("\(name).crl")!)
    }
  }

  @Test func `a new list applies, and the reload succeeds`() throws {
    let box = try Box()
    #expect(try box.refusal(of: "bad") == nil)
    try box.list("list", revoking: ["bad"])
    let reload = box.reload()
    #expect(reload.isDone && reload.isRead && reload.text == "reloaded: 1 anchors, 1 revocation lists")
    #expect(try box.refusal(of: "bad") == .revoked && box.refusal(of: "good") == nil)
  }

  @Test func `an unreadable anchor file excludes every certificate, as after a start`() throws {
    let box = try Box()
    try box.list("list", revoking: ["bad"])
    try box.scratch.write("anchors/README", "The lists of the fleet.\n")
    let reload = box.reload()
    #expect(!reload.isDone && reload.isRead && reload.text.contains("anchors/README: contains neither"))
    let started = try box.start()
    #expect(box.keeper.anchorFault == started.anchorFault && started.anchorFault != nil)
    for keeper in [box.keeper!, started] {
      #expect(try box.refusal(of: "good", by: keeper) == .revocationUnknown)
      #expect(try box.refusal(of: "bad", by: keeper) == .revocationUnknown)
    }
    try box.scratch.remove("anchors/README")
    #expect(box.reload().isDone)
    #expect(try box.refusal(of: "bad") == .revoked && box.refusal(of: "good") == nil)
  }

  @Test func `an invalid configuration changes no setting, but the anchors are read`() throws {
    let box = try Box()
    try box.configure("[journal]\nlevel = debug\nlevl = loud\n")
    try box.list("list", revoking: ["bad"])
    let reload = box.reload()
    #expect(!reload.isDone && !reload.isRead && reload.text.hasPrefix("not reloaded: "))
    #expect(reload.text.hasSuffix("; [trust] anchors apply nevertheless: 1 anchors, 1 revocation lists"))
    #expect(box.configuration.journal.level == Configuration().journal.level)
    #expect(try box.refusal(of: "bad") == .revoked && box.refusal(of: "good") == nil)
  }

  @Test func `no certificate is accepted without the directory of anchors`() throws {
    let box = try Box()
    try box.configure(anchors: "none")
    let reload = box.reload()
    #expect(!reload.isDone && reload.isRead && reload.text.contains("there is no authority's certificate"))
    #expect(try box.refusal(of: "good") == .unknownIssuer)
  }

  @Test func `a fault of the anchors is a warning under a policy that does not need them`() throws {
    let box = try Box(policy: "open")
    try box.scratch.write("anchors/README", "The lists of the fleet.\n")
    #expect(box.reload().isDone && box.keeper.anchorWarnings.count == 1)
    #expect(try box.refusal(of: "good") == nil)
  }

  @Test func `changed keys that apply at the next start are listed`() throws {
    let box = try Box()
    try box.configure("[journal]\nlevel = debug\n[ip]\nloopback = yes\n")
    let reload = box.reload()
    #expect(reload.isDone && reload.text.hasSuffix("; these apply at the next start: [ip] loopback"))
    #expect(box.configuration.journal.level == .debug)
  }
}
