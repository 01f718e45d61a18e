import CMbedTLS
import CSystem
import Identity

/// The maximum memory of trust, in bytes: the state, its copy during a write, the alarms of all pins, and the anchors,
/// estimated at one megabyte of certificates.
public enum TrustMemory {
  public static let bytesMax = 2 * TrustState.bytesMax + 1_048_576 + TrustAlarms.bytesMax
}

/// The trusted authorities and their revocation lists, read from a directory.
///
/// Every file whose name does not begin with a dot is read. A PEM file holds any number of certificates and CRLs, a DER
/// file one. A node's self-signed certificate is an anchor for that node only. A part that is not understood is a
/// fault, and causes refusals (`AnchorFault`).
public final class TrustAnchors {
  /// The maximum number of files, and the maximum size of each in bytes. The size allows for long revocation lists.
  public static let filesMax = 64
  public static let fileBytesMax = 262_144

  let certificates: UnsafeMutablePointer<mbedtls_x509_crt>
  /// The same certificates, with their names and issuers.
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

  /// Reads the anchors of a directory; nil or a missing directory yields none.
  public convenience init(directory: String?) {
    self.init()
    if let directory { read(directory) }
  }

  deinit {
    mbedtls_x509_crt_free(certificates)
    certificates.deallocate()
  }

  /// Adds one certificate in DER. Returns false if it is malformed or not supported.
  func add(certificate der: [UInt8]) -> Bool {
    // The parser ignores bytes after the certificate.
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

  /// Whether a fault causes every certificate to be refused.
  var isClosed: Bool {
    faults.contains {
      switch $0.scope {
      case .everybody: true
      case .nobody, .issuer: false
      }
    }
  }

  /// Whether a fault causes certificates by an authority with one of these names to be refused.
  func isClosed(below names: [AuthorityName]) -> Bool {
    faults.contains {
      switch $0.scope {
      case .everybody: true
      case .nobody: false
      case .issuer(let issuer): names.contains { issuer.isNamed($0) }
      }
    }
  }

  /// One line for each list that its authority promised to replace before `time`: newer revocations are missing.
  public func outdated(at time: TrustTime) -> [String] {
    lists.compactMap { list in
      guard let next = list.nextUpdate, next < time.seconds else { return nil }
      return "the revocation list of \(list.issuerText) was due for replacement on \(dateText(next))"
    }
  }

  /// One line for each list whose authority is unknown here: its name may be misspelled. A list of an authority whose
  /// certificate only peers send is included until such a peer has connected.
  public var unmatched: [String] {
    lists.compactMap { list in
      if list.hasApplied || authorities.contains(where: { isBy(list, $0) }) { return nil }
      return "the revocation list of \(list.issuerText) belongs to no authority in the anchors directory"
    }
  }

  private func isBy(_ list: RevocationList, _ anchor: Anchor) -> Bool {
    list.issuer.isNamed(anchor.name) || list.issuer.isNamed(anchor.issuerName)
  }

  /// Adds a fault for each list that may revoke an anchor but cannot be verified.
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

  /// The names in an open directory that do not begin with a dot. `code` is the errno if the directory was not read to
  /// its end; 0 otherwise.
  static func names(in stream: OpaquePointer) -> (names: [[UInt8]], code: CInt) {
    var names: [[UInt8]] = []
    while true {
      // readdir returns the same value at the end and on an error; only errno differs.
      csystem_set_errno(0)
      guard let entry = readdir(stream) else { return (names, csystem_errno()) }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name.first != UInt8(ascii: ".") { names.append(name) }
    }
  }
}
