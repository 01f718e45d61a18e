/// The certificates of a fleet, which is a set of nodes under one root authority. The openssl command makes these
/// certificates.
extension Scratch {
  /// Writes `NAME.pem` and `NAME.pem.key`: a certificate and its key. The certificate is signed by `issuer`, or
  /// self-signed if `issuer` is nil.
  /// - `from` and `to`: the validity dates in the form of `openssl ca`, by default 2026-01-01 to 2036-01-01.
  public func certificate(
    _ name: String, by issuer: String? = nil, extensions: String = "", subject: String? = nil,
    algorithm: String = "P-256", digest: String = "sha256",
    key existing: String? = nil, from: String? = nil, to: String? = nil
  ) throws {
    if let existing {
      try openssl("pkey -in \(existing) -out \(name).pem.key")
    } else {
      try openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:\(algorithm) -out \(name).pem.key")
    }
    try openssl("req -new -key \(name).pem.key -subj '/CN=\(subject ?? name)' -out \(name).csr")
    try write("\(name).ext", extensions + "\n")
    try write(
      "ca.conf",
      """
      [ca]
      default_ca = d
      [d]
      database = index.txt
      new_certs_dir = .
      serial = serial
      default_md = \(digest)
      policy = p
      unique_subject = no
      default_crl_days = 30
      [p]
      commonName = supplied

      """)
    if bytes("serial") == nil {
      try write("serial", "1000\n")
      try write("index.txt", "")
    }
    let signer = issuer.map { "-cert \($0).pem -keyfile \($0).pem.key" } ?? "-selfsign -keyfile \(name).pem.key"
    try openssl(
      "ca -batch -config ca.conf -in \(name).csr -out \(name).pem -notext -extfile \(name).ext \(signer) "
        + "-startdate \(from ?? "20260101000000Z") -enddate \(to ?? "20360101000000Z")")
  }

  /// June 2027 in seconds since 1970. Certificates with the default dates are valid at this time.
  public static let june: Int64 = 1_811_808_000

  public static let authority = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign"
  public static let node =
    "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=clientAuth,serverAuth"

  /// Makes the certificates root → intermediate → node, and `chain.pem`, which contains the two authorities.
  public func makeFleet() throws {
    try certificate("root", extensions: Self.authority)
    try certificate("intermediate", by: "root", extensions: Self.authority)
    try certificate("node", by: "intermediate", extensions: Self.node)
    try write("chain.pem", bytes("intermediate.pem")! + bytes("root.pem")!)
  }

  /// Writes `NAME.crl`: a certificate revocation list that `issuer` signs and that revokes the certificates `names`.
  /// - `days`: the options of `openssl ca` that set the dates of the list.
  public func revocationList(
    _ name: String, by issuer: String, revoking names: [String], signedBy other: String? = nil, days: String = ""
  ) throws {
    try write("index.txt", "")
    let signer = "-config ca.conf -cert \(issuer).pem -keyfile \(other ?? issuer).pem.key"
    for revoked in names { try openssl("ca -batch \(signer) -revoke \(revoked).pem") }
    try openssl("ca -batch \(signer) -gencrl \(days) -out \(name).crl")
  }
}
