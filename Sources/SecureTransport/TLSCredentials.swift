import Identity

/// A node's key and certificates for TLS, and the mbedTLS configurations that its streams share.
public final class TLSCredentials {
  let identity: NodeIdentity
  private var configurations: [TLSConfiguration] = []

  public init(_ identity: NodeIdentity) { self.identity = identity }

  /// The configuration for a role and a highest TLS version. The configuration is created on first use and shared by
  /// all streams. Throws if there is no memory.
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
