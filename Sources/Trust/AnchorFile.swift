import Identity

/// A part of the anchors directory that cannot be interpreted. The part may be a revocation list. So all certificates
/// that this part could revoke are refused until the operator corrects the fault.
public struct AnchorFault {
  /// The certificates that are refused because of the fault.
  enum Scope {
    /// The fault concerns no certificates. The fault is a complete certificate that is unusable as an anchor. So the
    /// certificates below this anchor are refused in any case.
    case nobody
    case issuer(ListIssuer)
    /// The fault may concern every certificate.
    case everybody
  }

  /// The fault in one line of text: the file, the error and the remedy.
  public let text: String
  let scope: Scope

  /// A text that says which certificates are refused.
  public var effect: StaticString {
    switch scope {
    case .nobody: "no certificate below it is accepted"
    case .issuer: "no certificate below that authority is accepted"
    case .everybody: "no certificate is accepted"
    }
  }

  /// Whether nodes are refused that would be accepted without the fault.
  public var isClosing: Bool {
    switch scope {
    case .nobody: false
    case .issuer, .everybody: true
    }
  }
}

extension TrustAnchors {
  /// Adds the contents of one file: one certificate or revocation list in DER, or any number of them in PEM. Adds each
  /// fault to `faults`. Returns true if the complete file is understood.
  @discardableResult
  public func add(_ file: [UInt8], path: String = "") -> Bool {
    let before = faults.count
    if file.first == 0x30 {
      addDER(file, path)
    } else {
      addPEM(PEMFile(file), path)
    }
    return faults.count == before
  }

  private func addDER(_ der: [UInt8], _ path: String) {
    if isCertificate(der) { addCertificate(der, path) } else { add(list: der, path) }
  }

  private func addPEM(_ file: PEMFile, _ path: String) {
    // A damaged block may be a revocation list, even if all other blocks are certificates.
    for fault in file.faults { fail("\(path):\(fault.line)", "\(fault.text)", .everybody) }
    for block in file.blocks {
      let location = "\(path):\(block.line)"
      let isList = block.isLabelled(PEMFile.revocationList)
      guard isList || block.isLabelled(PEMFile.certificate) else {
        fail(location, "neither a certificate nor a CRL; remove it from the directory", .everybody)
        continue
      }
      guard let der = block.der else { fail(location, "not base64", .everybody); continue }
      if isList { add(list: der, location) } else { addCertificate(der, location) }
    }
    if file.blocks.isEmpty && file.faults.isEmpty {
      fail(
        path, "contains neither a certificate nor a CRL (PEM or DER); remove it from the directory", .everybody
      )
    }
  }

  /// Adds DER that is meant to be a certificate, or the reason why it cannot be an anchor.
  private func addCertificate(_ der: [UInt8], _ location: String) {
    guard isCertificate(der) else {
      fail(location, "not a complete certificate, despite its label; copy it again, or correct the label", .everybody)
      return
    }
    switch add(certificate: der) {
    case .anchor: break
    case .leaf:
      fail(
        location,
        "not an authority's certificate: no node is accepted by it; put the authority's certificate in its location",
        .nobody)
    case .unusable: fail(location, "a certificate that cannot be used: \(certificateFault(der))", .nobody)
    }
  }

  private func add(list der: [UInt8], _ location: String) {
    switch RevocationList.read(der, location: location) {
    case .list(let list): lists.append(list)
    case .refused(let reason, let issuer):
      fail(location, "an unusable revocation list: \(reason)", issuer.map { .issuer($0) } ?? .everybody)
    case .unreadable:
      fail(location, "neither a complete certificate nor a complete CRL; copy it again, or remove it", .everybody)
    }
  }

  /// Whether `der` is exactly one complete certificate, usable or not. The first field of a certificate of version 2 or
  /// 3 is the version, `[0]`, and no revocation list has such a field. So ignoring `der` cannot mean that a revocation
  /// list is ignored.
  private func isCertificate(_ der: [UInt8]) -> Bool {
    if Self.use(of: der) != .unusable { return true }
    var whole = DERReader(der[...])
    guard var outer = try? whole.enter(DERReader.sequence), whole.isEmpty,
      let body = try? outer.enter(DERReader.sequence)
    else { return false }
    return body.rest.first == DERReader.context0
  }

  private func certificateFault(_ der: [UInt8]) -> String {
    X509Extension.unknownCritical(inCertificate: der).map { "its critical extension \($0.text) is not supported" }
      ?? "malformed, or of an unknown algorithm"
  }
}
