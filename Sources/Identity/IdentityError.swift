import CSystem

/// The reason why there is no usable identity. Most cases contain the path of the file. `text` states the fault and the
/// remedy in one line.
public enum IdentityError: Error, Equatable {
  /// The directory is missing and could not be created.
  case directory(path: String, code: Int32)
  /// Another process has locked the directory.
  case inUse(path: String)
  /// The directory contains no key yet.
  case none(path: String)
  /// A file could not be opened or read.
  case unreadable(path: String, code: Int32)
  /// The path is a symbolic link whose target does not exist, for example because a partition is not mounted.
  case deadLink(path: String)
  /// A file is larger than a file of its kind can be.
  case tooLarge(path: String, bytesMax: Int)
  /// The path is a directory or another object that is not a regular file.
  case notAFile(path: String)
  /// A file could not be written, synchronised or renamed.
  case unwritable(path: String, code: Int32)
  /// Group or others can access the key file. `mode` contains the permission bits of the file.
  case keyOpenToOthers(path: String, mode: UInt32)
  /// The file is not a private key in PEM, or the key is encrypted, or its private and public parts do not match.
  case notAPrivateKey(path: String)
  /// The private key is not an ECDSA P-256 key.
  case notP256(path: String)
  /// The file is not a certificate in PEM.
  case notACertificate(path: String)
  /// The key file contains a certificate that cannot be used.
  case unusableCertificate(path: String, reason: String)
  /// The certificate is for another key.
  case certificateOfAnotherKey(certificate: String, key: String)
  /// The certificate exists, but its key is missing. A new key would silently make this box a different node.
  case keyMissing(certificate: String, key: String)
  /// The key is missing although it existed. `left` is the file that proves that the key existed: the previous
  /// generation of the key, or a state file.
  case keyLost(key: String, left: String)
  /// The state file and its previous generation cannot be read, so pins and revocations are unknown.
  case stateLost(path: String)
  /// The state contains a deny-list in a format that this version of the program does not know.
  case stateOfLaterVersion(path: String)
  /// The file to import contains no private key.
  case noPrivateKey(path: String)
  /// The file is a private key or certificate in DER, but not PKCS #12. `kind` is the `openssl` command that reads the
  /// file.
  case bareDER(path: String, kind: String)
  /// The encrypted key demands more iterations of key derivation than `PKCS12.iterationsMax`.
  case tooManyIterations(path: String)
  /// The PEM file is encrypted, and no password was given.
  case passwordNeeded(path: String)
  /// The password of the PEM file is wrong.
  case wrongPassword(path: String)
  /// No certificate in the file to import is for the key.
  case noCertificateForKey(path: String)
  /// The PEM file to import has a line that is not understood, or a block that does not belong to an identity.
  case malformedPEM(path: String, line: Int, reason: String)
  /// The key's certificate in the file to import has expired. `date` is the last day of its validity.
  case expired(path: String, date: String)
  /// The file to import contains a certificate that cannot be parsed.
  case unreadableCertificate(path: String)
  /// The file to import contains a certificate with a critical extension, `name`, that peers do not understand.
  case unknownCriticalExtension(path: String, name: String)
  /// The file to import contains a chain that every peer refuses.
  case unusableChain(path: String, reason: String)
  /// The PKCS #12 file cannot be used.
  case pkcs12(path: String, PKCS12Error)
  /// The kernel returned no random bytes.
  case noRandomness(code: Int32)
  /// mbedTLS failed, in practice because no memory is left. `code` is mbedTLS's error number.
  case library(code: Int32)

