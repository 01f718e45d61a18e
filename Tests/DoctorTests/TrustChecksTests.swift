import CSystem
import Configuration
import Doctor
import FileSupport
import Identity
import Testing

/// The doctor's checks of trust: which peers this box accepts, and whether peers accept this box.
struct TrustChecksTests {
  let patient: Patient
  private let anchors = "/etc/causeway/anchors"

  init() throws {
    patient = try Patient()
    patient.configuration.trust.policy = .authority
  }

  private func put(_ scratch: Scratch, _ files: [String], at path: String) throws {
    try patient.write(path, String(decoding: files.flatMap { scratch.bytes($0) ?? [] }, as: UTF8.self))
    try #require(chmod(patient.root.path + path, 0o600) == 0)
  }

  private func complaints() throws -> [String] {
    try patient.complaints().filter {
      $0.contains(" anchors: ") || $0.contains(" identity: ") || $0.contains(" trust-state: ")
    }
  }

  @Test func `anchors that are fully understood cause no complaint`() throws {
    let scratch = Scratch()
    try scratch.makeFleet()
    try scratch.revocationList("list", by: "root", revoking: [])
    try put(scratch, ["root.pem", "list.crl"], at: anchors + "/root.pem")
    try put(scratch, ["node.pem.key", "node.pem", "intermediate.pem"], at: "/var/lib/causeway/node.key")
    #expect(try complaints() == [])
  }

  @Test func `an unreadable anchor file is wrong only under the policy that needs it`() throws {
    try patient.write(anchors + "/list.pem", "\n-----BEGIN X509 CRL-----\nAAAA\n")
    let text = "\(patient.root.path)\(anchors)/list.pem:2: its END line is missing: the file is truncated"
    #expect(try complaints() == ["wrong anchors: \(text); no certificate is accepted"])
    patient.configuration.trust.policy = .open
    #expect(try complaints() == ["note anchors: \(text)"])
  }

  @Test func `files that the daemon's user may not read are wrong`() throws {
    let file = "/etc/causeway/causeway.conf"
    for path in [file, anchors + "/root.pem"] {
      try patient.write(path, "")
      try #require(chmod(patient.root.path + path, 0o640) == 0 && chown(patient.root.path + path, 0, 4243) == 0)
    }
    try patient.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\ncauseway:x:4242:4242::/:/bin/false\n")
    try patient.write("/etc/group", "causeway:x:4242:\ncauseway-config:x:4243:anna,causeway\n")
    #expect(try patient.denied(file) == [], "the daemon runs as root")
    try #require(chown(patient.root.path + patient.configuration.node.stateDirectory, 4242, 4242) == 0)
    #expect(try patient.denied(file) == [], "a member of the group may read them")
    try patient.write("/etc/group", "causeway:x:4242:\ncauseway-config:x:4243:anna\n")
    let text = "the daemon's user causeway may not read it"
    #expect(try patient.denied(file) == ["configuration: \(file): \(text)"])
    #expect(try patient.denied(nil) == ["anchors: \(anchors)/root.pem: \(text)"])
    try #require(chmod(patient.root.path + anchors, 0o700) == 0)
    #expect(try patient.denied(nil) == ["anchors: \(anchors): \(text)"])
    patient.configuration.trust.policy = .open
    #expect(try patient.denied(nil) == [])
    try patient.remove(patient.configuration.node.stateDirectory)
    #expect(try patient.denied(file) == ["configuration: \(file): \(text)"], "before the first start")
    #expect(geteuid() == 0)
  }

