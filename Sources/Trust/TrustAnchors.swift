import CMbedTLS
import CSystem
import Identity

/// The maximum memory of this module, in bytes. This maximum is the sum of the state, the copy of the state during a
/// write, the alarms of all pins, and the anchors. The anchors are estimated at 1 MiB of certificates.
public enum TrustMemory {
  public static let bytesMax = 2 * TrustState.bytesMax + 1_048_576 + TrustAlarms.bytesMax
}

/// The trusted authorities and their revocation lists, read from a directory.
///
/// Every file whose name does not begin with a dot is read. A PEM file contains any number of certificates and CRLs,
/// and a DER file contains one. The self-signed certificate of a node is an anchor for that node only. A part of a file
/// that is not understood is a fault, and certificates are refused because of it (`AnchorFault`).
public final class TrustAnchors {
  /// The maximum number of files, and the maximum size of a file in bytes. A file of this size has room for a long
  /// revocation list.
  public static let filesMax = 64
  public static let fileBytesMax = 262_144

  let certificates: UnsafeMutablePointer<mbedtls_x509_crt>
  /// The certificates of `certificates`, each with its subject and issuer names.
  var authorities: [Anchor] = []
  public var certificateCount: Int { authorities.count }
  var lists: [RevocationList] = []
  public var listCount: Int { lists.count }
  /// The parts of the directory that are not understood.
  public private(set) var faults: [AnchorFault] = []

  /// Creates an empty set of anchors.
  public init() {
    certificates = .allocate(capacity: 1)
    mbedtls_x509_crt_init(certificates)
  }

  /// Reads the anchors in a directory. The set is empty if `directory` is nil or does not exist.
  public convenience init(directory: String?) {
    self.init()
    if let directory { read(directory) }
  }

  deinit {
    mbedtls_x509_crt_free(certificates)
    certificates.deallocate()
  }

  enum CertificateUse {
    case anchor
    /// The certificate is neither an authority's nor self-signed, so no chain can end at it.
    case leaf
    /// The certificate is malformed or not supported.
    case unusable
  }

  /// The use of one certificate in DER.
  static func use(of der: [UInt8]) -> CertificateUse {
    // The length is checked here, because mbedTLS's parser ignores bytes after the certificate.
    var reader = DERReader(der[...])
    guard (try? reader.takeAny()) != nil, reader.isEmpty else { return .unusable }
    var certificate = mbedtls_x509_crt()
    mbedtls_x509_crt_init(&certificate)
    defer { mbedtls_x509_crt_free(&certificate) }
    if mbedtls_x509_crt_parse_der(&certificate, der, der.count) != 0 { return .unusable }
    // A certificate of version 1 or 2 has no extensions, so mbedTLS accepts it as an authority's.
    if certificate.version < 3 || cmbedtls_is_authority(&certificate) != 0 { return .anchor }
    let issuer = AuthorityName(ofIssuerOf: &certificate)
    return AuthorityName(of: &certificate).spelling == issuer.spelling ? .anchor : .leaf
  }

  /// Adds one certificate in DER, if it can be an anchor.
  func add(certificate der: [UInt8]) -> CertificateUse {
    let use = Self.use(of: der)
    if use != .anchor || mbedtls_x509_crt_parse_der(certificates, der, der.count) != 0 { return use }
    var added = authorities.last?.certificate ?? certificates
    while let next = added.pointee.next { added = next }
    authorities.append(Anchor(added))
    return .anchor
  }

  func fail(_ location: String, _ text: String, _ scope: AnchorFault.Scope) {
    faults.append(AnchorFault(text: "\(location): \(text)", scope: scope))
  }

  /// Whether every certificate is refused because of a fault.
  var isClosed: Bool {
    faults.contains {
      switch $0.scope {
      case .everybody: true
      case .nobody, .issuer: false
      }
    }
  }

  /// Whether certificates that an authority with one of these names issued are refused because of a fault.
  func isClosed(below names: [AuthorityName]) -> Bool {
    faults.contains {
      switch $0.scope {
      case .everybody: true
      case .nobody: false
      case .issuer(let issuer): names.contains { issuer.isNamed($0) }
      }
    }
  }

