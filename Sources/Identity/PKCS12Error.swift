/// Why a PKCS #12 file cannot be used.
public enum PKCS12Error: Error, Equatable {
  /// Not a PKCS #12 file, or one in a form that is not DER.
  case notPKCS12
  /// Its lengths go beyond its end.
  case truncated
  /// More than `PKCS12.bytesMax`.
  case tooLarge
  /// Protected by signature or not at all: nothing tells a wrong password.
  case noMAC
  /// More rounds of key derivation than `PKCS12.iterationsMax`.
  case tooManyIterations
  /// A MAC or cipher other than those read here. `name` is what it is, where it is a usual one.
  case unsupported(name: StaticString)
  case wrongPassword
  /// Not UTF-8, or more than `PKCS12.passwordBytesMax` bytes.
  case unusablePassword
  case noKey
  /// More than one private key: nobody says which.
  case severalKeys

  public static func == (a: PKCS12Error, b: PKCS12Error) -> Bool { a.number == b.number }

  /// One line's end: what is wrong and what to do.
  public var text: StaticString {
    switch self {
    case .notPKCS12: "neither PEM nor PKCS #12 in DER; make it by: openssl pkcs12 -export -inkey KEY -in CERTIFICATES"
    case .truncated: "a PKCS #12 file that ends too early; copy it again"
    case .tooLarge: "larger than 65536 bytes, so not an identity"
    case .noMAC: "a PKCS #12 file without password integrity (MAC); export it again with a password"
    case .tooManyIterations: "asks for more than 1000000 rounds of key derivation; export it again with fewer"
    case .unsupported(let name): name
    case .wrongPassword: "the password is not the one that it was made with"
    case .unusablePassword: "a password of more than 256 bytes, or not UTF-8"
    case .noKey: "a PKCS #12 file without private key; export it again with -inkey KEY"
    case .severalKeys: "a PKCS #12 file with more than one private key; export the one that is meant"
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
