import FileSupport
import Primitives
import Seal
import Testing

@testable import Identity
@testable import SecureTransport

/// The extensions of a certificate, and whether a node with this certificate is accepted as a client and as a server.
private let cases: [(extensions: String, client: Bool, server: Bool)] = [
  ("", true, true), ("keyUsage=digitalSignature", true, true), (Scratch.node, true, true),
  ("extendedKeyUsage=anyExtendedKeyUsage", true, true), ("extendedKeyUsage=clientAuth", true, false),
  ("extendedKeyUsage=serverAuth", false, false), ("extendedKeyUsage=codeSigning", false, false),
  ("keyUsage=keyAgreement", false, false),
  ("keyUsage=keyAgreement\nextendedKeyUsage=clientAuth,serverAuth", false, false),
  ("keyUsage=digitalSignature\nextendedKeyUsage=serverAuth", false, false),
]

/// The requirements that every peer has for a certificate, whatever its trust policy. The requirements are the same for
/// TLS 1.2, TLS 1.3 and DTLS, and for clients and servers.
struct UsageTests {
  let scratch = Scratch()

  /// A node whose self-signed certificate has the given extensions.
  private func node(_ extensions: String, _ name: String = "node") throws -> NodeIdentity {
    try scratch.certificate(name, extensions: extensions)
    return try stored(name, [name + ".pem"])
  }

  /// A node with the key of a certificate and the given chain. The node is loaded from a file, as a daemon does.
  private func stored(_ name: String, _ chain: [String]) throws -> NodeIdentity {
    _ = shell("mkdir -p -m 700 \(scratch.file("state"))")
    try scratch.openssl("ec -in \(name).pem.key -out state/node.key")
    let key = try #require(scratch.bytes("state/node.key"))
    try scratch.write("state/node.key", key + chain.flatMap { scratch.bytes($0) ?? [] })
    try scratch.chmod("state/node.key", 0o600)
    return try NodeIdentity.loadOrCreate(directory: scratch.file("state"))
  }

  /// The states of both ends after a handshake between the node and an ordinary node: the end of the node, and that of
  /// its peer.
  private func ends(
    _ node: NodeIdentity, as role: SecureStream.Role, _ version: TLSVersion
  ) throws -> (own: SecureStream.State, peer: SecureStream.State) {
    let own = try End(node, role, version),
      peer = try End(try makeIdentity(), role == .client ? .server : .client, version)
    while !own.stream.outgoing.isEmpty || !peer.stream.outgoing.isEmpty {
      peer.receive(own.take())
      own.receive(peer.take())
    }
    return (own.stream.state, peer.stream.state)
  }