  @Test func `a missing anchor is wrong under the policy that needs one`() throws {
    #expect(
      try complaints().first?.hasPrefix("wrong anchors: [trust] policy is ca, but \(anchors) has no certificate")
        == true)
    patient.configuration.trust.policy = .open
    #expect(try complaints() == [])
  }

  @Test func `an expired revocation list is reported`() throws {
    let scratch = Scratch()
    try scratch.certificate("root", extensions: Scratch.authority)
    try scratch.revocationList(
      "list", by: "root", revoking: [], days: "-crl_lastupdate 20260101000000Z -crl_nextupdate 20260201000000Z")
    try put(scratch, ["root.pem", "list.crl"], at: anchors + "/root.pem")
    #expect(
      try complaints() == [
        "note anchors: the revocation list of CN=root was due for replacement on 2026-02-01: certificates "
          + "revoked since then are accepted"
      ])
  }

  @Test func `a revocation list of an unknown authority is reported`() throws {
    let scratch = Scratch()
    try scratch.makeFleet()
    try scratch.revocationList("list", by: "intermediate", revoking: [])
    try put(scratch, ["root.pem", "list.crl"], at: anchors + "/root.pem")
    #expect(
      try complaints() == [
        "note anchors: the revocation list of CN=intermediate belongs to no authority in the anchors directory: it "
          + "applies only below an authority of exactly this name that peers present"
      ])
    // The box's own certificate chain contains the authority of the list, so the list can be verified.
    try put(scratch, ["node.pem.key", "node.pem", "intermediate.pem"], at: "/var/lib/causeway/node.key")
    #expect(try complaints() == [])
  }

  @Test func `a revocation list that cannot be verified is wrong`() throws {
    let scratch = Scratch()
    try scratch.makeFleet()
    try scratch.revocationList("list", by: "root", revoking: [])
    try put(scratch, ["intermediate.pem", "list.crl"], at: anchors + "/root.pem")
    let lines = try #require(scratch.bytes("intermediate.pem")).count { $0 == 0x0A }
    #expect(
      try complaints() == [
        "wrong anchors: \(patient.root.path)\(anchors)/root.pem:\(lines + 1): the revocation list of CN=root, which issued "
          + "an anchor, cannot be verified without that authority's certificate; put it into the directory; no certificate "
          + "below that authority is accepted"
      ])
  }

  @Test func `a revocation list with a wrong signature is wrong`() throws {
    let scratch = Scratch()
    try scratch.makeFleet()
    try scratch.certificate("false", extensions: Scratch.authority, subject: "root")
    try scratch.revocationList("list", by: "false", revoking: [])
    try put(scratch, ["list.crl", "root.pem"], at: anchors + "/root.pem")
    #expect(
      try complaints() == [
        "wrong anchors: \(patient.root.path)\(anchors)/root.pem:1: the revocation list of CN=root is not signed by that "
          + "authority; get the list again, or add the certificate of the key that signed it; no certificate below that "
          + "authority is accepted"
      ])
  }

  @Test func `a chain that no peer accepts is wrong`() throws {
    let scratch = Scratch()
    try scratch.certificate("ca0", extensions: Scratch.authority)
    var files = ["ca0.pem"]
    for depth in 1..<9 {
      try scratch.certificate("ca\(depth)", by: "ca\(depth - 1)", extensions: Scratch.authority)
      files.insert("ca\(depth).pem", at: 0)
    }
    try scratch.certificate("leaf", by: "ca8", extensions: Scratch.node)
    patient.configuration.trust.policy = .open
    try put(scratch, ["leaf.pem.key", "leaf.pem"] + files, at: "/var/lib/causeway/node.key")
    #expect(
      try complaints() == [
        "wrong identity: this box's certificates: more than 8 certificates above the node's own; omit the root, which "
          + "peers have; every peer refuses them"
      ])
  }

  @Test func `a chain that peers with another policy accept is wrong or noted`() throws {
    let scratch = Scratch()
    try scratch.makeFleet()
    patient.configuration.trust.policy = .open
    try put(scratch, ["node.pem.key", "node.pem"], at: "/var/lib/causeway/node.key")
    #expect(
      try complaints() == [
        "note identity: this box's chain lacks its issuer, CN=intermediate: peers with policy ca accept this box only if "
          + "they have the issuer's certificate as an anchor"
      ])
    try scratch.certificate("false", by: "root", extensions: Scratch.authority, subject: "intermediate")
    try put(scratch, ["node.pem.key", "node.pem", "false.pem"], at: "/var/lib/causeway/node.key")
    #expect(try complaints().first?.hasPrefix("wrong identity: this box's certificates: the signature of a") == true)
    #expect(try complaints().count == 1)
  }

  @Test func `the doctor reports a lost state file as an error`() throws {
    _ = try NodeIdentity.loadOrCreate(directory: patient.root.path + "/var/lib/causeway")
    patient.configuration.trust.policy = .open
    #expect(try complaints() == [])
    try patient.write("/var/lib/causeway/state", "torn")
    #expect(try complaints().first?.contains("state: damaged or unreadable, and so is ") == true)
  }
}