  /// One line of text for each outdated list: its authority promised a newer list before `time`, so newer revocations
  /// may be missing.
  public func outdated(at time: TrustTime) -> [String] {
    lists.compactMap { list in
      guard let next = list.nextUpdate, next < time.seconds else { return nil }
      return "the revocation list of \(list.issuerText) was due for replacement on \(dateText(next))"
    }
  }

  /// The lists whose authority is not among the anchors, with one line of text each, because the name in the list may
  /// be misspelled. Some authorities are intermediates whose certificates only peers send. The list of an intermediate
  /// authority is included until a peer has sent the authority's certificate.
  public var unmatched: [String] {
    lists.compactMap { list in
      if list.hasApplied || authorities.contains(where: { isBy(list, $0) }) { return nil }
      return "the revocation list of \(list.issuerText) belongs to no authority in the anchors directory"
    }
  }

  private func isBy(_ list: RevocationList, _ anchor: Anchor) -> Bool {
    list.issuer.isNamed(anchor.name) || list.issuer.isNamed(anchor.issuerName)
  }

  /// Checks the signature of each list whose authority is an anchor. Adds a fault for each list that is not valid, and
  /// for each list that may revoke an anchor but cannot be verified, because its authority is not an anchor. So the
  /// operator learns of the list when it is read, and not from a refused peer.
  private func checkLists() {
    var checksLeft = Self.signatureChecksMax
    for list in lists {
      let named = authorities.filter { list.issuer.isNamed($0.name) }
      if named.isEmpty && !authorities.contains(where: { isBy(list, $0) }) { continue }
      let signers = named.filter { RevocationList.mayBeSigned(by: $0.certificate) }
      let reason: String
      if named.isEmpty {
        reason =
          ", which issued an anchor, cannot be verified without that authority's certificate; "
          + "put it into the directory"
      } else if signers.isEmpty {
        reason =
          " is not valid, because the key usage of that authority's certificate lacks cRLSign; "
          + "have the certificate issued again with cRLSign"
      } else if checksLeft <= 0 {
        reason = " is not verified, because there are too many lists; remove those that are not needed"
      } else {
        var isSigned = false
        checksLeft -= checksMade {
          cmbedtls_begin_checks()
          defer { cmbedtls_end_checks() }
          isSigned = signers.contains { list.checkSignature(by: $0.certificate) }
        }
        if isSigned { continue }
        reason =
          " is not signed by that authority; get the list again, or add the certificate of the key that signed it"
      }
      fail(list.location, "the revocation list of \(list.issuerText)\(reason)", .issuer(list.issuer))
    }
  }

  /// The maximum time for the signatures of all lists when the directory is read, in units of one P-256 check. This is
  /// 0.7 s on a Raspberry Pi 4, and enough for 512 lists with P-256 or 128 lists with RSA. The operator writes the
  /// lists. A reload reads them on the reactor's thread.
  static let signatureChecksMax = 512

  private func read(_ directory: String) {
    defer { checkLists() }
    guard let stream = opendir(directory) else {
      if csystem_errno() != ENOENT { fail(directory, errnoText(csystem_errno()), .everybody) }
      return
    }
    var (names, code) = Self.names(in: stream)
    closedir(stream)
    if code != 0 { fail(directory, "not read completely: \(errnoText(code))", .everybody) }
    if names.count > Self.filesMax {
      fail(directory, "more than \(Self.filesMax) files; put several certificates and lists into one", .everybody)
    }
    names.sort { $0.lexicographicallyPrecedes($1) }
    for name in names.prefix(Self.filesMax) {
      let path = directory + "/" + String(decoding: name, as: UTF8.self)
      do throws(IdentityError) {
        guard let file = try readFile(path, bytesMax: Self.fileBytesMax) else {
          fail(path, "removed while the directory was read; run: causeway reload", .everybody)
          continue
        }
        add(file, path: path)
      } catch {
        faults.append(AnchorFault(text: error.text, scope: .everybody))
      }
    }
  }

  /// The file names in an open directory that do not begin with a dot. `code` is 0 if the directory was read to its
  /// end, otherwise an errno.
  static func names(in stream: OpaquePointer) -> (names: [[UInt8]], code: CInt) {
    var names: [[UInt8]] = []
    while true {
      // readdir returns NULL both at the end and on an error. Only errno tells the two cases apart.
      csystem_set_errno(0)
      guard let entry = readdir(stream) else { return (names, csystem_errno()) }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name.first != UInt8(ascii: ".") { names.append(name) }
    }
  }
}
