import CMbedTLS

/// Whether the contents of an INTEGER are a serial number (RFC 5280, section 4.1.2.2): 1 to 20 bytes in the shortest
/// form. Serial numbers are compared as bytes, so one number must not have two encodings.
package func isSerialNumber(_ bytes: some Collection<UInt8>) -> Bool {
  guard bytes.count <= 20, let first = bytes.first else { return false }
  guard let second = bytes.dropFirst().first else { return true }
  return !(first == 0 && second < 0x80) && !(first == 0xFF && second >= 0x80)
}

/// Whether a certificate has a valid serial number. mbedTLS also accepts a serial number that is not an INTEGER.
package func hasSerialNumber(_ certificate: UnsafePointer<mbedtls_x509_crt>) -> Bool {
  certificate.pointee.serial.tag == Int32(DERReader.integer)
    && isSerialNumber(UnsafeRawBufferPointer(certificate.pointee.serial))
}
