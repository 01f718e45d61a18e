import Identity

/// A node's key and certificates as TLS uses them, and the mbedTLS configurations that its streams share.
public final class TLSCredentials {
  let identity: NodeIdentity
  private var configurations: [TLSConfiguration] = []

  public init(_ identity: NodeIdentity) { self.identity = identity }

  /// One configuration for each role and highest version. It is made on first use and shared by every stream.
  /// Errors: no memory.
  func configuration(_ role: SecureStream.Role, _ versionMax: TLSVersion) throws(SecureStreamError)
    -> TLSConfiguration
  {
    for made in configurations where made.role == role && made.versionMax == versionMax { return made }
    let made = try TLSConfiguration(
      key: identity.key, certificate: identity.certificate, role: role, versionMax: versionMax)
    configurations.append(made)
    return made
  }
}
