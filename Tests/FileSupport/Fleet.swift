/// Certificates of a fleet, by the openssl command.
extension Scratch {
  /// `NAME.pem` and `NAME.pem.key`: a certificate by `issuer`, self-signed without one.
  /// - `dates`: -startdate/-enddate in the form of `openssl ca`; nil for a year from now.
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

  /// June 2027, when certificates of `certificate` are valid without other dates. Seconds since 1970.
  public static let june: Int64 = 1_811_808_000

  public static let authority = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign"
  public static let node =
    "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=clientAuth,serverAuth"

  /// root → intermediate → node, and `chain.pem` with the two authorities.
  public func makeFleet() throws {
    try certificate("root", extensions: Self.authority)
    try certificate("intermediate", by: "root", extensions: Self.authority)
    try certificate("node", by: "intermediate", extensions: Self.node)
    try write("chain.pem", bytes("intermediate.pem")! + bytes("root.pem")!)
  }

  /// A certificate revocation list of `issuer` that names these certificates: `NAME.crl`.
  /// - `days`: options of `openssl ca` about its dates.
  public func revocationList(
    _ name: String, by issuer: String, revoking names: [String], signedBy other: String? = nil, days: String = ""
  ) throws {
    try write("index.txt", "")
    let signer = "-config ca.conf -cert \(issuer).pem -keyfile \(other ?? issuer).pem.key"
    for revoked in names { try openssl("ca -batch \(signer) -revoke \(revoked).pem") }
    try openssl("ca -batch \(signer) -gencrl \(days) -out \(name).crl")
  }
}
