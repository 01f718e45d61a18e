import CMbedTLS
import CNettle
import CSystem
import Primitives

/// The identity of this node: an ECDSA P-256 key, and its certificate for TLS.
///
/// The file `node.key` (PEM, mode 0600) contains the private key, followed by the certificate chain that begins with
/// the key's own certificate. The key defines the node, so a box with a copied card has the same identity as the
/// original. A self-signed certificate adds nothing to the key, and is generated again from the key if it is missing.
/// `importing` installs a chain that an operator's authority issued. Alternatively, the chain is in the file `node.crt`
/// in the directory of the key.
public final class NodeIdentity {
  /// The node id: the first 16 bytes of SHA-256 over the key's SubjectPublicKeyInfo.
  public let id: NodeID
  /// The public key: 0x04, then x and y (SEC 1, uncompressed).
  public let publicPoint: InlineArray<65, UInt8>

  /// One line of text about a fault of the files that did not prevent the start, or nil without such a fault.
  public private(set) var notice: String?

  package let key: Key
  package let certificate: Certificate
  private let signingKey: psa_key_id_t

  /// Reads the identity from `directory`, or creates an identity at the first start. Throws `.keyLost` if the key
  /// existed and is missing. Creates the directory (mode 0700) if only the last component of its path is missing. The
  /// call blocks until the kernel's random generator is seeded.
  public static func loadOrCreate(directory path: String) throws(IdentityError) -> NodeIdentity {
    let directory = try StateDirectory(path)
    if let identity = try load(directory) { return identity }
    // A box that had a key must not become another node silently: its peers would see an unknown key under its name.
    for trace in [keyFile + ".old", stateFile, stateFile + ".old"] where directory.has(trace) {
      throw .keyLost(key: directory.file(keyFile), left: directory.file(trace))
    }
    return try create(directory)
  }

  /// Reads the identity from `directory`, or returns nil if the directory contains none. If the key file is damaged,
  /// its previous generation is used, and `notice` reports the damage.
  public static func load(_ directory: StateDirectory) throws(IdentityError) -> NodeIdentity? {
    try startLibrary()
    let separate = try directory.read(certificateFile, bytesMax: fileBytesMax)
    guard let stored = try directory.read(keyFile, bytesMax: fileBytesMax, secret: true) else {
      if separate == nil { return nil }
      throw .keyMissing(certificate: directory.file(certificateFile), key: directory.file(keyFile))
    }
    do throws(IdentityError) {
      return try NodeIdentity(stored, separate, directory, keyFile)
    } catch {
      guard case .notAPrivateKey = error,
        let previous = try? directory.read(keyFile + ".old", bytesMax: fileBytesMax, secret: true),
        let identity = try? NodeIdentity(previous, separate, directory, keyFile + ".old")
      else { throw error }
      identity.notice = "\(error.text); until then its previous version, \(keyFile).old, is used"
      return identity
    }
  }

  /// Generates a key and writes it to `node.key`. The previous file remains as `node.key.old`.
  public static func create(_ directory: StateDirectory) throws(IdentityError) -> NodeIdentity {
    try startLibrary()
    let key = Key()
    try key.generate()
    return try write(key, [], directory)
  }

  /// Installs the contents of a PEM or PKCS #12 file as the identity: its P-256 key, and the certificate chain that
  /// begins with the key's own certificate. The previous file remains as `node.key.old`. `password` decrypts an
  /// encrypted file. If the key has several certificates, the first that is valid at `time` (seconds since 1970) is
  /// used. An expired certificate is refused. The method throws the import cases of `IdentityError`.
  public static func importing(
    _ file: [UInt8], path: String, password: [UInt8], at time: Int64, into directory: StateDirectory
  ) throws(IdentityError) -> NodeIdentity {
    try startLibrary()
    let key = Key()
    let certificates: [[UInt8]]
    try refuseBareDER(file, path: path)
    if file.first == 0x30 {
      let contents: PKCS12.Contents
      do throws(PKCS12Error) {
        contents = try PKCS12.open(file, password: password)
      } catch {
        throw .pkcs12(path: path, error)
      }
      try parse(key, contents.key, path: path)
      certificates = contents.certificates
    } else {
      certificates = try self.certificates(inPEM: file, path: path)
      try parse(key, file, path: path, password: password)
    }
    return try write(
      key, certificates.isEmpty ? [] : chain(certificates, of: key, at: time, path: path), directory)
  }

