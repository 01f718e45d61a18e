import CMbedTLS
import CSystem
import Identity

extension PeerChain {
  /// A line of text for each certificate: subject, issuer, and validity period.
  public var descriptions: [String] {
    var lines: [String] = []
    var next = first
    while let certificate = next {
      var subject = certificate.pointee.subject, issuer = certificate.pointee.issuer
      var line = Self.text(&subject)
      line += cmbedtls_is_authority(certificate) != 0 ? " (CA), by " : ", by "
      line +=
        UnsafeRawBufferPointer(certificate.pointee.issuer_raw)
          .elementsEqual(UnsafeRawBufferPointer(certificate.pointee.subject_raw)) ? "itself" : Self.text(&issuer)
      line += ", " + dateText(Validity.seconds(certificate.pointee.valid_from))
      line += " to " + dateText(Validity.seconds(certificate.pointee.valid_to))
      lines.append(line)
      next = certificate.pointee.next
    }
    return lines
  }
}

/// A time in seconds since 1970 as a UTC date, for example 2026-11-21.
public func dateText(_ seconds: Int64) -> String {
  var time = time_t(seconds)
  var parts = tm()
  csystem_gmtime_r(&time, &parts)
  func digits(_ number: Int32, _ count: Int) -> String {
    var text = String(number)
    while text.utf8.count < count { text = "0" + text }
    return text
  }
  return digits(parts.tm_year + 1900, 4) + "-" + digits(parts.tm_mon + 1, 2) + "-" + digits(parts.tm_mday, 2)
}
