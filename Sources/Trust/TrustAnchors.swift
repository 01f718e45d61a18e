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
/// Every regular file is read: certificates and CRLs, PEM or DER, one or more per file. A node's self-signed
/// certificate is an anchor too, for that node only.
public final class TrustAnchors {
  /// The most files, and the greatest size of each in bytes: an authority's list may be long.
  public static let filesMax = 64
  public static let fileBytesMax = 262_144

  let certificates: UnsafeMutablePointer<mbedtls_x509_crt>
  let lists: UnsafeMutablePointer<mbedtls_x509_crl>
  public private(set) var certificateCount = 0
  public private(set) var listCount = 0
  /// Problems, one line each.
  public private(set) var notices: [String] = []

  /// No anchors.
  public init() {
    certificates = .allocate(capacity: 1)
    mbedtls_x509_crt_init(certificates)
    lists = .allocate(capacity: 1)
    mbedtls_x509_crl_init(lists)
  }

  /// Reads a directory; for nil or a missing one there are no anchors.
  public convenience init(directory: String?) {
    self.init()
    if let directory { read(directory) }
  }

  deinit {
    mbedtls_x509_crt_free(certificates)
    certificates.deallocate()
    mbedtls_x509_crl_free(lists)
    lists.deallocate()
  }

  /// Adds the contents of one file. False when it holds neither a certificate nor a list.
  public func add(_ file: [UInt8]) -> Bool {
    // mbedTLS recognises PEM by a terminating zero.
    let text = file.first == 0x30 ? file : file + [0]
    let hasCertificate = mbedtls_x509_crt_parse(certificates, text, text.count) == 0
    let hasList = mbedtls_x509_crl_parse(lists, text, text.count) == 0
    certificateCount = 0
    var certificate: UnsafeMutablePointer<mbedtls_x509_crt>? = certificates
    while let next = certificate {
      if next.pointee.raw.len > 0 { certificateCount += 1 }
      certificate = next.pointee.next
    }
    listCount = 0
    var list: UnsafeMutablePointer<mbedtls_x509_crl>? = lists
    while let next = list {
      if next.pointee.raw.len > 0 { listCount += 1 }
      list = next.pointee.next
    }
    return hasCertificate || hasList
  }

  private func read(_ directory: String) {
    guard let stream = opendir(directory) else {
      if csystem_errno() != ENOENT { notices.append("\(directory): \(errnoText(csystem_errno()))") }
      return
    }
    var names: [[UInt8]] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name.first != UInt8(ascii: ".") { names.append(name) }
    }
    closedir(stream)
    if names.count > Self.filesMax {
      notices.append("\(directory): more than \(Self.filesMax) files; those beyond are not looked at")
    }
    names.sort { $0.lexicographicallyPrecedes($1) }
    for name in names.prefix(Self.filesMax) {
      let path = directory + "/" + String(decoding: name, as: UTF8.self)
      do throws(IdentityError) {
        guard let file = try readFile(path, bytesMax: Self.fileBytesMax) else { continue }
        if !add(file) { notices.append("\(path): neither a certificate nor a CRL in it (PEM or DER)") }
      } catch {
        notices.append(error.text)
      }
    }
  }
}