  /// The certificates of a PEM file to import, in DER. Apart from text, the file must contain nothing but one key and
  /// certificates. Other blocks are refused, because a block that is skipped might be the intended certificate.
  private static func certificates(inPEM bytes: [UInt8], path: String) throws(IdentityError) -> [[UInt8]] {
    let file = PEMFile(bytes)
    if let fault = file.faults.first { throw .malformedPEM(path: path, line: fault.line, reason: "\(fault.text)") }
    var certificates: [[UInt8]] = []
    var hasKey = false
    for block in file.blocks {
      if block.isLabelled(PEMFile.certificate) {
        guard let der = block.der else {
          throw .malformedPEM(path: path, line: block.line, reason: "a block that is not base64")
        }
        certificates.append(der)
      } else if block.isPrivateKey {
        if hasKey {
          throw .malformedPEM(path: path, line: block.line, reason: "a second private key; keep only the intended one")
        }
        hasKey = true
      } else if !block.isLabelled("EC PARAMETERS") {
        throw .malformedPEM(
          path: path, line: block.line,
          reason: "a block that is neither PRIVATE KEY nor CERTIFICATE; remove it, or export it as one of them")
      }
    }
    return certificates
  }

  /// Whether a file to import needs a password. Throws for DER that is not PKCS #12.
  public static func isEncrypted(_ file: [UInt8], path: String) throws(IdentityError) -> Bool {
    try refuseBareDER(file, path: path)
    return file.first == 0x30 || contains(file, "ENCRYPTED")
  }

  private static func refuseBareDER(_ file: [UInt8], path: String) throws(IdentityError) {
    if let kind = bareDERKind(file) { throw .bareDER(path: path, kind: kind) }
  }

  /// Parses the key of a file to import. `.notAPrivateKey` becomes `.noPrivateKey`, because the advice for a damaged
  /// `node.key` does not apply to a file to import.
  private static func parse(
    _ key: Key, _ bytes: [UInt8], path: String, password: [UInt8] = []
  ) throws(IdentityError) {
    do throws(IdentityError) {
      try key.parse(bytes, path: path, password: password)
    } catch {
      if case .notAPrivateKey = error { throw .noPrivateKey(path: path) }
      throw error
    }
  }

  /// Writes key and chain to one file, so that a power cut cannot separate them.
  private static func write(
    _ key: Key, _ certificates: [[UInt8]], _ directory: StateDirectory
  ) throws(IdentityError) -> NodeIdentity {
    var text = try key.pem()
    defer { mbedtls_platform_zeroize(&text, text.count) }
    let chain = certificates.isEmpty ? [try selfSigned(key)] : certificates
    for der in chain { text += try Certificate.pem(der) }
    if text.count > fileBytesMax { throw .tooLarge(path: directory.file(keyFile), bytesMax: fileBytesMax) }
    let identity = try NodeIdentity(text, nil, directory, keyFile)
    try directory.write(text, to: keyFile, mode: 0o600)
    // A certificate in a separate file belongs to the former key, and is not used when the key file contains a chain.
    unlink(directory.file(certificateFile))
    return identity
  }