  @Test(arguments: cases.indices, [TLSVersion.tls12, .tls13])
  func `the key usage of a certificate is checked in both TLS versions and roles`(index: Int, version: TLSVersion)
    throws
  {
    let (extensions, isClient, isServer) = cases[index]
    let node = try node(extensions)
    let client = try ends(node, as: .client, version)
    #expect(client.peer == (isClient ? .established : .closed(.refused(.wrongUsage))), "\(extensions)")
    #expect(client.own == (isClient ? .established : .closed(.alert(43))), "\(extensions)")
    // A server presents no certificate if its certificate may not be used for signatures.
    let server = try ends(node, as: .server, version)
    #expect((server.peer == .established) == isServer && (server.own == .established) == isServer, "\(extensions)")
    if extensions.contains("=serverAuth") { #expect(server.peer == .closed(.refused(.wrongUsage)), "\(extensions)") }
    #expect((node.chainFault == nil) == isClient && node.isForServers == isServer)
  }

  @Test(arguments: cases.indices)
  func `the key usage of a certificate is checked in encrypted sessions`(index: Int) throws {
    let (extensions, isClient, isServer) = cases[index]
    let node = try node(extensions)
    for (isNodeClient, isAllowed) in [(true, isClient), (false, isServer)] {
      var other = try makeIdentity()
      while (node.id < other.id) != isNodeClient { other = try makeIdentity() }
      let path = try Path(between: [node, other])
      path.begin()
      let peer = { isNodeClient ? path.server?.state : path.client?.state }
      path.run { peer() ?? .handshaking == .handshaking }
      #expect((peer() == .established) == isAllowed, "\(extensions), client \(isNodeClient)")
      if isNodeClient && !isAllowed { #expect(peer() == .failed(.noIdentity)) }
    }
  }

  // MARK: Certificate chains

  /// A chain of `count` certificates: the node's certificate, intermediates, and the root if `withRoot`.
  private func chain(_ count: Int, withRoot: Bool) throws -> [String] {
    try scratch.certificate("root", extensions: Scratch.authority)
    var files = withRoot ? ["root.pem"] : []
    var issuer = "root"
    while files.count < count - 1 {
      let name = "ca\(files.count)"
      try scratch.certificate(name, by: issuer, extensions: Scratch.authority)
      files.insert(name + ".pem", at: 0)
      issuer = name
    }
    try scratch.certificate("leaf", by: issuer, extensions: Scratch.node)
    return ["leaf.pem"] + files
  }

  @Test(arguments: [8, 9, 10, 11], [false, true])
  func `a chain is imported only if peers accept it`(count: Int, withRoot: Bool) throws {
    let files = try chain(count, withRoot: withRoot)
    let node = try stored("leaf", files)
    for version in [TLSVersion.tls12, .tls13] {
      for role in [SecureStream.Role.client, .server] {
        let (_, peer) = try ends(node, as: role, version)
        #expect((peer == .established) == (count <= 9), "\(count) as \(role) in \(version): \(peer)")
      }
    }
    #expect((node.chainFault == nil) == (count <= 9))
    let file = ["leaf.pem.key"] + files
    let bytes = file.flatMap { scratch.bytes($0) ?? [] }
    do throws(IdentityError) {
      let imported = try NodeIdentity.importing(
        bytes, path: "chain.pem", password: [], at: Scratch.june, into: StateDirectory(scratch.file("imported")))
      #expect(count <= 9 && imported.chainFault == nil)
    } catch {
      #expect(count > 9 && error.text.contains("more than 8 certificates"), "\(error.text)")
      #expect(scratch.bytes("imported/node.key") == nil)
    }
  }

  @Test func `an encrypted key beside its certificate is imported`() throws {
    try scratch.certificate("secret", extensions: Scratch.node)
    try scratch.openssl("ec -in secret.pem.key -aes256 -passout pass:secret -out encrypted.key")
    let bytes = ["secret.pem", "encrypted.key"].flatMap { scratch.bytes($0) ?? [] }
    try #require(String(decoding: bytes, as: UTF8.self).contains("DEK-Info: "))
    let node = try NodeIdentity.importing(
      bytes, path: "secret.pem", password: Array("secret".utf8), at: Scratch.june,
      into: StateDirectory(scratch.file("imported")))
    #expect(node.chainFault == nil)
  }

  @Test func `a certificate for another use is imported with a warning`() throws {
    try scratch.certificate("server", extensions: "extendedKeyUsage=serverAuth")
    let bytes = ["server.pem.key", "server.pem"].flatMap { scratch.bytes($0) ?? [] }
    let node = try NodeIdentity.importing(
      bytes, path: "server.pem", password: [], at: Scratch.june, into: StateDirectory(scratch.file("imported")))
    #expect(node.chainFault?.contains("does not allow this use") == true)
  }

  @Test func `a chain with too many names is not imported`() throws {
    let names = (0..<260).map { "DNS:n\($0)" }.joined(separator: ",")
    let node = try node("subjectAltName=\(names)")
    let (own, peer) = try ends(node, as: .client, .tls13)
    #expect(peer == .closed(.refused(.chainTooLong)) && own == .closed(.alert(42)))
    #expect(node.chainFault?.contains("256 names") == true)
    let bytes = ["node.pem.key", "node.pem"].flatMap { scratch.bytes($0) ?? [] }
    #expect(throws: IdentityError.self) {
      try NodeIdentity.importing(
        bytes, path: "names.pem", password: [], at: Scratch.june, into: StateDirectory(scratch.file("imported")))
    }
  }

  @Test func `a certificate with an unknown critical extension is refused with its name`() throws {
    for (extensions, name) in [
      ("certificatePolicies=critical,1.3.6.1.4.1.40732.1.1", "2.5.29.32 (certificatePolicies)"),
      ("1.2.3.4=critical,DER:05:00", "1.2.3.4"), ("2.999.3=critical,DER:05:00", "2.999.3"),
      ("policyConstraints=critical,requireExplicitPolicy:0", "2.5.29.36 (policyConstraints)"),
    ] {
      try scratch.certificate("odd", extensions: Scratch.node + "\n" + extensions)
      let bytes = ["odd.pem.key", "odd.pem"].flatMap { scratch.bytes($0) ?? [] }
      #expect(throws: IdentityError.unknownCriticalExtension(path: "odd.pem", name: name)) {
        try NodeIdentity.importing(
          bytes, path: "odd.pem", password: [], at: Scratch.june, into: StateDirectory(scratch.file("imported")))
      }
    }
    // The only certificate policy that is supported is anyPolicy.
    try scratch.certificate("any", extensions: Scratch.node + "\ncertificatePolicies=critical,2.5.29.32.0")
    let bytes = ["any.pem.key", "any.pem"].flatMap { scratch.bytes($0) ?? [] }
    let node = try NodeIdentity.importing(
      bytes, path: "any.pem", password: [], at: Scratch.june, into: StateDirectory(scratch.file("imported")))
    #expect(try ends(node, as: .client, .tls13).peer == .established)
  }
}
