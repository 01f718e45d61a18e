/// The reason why a PKCS #12 file cannot be used. `DERReader` also throws these errors for other files in DER.
public enum PKCS12Error: Error, Equatable {
  /// The file is not a PKCS #12 file.
  case notPKCS12
  /// A length goes beyond the end of the file.
  case truncated
  /// The file is larger than `PKCS12.bytesMax`.
  case tooLarge
  /// The file is protected by a signature or not at all, so a wrong password cannot be detected.
  case noMAC
  /// The file demands more key derivation iterations than `PKCS12.iterationsMax`.
  case tooManyIterations
  /// The MAC or cipher is not supported. `name` describes the fault and the remedy.
  case unsupported(name: StaticString)
  case wrongPassword
  /// The password is not UTF-8, or is longer than `PKCS12.passwordBytesMax` bytes.
  case unusablePassword
  case noKey
  /// The file has more than one private key, so the choice is ambiguous.
  case severalKeys

  public static func == (a: PKCS12Error, b: PKCS12Error) -> Bool { a.number == b.number }

  /// The fault and the remedy, as the end of a line.
  public var text: StaticString {
    switch self {
    case .notPKCS12: "neither PEM nor PKCS #12; create it with: openssl pkcs12 -export -inkey KEY -in CERTIFICATES"
    case .truncated: "a truncated PKCS #12 file; copy it again"
    case .tooLarge: "larger than 65536 bytes, so not an identity"
    case .noMAC: "a PKCS #12 file without password integrity (MAC); export it again with a password"
    case .tooManyIterations: "needs more than 8000000 rounds of key derivation; export it again with fewer"
    case .unsupported(let name): name
    case .wrongPassword: "wrong password"
    case .unusablePassword: "the password has more than 256 bytes, or is not UTF-8"
    case .noKey: "a PKCS #12 file without private key; export it again with -inkey KEY"
    case .severalKeys: "a PKCS #12 file with more than one private key; export only the intended one"
    }
  }

  private var number: Int {
    switch self {
    case .notPKCS12: 0
    case .truncated: 1
    case .tooLarge: 2
    case .noMAC: 3
    case .tooManyIterations: 4
    case .unsupported: 5
    case .wrongPassword: 6
    case .unusablePassword: 7
    case .noKey: 8
    case .severalKeys: 9
    }
  }
}