  /// The certificate of `key`, followed by those of its issuers that are among `ders`. The chain has one certificate
  /// for the key, and one for each authority's name. Throws `.expired` if the certificate of the key has expired.
  /// Throws `.unusableChain` for a certificate that is no part of a chain of the key, and if peers would refuse the
  /// size or the path of the chain. The key usage is not checked here but by `chainFault`.
  private static func chain(
    _ ders: [[UInt8]], of key: Key, at time: Int64, path: String
  ) throws(IdentityError) -> [[UInt8]] {
    let spki = try key.spki()
    var rest: [Certificate] = []
    for (index, der) in ders.enumerated() where !ders[..<index].contains(der) {
      let certificate = Certificate()
      try certificate.append(imported: der, path: path)
      rest.append(certificate)
    }
    guard let leaf = best(of: rest, at: time, where: { $0.spki == spki }) else {
      throw .noCertificateForKey(path: path)
    }
    if rest[leaf].hasExpired(at: time) { throw .expired(path: path, date: rest[leaf].lastDay) }
    if let stray = stray(in: rest, spki) {
      throw .unusableChain(
        path: path,
        reason: "\(stray) is no part of it; remove that certificate, or add the certificates that connect it")
    }
    var ordered = [rest.remove(at: leaf)]
    while let last = ordered.last,
      let issuer = best(of: rest, at: time, where: { $0.isNamed(issuerOf: last) && $0.isSigner(of: last) })
        ?? best(of: rest, at: time, where: { $0.isNamed(issuerOf: last) })
    {
      ordered.append(rest.remove(at: issuer))
    }
    let ders = ordered.map { $0.ders[0] }
    let chain = Certificate()
    for der in ders { try chain.append(der: der, path: path) }
    if let size = ChainRules.sizeFault(of: chain.context) {
      throw .unusableChain(path: path, reason: "\(size); every peer refuses it")
    }
    if let fault = ChainPath(chain.context).fault {
      throw .unusableChain(path: path, reason: "\(fault); peers with policy ca refuse it")
    }
    return ders
  }

  /// The subject of a certificate that has no key of this `spki` and is not above one that has, by the names of the
  /// issuers. Returns nil if there is none.
  private static func stray(in certificates: [Certificate], _ spki: [UInt8]) -> String? {
    var reached = certificates.filter { $0.spki == spki }
    var rest = certificates.filter { $0.spki != spki }
    while let next = rest.firstIndex(where: { issuer in reached.contains { issuer.isNamed(issuerOf: $0) } }) {
      reached.append(rest.remove(at: next))
    }
    return rest.first?.subjectText
  }

  /// The index of the preferred certificate among those that `isWanted` accepts. The preferred certificate is the first
  /// that is valid at `time`, otherwise the first that has not expired, otherwise the first.
  private static func best(
    of certificates: [Certificate], at time: Int64, where isWanted: (Certificate) -> Bool
  ) -> Int? {
    let wanted = certificates.indices.filter { isWanted(certificates[$0]) }
    return wanted.first { certificates[$0].isValid(at: time) }
      ?? wanted.first { !certificates[$0].hasExpired(at: time) } ?? wanted.first
  }

  private static let fileBytesMax = 16_384
  private static let keyFile = "node.key"
  /// The file in which `Trust` saves its state from the first start on.
  private static let stateFile = "state"
  private static let certificateFile = "node.crt"