  /// The fault and the remedy, in one line.
  public var text: String {
    switch self {
    case .directory(let path, EACCES):
      "only root and the daemon's user may use the state directory \(path); run this as root, or ask the box's operator"
    case .directory(let path, let code):
      "state directory \(path): \(errnoText(code)); create it or set another one"
    case .inUse(let path):
      "state directory \(path): another causeway uses it; stop it, or set another directory"
    case .none(let path):
      "\(path): there is no key yet; the first start creates one, or: causeway identity new"
    case .unreadable(let path, let code):
      "\(path): \(errnoText(code)); make it readable for the user that runs causeway"
    case .deadLink(let path):
      "\(path): a link to a file that does not exist; restore the file, or remove the link"
    case .tooLarge(let path, let bytesMax):
      "\(path): larger than \(bytesMax) bytes, so not the expected file"
    case .notAFile(let path):
      "\(path): not a regular file; put a file there, or remove it"
    case .unwritable(let path, let code):
      "\(path): \(errnoText(code)); the state directory must be writable and have space"
    case .keyOpenToOthers(let path, let mode):
      "\(path): mode \(octal(mode)) lets others read the private key; run: chmod 600 \(path)"
    case .notAPrivateKey(let path):
      "\(path): not an unencrypted private key in PEM; restore it, or move it away to become a new node"
    case .notP256(let path):
      "\(path): not an ECDSA P-256 key; create one with: openssl ecparam -name prime256v1 -genkey -noout"
    case .notACertificate(let path):
      "\(path): not a certificate in PEM; remove it, and the next start recreates it from the key"
    case .unusableCertificate(let path, let reason):
      """
      \(path): \(reason); keep the file, it holds the box's key: delete or replace only its CERTIFICATE blocks
      """
    case .certificateOfAnotherKey(let file, let key) where file.utf8.elementsEqual(key.utf8):
      "\(file): its certificate is for another key; keep the file, it holds the box's key: delete only its CERTIFICATE blocks"
    case .certificateOfAnotherKey(let certificate, let key):
      "\(certificate): certifies a key other than \(key); remove the certificate, and the next start recreates it"
    case .keyMissing(let certificate, let key):
      "\(key): missing although \(certificate) exists; restore it, or remove the certificate to become a new node"
    case .keyLost(let key, let left):
      """
      \(key): missing although \(left) exists; restore it from a backup, or become a new node with: causeway identity new
      """
    case .stateLost(let path):
      """
      \(path): damaged or unreadable, and so is \(path).old, so the revoked keys are unknown; restore one from a backup, or \
      remove both to start without pins and revocations
      """
    case .stateOfLaterVersion(let path):
      "\(path)/state: has a deny-list that this version does not understand; install the version that wrote it"
    case .noPrivateKey(let path):
      "\(path): no readable private key in it; put key and certificates into one PEM or PKCS #12 file"
    case .bareDER(let path, let kind):
      "\(path): DER; convert it to PEM with: openssl \(kind) -inform DER -in FILE -out NEW"
    case .tooManyIterations(let path):
      """
      \(path): needs more than \(PKCS12.iterationsMax) rounds of key derivation; encrypt it again with: \
      openssl pkcs8 -topk8 -in FILE -out NEW
      """
    case .passwordNeeded(let path):
      "\(path): encrypted; give its password"
    case .wrongPassword(let path):
      "\(path): wrong password"
    case .noCertificateForKey(let path):
      "\(path): none of its certificates is for its key; add the key's own certificate"
    case .malformedPEM(let path, let line, let reason):
      "\(path):\(line): \(reason)"
    case .expired(let path, let date):
      "\(path): the certificate of its key expired on \(date); have a new one issued for this key, and import both"
    case .unreadableCertificate(let path):
      "\(path): one of its certificates is malformed; export it again"
    case .unknownCriticalExtension(let path, let name):
      """
      \(path): a certificate has the critical extension \(name), which every peer refuses; \
      issue it without the extension, or as not critical
      """
    case .unusableChain(let path, let reason):
      "\(path): its certificate chain: \(reason)"
    case .pkcs12(let path, let error):
      "\(path): \(error.text)"
    case .noRandomness(let code):
      "getrandom: \(errnoText(code)); the kernel must be 3.17 or later and allow the call"
    case .library(let code):
      "mbedTLS failed with \(hexadecimal(code)), usually for lack of memory; free some, and start again"
    }
  }
}

package func errnoText(_ code: Int32) -> String {
  guard let text = strerror(code) else { return "errno \(code)" }
  return String(cString: text)
}

/// A number in hexadecimal, with a minus sign if it is negative. mbedTLS documents its negative error numbers in this
/// form.
package func hexadecimal(_ code: Int32) -> String {
  let digits = String(code.magnitude, radix: 16)
  return code < 0 ? "-0x" + digits : "0x" + digits
}

private func octal(_ mode: UInt32) -> String { "0" + String(mode, radix: 8) }
