import CMbedTLS
import CSystem
import Identity

/// The greatest memory of trust, in bytes: the state, its copy while it is written, and the anchors, estimated at one
/// megabyte of certificates; and the alarms of all pins.
public enum TrustMemory {
  public static let bytesMax = 2 * TrustState.bytesMax + 1_048_576 + TrustAlarms.bytesMax
}

/// The trusted authorities and their revocation lists, from a directory.
///
/// Every file is read whose name does not begin with a dot: certificates and CRLs, in PEM any number per file, in DER one.
/// A node's self-signed certificate is an anchor too, for that node only. A part that is not understood is a fault, and closes
/// (`AnchorFault`).
public final class TrustAnchors {
  /// The most files, and the greatest size of each in bytes: an authority's list may be long.
  public static let filesMax = 64
  public static let fileBytesMax = 262_144

  let certificates: UnsafeMutablePointer<mbedtls_x509_crt>
  /// The same certificates.
  var authorities: [Anchor] = []
  public var certificateCount: Int { authorities.count }
  var lists: [RevocationList] = []
  public var listCount: Int { lists.count }
  /// The parts that are not understood.
  public private(set) var faults: [AnchorFault] = []

  /// No anchors.
  public init() {
    certificates = .allocate(capacity: 1)
    mbedtls_x509_crt_init(certificates)
  }

  /// Reads a directory; for nil or a missing one there are no anchors.
  public convenience init(directory: String?) {
    self.init()
    if let directory { read(directory) }
  }

  deinit {
    mbedtls_x509_crt_free(certificates)
    certificates.deallocate()
  }

  /// Adds one certificate in DER. False when it is malformed or not supported.
  func add(certificate der: [UInt8]) -> Bool {
    // The parser ignores bytes behind the certificate.
    var reader = DERReader(der[...])
    guard (try? reader.takeAny()) != nil, reader.isEmpty,
      mbedtls_x509_crt_parse_der(certificates, der, der.count) == 0
    else { return false }
    var added = authorities.last?.certificate ?? certificates
    while let next = added.pointee.next { added = next }
    authorities.append(Anchor(added))
    return true
  }

  func fail(_ place: String, _ text: String, _ scope: AnchorFault.Scope) {
    faults.append(AnchorFault(text: "\(place): \(text)", scope: scope))
  }

  /// Whether a fault keeps out every certificate.
  var isClosed: Bool {
    faults.contains {
      switch $0.scope {
      case .everybody: true
      case .nobody, .issuer: false
      }
    }
  }

  /// Whether a fault keeps out the certificates by an authority that has one of these names.
  func isClosed(below names: [AuthorityName]) -> Bool {
    faults.contains {
      switch $0.scope {
      case .everybody: true
      case .nobody: false
      case .issuer(let issuer): names.contains { issuer.isNamed($0) }
      }
    }
  }

  /// The lists that their authorities promised to replace before this time, one line each: newer revocations are missing.
  public func outdated(at time: TrustTime) -> [String] {
    lists.compactMap { list in
      guard let next = list.nextUpdate, next < time.seconds else { return nil }
      return "the revocation list of \(list.issuerText) was to be replaced on \(dateText(next))"
    }
  }

  /// The lists that are by no authority known here, one line each: their names may be misspelled. One that is by an
  /// authority whose certificate peers send is among them until such a peer has come.
  public var unmatched: [String] {
    lists.compactMap { list in
      if list.hasApplied || authorities.contains(where: { isBy(list, $0) }) { return nil }
      return "the revocation list of \(list.issuerText) is by no authority of which a certificate is here"
    }
  }

  private func isBy(_ list: RevocationList, _ anchor: Anchor) -> Bool {
    list.issuer.isNamed(anchor.name) || list.issuer.isNamed(anchor.issuerName)
  }

  /// Adds a fault for each list that may revoke an anchor and that nobody can verify.
  private func checkAuthorities(_ directory: String) {
    for list in lists {
      guard authorities.contains(where: { isBy(list, $0) }),
        !authorities.contains(where: { list.issuer.isNamed($0.name) })
      else { continue }
      fail(
        directory,
        "the revocation list of \(list.issuerText), which issued an anchor, cannot be verified without that authority's "
          + "certificate; put it into the directory", .issuer(list.issuer))
    }
  }

  private func read(_ directory: String) {
    defer { checkAuthorities(directory) }
    guard let stream = opendir(directory) else {
      if csystem_errno() != ENOENT { fail(directory, errnoText(csystem_errno()), .everybody) }
      return
    }
    var (names, code) = Self.names(in: stream)
    closedir(stream)
    if code != 0 { fail(directory, "not read to its end: \(errnoText(code))", .everybody) }
    if names.count > Self.filesMax {
      fail(directory, "more than \(Self.filesMax) files; put several certificates and lists into one", .everybody)
    }
    names.sort { $0.lexicographicallyPrecedes($1) }
    for name in names.prefix(Self.filesMax) {
      let path = directory + "/" + String(decoding: name, as: UTF8.self)
      do throws(IdentityError) {
        guard let file = try readFile(path, bytesMax: Self.fileBytesMax) else {
          fail(path, "gone while the directory was read; causeway reload", .everybody)
          continue
        }
        add(file, path: path)
      } catch {
        faults.append(AnchorFault(text: error.text, scope: .everybody))
      }
    }
  }

  /// The names in an open directory that do not begin with a dot; and why they are not all of them, an errno, or 0.
  static func names(in stream: OpaquePointer) -> (names: [[UInt8]], code: CInt) {
    var names: [[UInt8]] = []
    while true {
      // The end and an error are alike but for errno.
      csystem_set_errno(0)
      guard let entry = readdir(stream) else { return (names, csystem_errno()) }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name.first != UInt8(ascii: ".") { names.append(name) }
    }
  }
}