  /// `stored` is the key in PEM, followed by the chain unless the chain is in a separate file. `separate` is the
  /// contents of that file. Without a chain, the certificate is generated from the key.
  private init(
    _ stored: [UInt8], _ separate: [UInt8]?, _ directory: StateDirectory, _ name: String
  ) throws(IdentityError) {
    let key = Key(), certificate = Certificate()
    try key.parse(stored, path: directory.file(name))
    let spki = try key.spki()
    let file = PEMFile(stored)
    if let fault = Certificate.fault(in: file) {
      throw .unusableCertificate(path: directory.file(name), reason: fault)
    }
    if file.blocks.contains(where: { $0.isLabelled(PEMFile.certificate) }) {
      do throws(IdentityError) {
        try certificate.parse(stored, path: directory.file(name))
      } catch {
        // The file also contains the box's key, so the message must not advise the operator to remove the file.
        throw .unusableCertificate(path: directory.file(name), reason: Self.certificateFault(in: file))
      }
      if certificate.spki != spki {
        throw .certificateOfAnotherKey(certificate: directory.file(name), key: directory.file(name))
      }
    } else if let separate {
      let path = directory.file(Self.certificateFile)
      try certificate.parse(separate, path: path)
      if certificate.spki != spki { throw .certificateOfAnotherKey(certificate: path, key: directory.file(name)) }
    } else {
      try certificate.append(der: try Self.selfSigned(key), path: directory.file(name))
    }
    signingKey = try key.importForSigning()
    id = spki.withUnsafeBytes { NodeIdentity.nodeID(ofSPKI: $0) }
    publicPoint = InlineArray { spki[NodeCertificate.spkiPrefix.count + $0] }
    self.key = key
    self.certificate = certificate
  }

  /// The reason why the certificates of a key file cannot be used.
  private static func certificateFault(in file: PEMFile) -> String {
    for block in file.blocks where block.isLabelled(PEMFile.certificate) {
      if let der = block.der, let unknown = X509Extension.unknownCritical(inCertificate: der) {
        return "a certificate has the critical extension \(unknown.text), which no peer supports"
      }
    }
    return "one of its certificates is malformed, or of an unknown algorithm"
  }

  private static func selfSigned(_ key: Key) throws(IdentityError) -> [UInt8] {
    let spki = try key.spki()
    return try NodeCertificate.make(spki: spki, id: spki.withUnsafeBytes { nodeID(ofSPKI: $0) }) {
      body throws(IdentityError) in try key.signDER(body)
    }
  }

  /// The chain in PEM for export. If `withKey` is true, the private key precedes the chain.
  public func pem(withKey: Bool) throws(IdentityError) -> [UInt8] {
    var text = withKey ? try key.pem() : []
    for der in certificate.ders { text += try Certificate.pem(der) }
    return text
  }

  /// One line of text that says why peers refuse the chain that this node presents, or nil if the chain itself gives
  /// them no reason.
  public var chainFault: String? {
    ChainRules.fault(of: certificate.context).map { "this box's certificates: \($0)" }
  }

  /// A line of text for each property of the chain for which some peers with the policy `ca` refuse this node at a time
  /// in seconds since 1970. Empty if there is a `chainFault`.
  public func chainNotes(at time: Int64) -> [String] {
    if chainFault != nil { return [] }
    let path = ChainPath(certificate.context)
    if path.isOfOwnIssuer {
      return cmbedtls_is_authority(certificate.context) == 0
        ? []
        : ["this box's certificate is an authority's (CA): peers with policy ca refuse this box unless they pinned it"]
    }
    var notes: [String] = []
    for authority in path.certificates.dropFirst() where Certificate.seconds(authority.pointee.valid_to) < time {
      notes.append(
        "the certificate of \(PeerChain.text(&authority.pointee.subject)) in this box's chain expired on "
          + "\(Certificate.day(authority.pointee.valid_to)): peers with policy ca refuse this box")
    }
    if path.certificates.count == 1 {
      notes.append(
        "this box's chain lacks its issuer, \(PeerChain.text(&certificate.context.pointee.issuer)): peers with policy "
          + "ca accept this box only if they have the issuer's certificate as an anchor")
    }
    return notes
  }

  /// Whether peers accept this node as a TLS server, so that they can dial this node.
  public var isForServers: Bool { ChainRules.allows(certificate.context, .server) }

  /// The chain that this node presents, in the form that peers evaluate.
  public var chain: PeerChain { PeerChain(certificate.context) }

  deinit { psa_destroy_key(signingKey) }

