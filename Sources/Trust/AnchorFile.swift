import Identity

/// Something in the anchors directory that is not understood. It may be a revocation list, so those that it may revoke
/// are not let in until it is corrected.
public struct AnchorFault {
  /// Whom it keeps out.
  enum Scope {
    /// Nobody else: a whole certificate is no anchor, so those below it are refused in any case.
    case nobody
    /// All certificates by this authority.
    case issuer(ListIssuer)
    /// Every certificate.
    case everybody
  }

  /// One line: the file, what is wrong and what to do.
  public let text: String
  let scope: Scope

  /// The nodes that are not let in.
  public var effect: StaticString {
    switch scope {
    case .nobody: "nobody below it is let in"
    case .issuer: "nobody below that authority is let in"
    case .everybody: "nobody is let in by a certificate"
    }
  }

  /// Whether it keeps out those that would be let in without it.
  public var isClosing: Bool {
    switch scope {
    case .nobody: false
    case .issuer, .everybody: true
    }
  }
}

extension TrustAnchors {
  /// Adds the contents of one file: a certificate or a revocation list in DER, or any number of them in PEM. True when
  /// all of it is understood; each fault that is found is added to `faults`.
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
    if add(certificate: der) { return }
    if isCertificate(der) {
      failCertificate(der, path)
    } else {
      add(list: der, path)
    }
  }

  private func addPEM(_ file: PEMFile, _ path: String) {
    // A part of a block that is lost may be a list, whatever the blocks around it are.
    for fault in file.faults { fail("\(path):\(fault.line)", "\(fault.text)", .everybody) }
    for block in file.blocks {
      let place = "\(path):\(block.line)"
      let isList = block.isLabelled(PEMFile.revocationList)
      guard isList || block.isLabelled(PEMFile.certificate) else {
        fail(place, "neither a certificate nor a CRL; take it out of the directory", .everybody)
        continue
      }
      guard let der = block.der else { fail(place, "not base64", .everybody); continue }
      if isList {
        add(list: der, place)
      } else if !add(certificate: der) {
        failCertificate(der, place)
      }
    }
    if file.blocks.isEmpty && file.faults.isEmpty {
      fail(
        path, "neither a certificate nor a CRL in it (PEM or DER); take it out of the directory", .everybody
      )
    }
  }

  /// Adds the fault of DER that is no usable certificate although it is to be one.
  private func failCertificate(_ der: [UInt8], _ place: String) {
    if isCertificate(der) {
      fail(place, "a certificate that cannot be used: \(certificateFault(der))", .nobody)
    } else {
      fail(place, "not one whole certificate, whatever its label; copy it again, or correct the label", .everybody)
    }
  }

  private func add(list der: [UInt8], _ place: String) {
    switch RevocationList.read(der) {
    case .list(let list): lists.append(list)
    case .refused(let reason, let issuer):
      fail(
        place, "a revocation list that is not understood: \(reason)", issuer.map { .issuer($0) } ?? .everybody)
    }
  }

  /// Whether this is one whole certificate and nothing else, usable or not: its first field is a version, `[0]`, which no
  /// revocation list has. Nothing behind it is lost when it is left out.
  private func isCertificate(_ der: [UInt8]) -> Bool {
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