  /// The ECDSA signature with SHA-256 over the message: r ‖ s, 32 bytes each, big-endian. The signature is
  /// deterministic (RFC 6979).
  public func sign(_ message: UnsafeRawBufferPointer) -> InlineArray<64, UInt8> {
    var signature = InlineArray<64, UInt8>(repeating: 0)
    var span = signature.mutableSpan
    let status = span.withUnsafeMutableBufferPointer { out in
      var count = 0
      return psa_sign_message(
        signingKey, cmbedtls_ecdsa_sha256(), message.bindMemory(to: UInt8.self).baseAddress, message.count,
        out.baseAddress, out.count, &count)
    }
    // The key was imported for signing, so the only possible error is lack of memory, and without memory the process
    // cannot continue.
    precondition(status == PSA_SUCCESS, "signing failed")
    return signature
  }

  /// Whether `signature` (r ‖ s, 64 bytes) over `message` was made with the key of `point` (65 bytes, uncompressed).
  /// Returns false for malformed input.
  public static func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan) -> Bool {
    guard point.byteCount == NodeCertificate.pointBytes, signature.byteCount == 64 else { return false }
    return point.withUnsafeBytes { point in
      guard point[0] == NodeCertificate.uncompressed else { return false }
      return signature.withUnsafeBytes { signature in
        message.withUnsafeBytes { message in
          withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { digest in
            // Software SHA-256 over memory cannot fail.
            mbedtls_sha256(bytes(message), message.count, digest.baseAddress!, 0)
            return cnettle_verify_p256(bytes(point)! + 1, digest.baseAddress!, bytes(signature)!)
          }
        }
      }
    }
  }

  /// The node id of the key with this `point` (65 bytes, uncompressed). Returns `NodeID.none` if `point` has another
  /// length.
  public static func nodeID(ofPoint point: UnsafeRawBufferPointer) -> NodeID {
    guard point.count == NodeCertificate.pointBytes else { return .none }
    return withUnsafeTemporaryAllocation(byteCount: NodeCertificate.spkiBytes, alignment: 1) { spki in
      spki.copyBytes(from: NodeCertificate.spkiPrefix)
      UnsafeMutableRawBufferPointer(rebasing: spki[NodeCertificate.spkiPrefix.count...]).copyMemory(from: point)
      return nodeID(ofSPKI: UnsafeRawBufferPointer(spki))
    }
  }

  /// Initialises mbedTLS, whose PSA interface does not work before this call. Further calls have no effect. The call
  /// waits until the kernel's random generator is seeded, because mbedTLS seeds its own generator from it. Throws
  /// `.library` with PSA's status.
  package static func startLibrary() throws(IdentityError) {
    var probe: UInt64 = 0
    try withUnsafeMutableBytes(of: &probe) { bytes throws(IdentityError) in try secureRandom(into: bytes) }
    let status = psa_crypto_init()
    if status != PSA_SUCCESS { throw .library(code: status) }
  }

  private static func nodeID(ofSPKI spki: UnsafeRawBufferPointer) -> NodeID {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
      // Software SHA-256 over memory cannot fail.
      mbedtls_sha256(bytes(spki), spki.count, digest.bindMemory(to: UInt8.self).baseAddress!, 0)
      return NodeID(
        high: UInt64(bigEndian: digest.load(fromByteOffset: 0, as: UInt64.self)),
        low: UInt64(bigEndian: digest.load(fromByteOffset: 8, as: UInt64.self)))
    }
  }
}

/// Whether a PEM file contains the text `mark`.
private func contains(_ text: [UInt8], _ mark: StaticString) -> Bool {
  text.withUnsafeBytes {
    $0.count > 0 && memmem($0.baseAddress!, $0.count, mark.utf8Start, mark.utf8CodeUnitCount) != nil
  }
}

private func bytes(_ buffer: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
  buffer.bindMemory(to: UInt8.self).baseAddress
}
