import CMbedTLS
import CSystem
import FileSupport
import Identity
import Testing

@testable import SecureTransport

/// TLS with an unmodified OpenSSL at the peer's end of a TCP connection over the loopback interface.
@Suite(.serialized) struct OpenSSLTests {
  let scratch = Scratch()

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `an OpenSSL client with a self-signed certificate is accepted`(version: TLSVersion) throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out peer.key")
    try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=anybody -days 1")
    let identity = try makeIdentity()
    let listener = try Listener()
    let openssl = try OpenSSL(
      scratch,
      "s_client -connect 127.0.0.1:\(listener.port) -cert peer.crt -key peer.key \(flag(version)) \(exporter)")
    let end = try End(identity, .server)
    let driver = Driver(end, try listener.accept())

    openssl.type("hello from openssl\n")
    driver.run { end.plaintext.last == 0x0A }
    #expect(end.stream.state == .established)
    #expect(end.plaintext == Array("hello from openssl\n".utf8))
    #expect(end.stream.protocolText.hasPrefix(name(version)))
    try scratch.openssl("pkey -in peer.key -pubout -outform DER -out spki.der")
    #expect(try scratch.openssl("dgst -sha256 -r spki.der").hasPrefix(hex(end.stream.peer)))

    let material = try exported(end)
    #expect(end.write(Array("hello from the box\n".utf8)) == 19)
    driver.run { openssl.output.contains("hello from the box") }
    #expect(openssl.output.contains("hello from the box"))
    #expect(openssl.output.contains("Keying material: \(material)"))
    end.stream.close()
    driver.run { false }
    openssl.stop()
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `a client connects to an OpenSSL server`(version: TLSVersion) throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out peer.key")
    try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=anybody -days 1")
    let identity = try makeIdentity()
    let openssl = try OpenSSL(
      scratch, "s_server -accept 127.0.0.1:0 -Verify 1 -cert peer.crt -key peer.key \(flag(version)) \(exporter)")
    let end = try End(identity, .client)
    let driver = Driver(end, try connect(port: try openssl.port()))

    driver.run { end.stream.state == .established }
    #expect(end.stream.state == .established)
    #expect(end.stream.protocolText.hasPrefix(name(version)))
    try scratch.openssl("pkey -in peer.key -pubout -outform DER -out spki.der")
    #expect(try scratch.openssl("dgst -sha256 -r spki.der").hasPrefix(hex(end.stream.peer)))

    #expect(end.write(Array("hello from the box\n".utf8)) == 19)
    openssl.type("hello from openssl\n")
    driver.run { end.plaintext.last == 0x0A && openssl.output.contains("hello from the box") }
    #expect(end.plaintext == Array("hello from openssl\n".utf8))
    #expect(openssl.output.contains("CN = \(hex(identity.id))"))
    #expect(openssl.output.contains("Keying material: \(try exported(end))"))
    openssl.stop()
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `a client without a certificate is refused`(version: TLSVersion) throws {
    #expect(try refusal("\(flag(version))") == .noPeerCertificate)
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `a client with an RSA certificate is refused`(version: TLSVersion) throws {
    try scratch.openssl("req -new -x509 -newkey rsa:2048 -nodes -keyout peer.key -out peer.crt -subj /CN=rsa -days 1")
    // An RSA certificate does not match the server's request, so OpenSSL sends an empty certificate message.
    #expect(try refusal("-cert peer.crt -key peer.key \(flag(version))") == .noPeerCertificate)
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `a P-256 key in compressed form is refused`(version: TLSVersion) throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out plain.key")
    try scratch.openssl("ec -in plain.key -conv_form compressed -out peer.key")
    try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=compressed -days 1")
    let end = try refusal("-cert peer.crt -key peer.key \(flag(version))")
    #expect(end == .peerKeyNotP256)
  }

  @Test(arguments: [
    (TLSVersion.tls13, "none", 116), (.tls13, "rsa", 116), (.tls13, "compressed", 43), (.tls12, "none", 40),
    (.tls12, "rsa", 40), (.tls12, "compressed", 43),
  ])
  func `a refused client receives an alert about its certificate`(version: TLSVersion, certificate: String, alert: Int)
    throws
  {
    try scratch.openssl("req -new -x509 -newkey rsa:2048 -nodes -keyout rsa.key -out rsa.crt -subj /CN=rsa -days 1")
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out plain.key")
    try scratch.openssl("ec -in plain.key -conv_form compressed -out compressed.key")
    try scratch.openssl("req -new -x509 -key compressed.key -out compressed.crt -subj /CN=compressed -days 1")
    let options = certificate == "none" ? "" : "-cert \(certificate).crt -key \(certificate).key"
    let (_, output) = try refusalAndOutput("\(flag(version)) \(options)") { $0.contains(":error:") }
    #expect(output.contains("SSL alert number \(alert)"), "\(output)")
  }

  @Test(arguments: ["tls1", "tls1_1"])
  func `older TLS versions are refused`(version: String) throws {
    let end = try refusal("-\(version) -cipher ALL:@SECLEVEL=0")
    #expect(end == .library(code: MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION))
  }

  @Test(arguments: [
    "-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256", "-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256",
    "-tls1_2 -cipher AES128-GCM-SHA256", "-tls1_2 -cipher aNULL:@SECLEVEL=0", "-tls1_2 -groups P-384",
    "-tls1_3 -groups P-384",
  ])
  func `other cipher suites and groups are refused`(options: String) throws {
    #expect(try refusal(options) == .library(code: MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE))
  }

  @Test(arguments: [
    "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256 -groups P-256",
    "-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305 -groups X25519:P-256",
    "-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384 -groups P-256", "-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256",
  ])
  func `each permitted cipher suite and group works`(options: String) throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out peer.key")
    try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=anybody -days 1")
    let (end, openssl) = try serve("-cert peer.crt -key peer.key \(options)") { $0 != .handshaking }
    #expect(end.stream.state == .established)
    openssl.stop()
  }

  @Test func `a server with an RSA certificate is refused`() throws {
    try scratch.openssl("req -new -x509 -newkey rsa:2048 -nodes -keyout peer.key -out peer.crt -subj /CN=rsa -days 1")
    let openssl = try OpenSSL(scratch, "s_server -accept 127.0.0.1:0 -Verify 1 -cert peer.crt -key peer.key")
    let end = try End(try makeIdentity(), .client)
    let driver = Driver(end, try connect(port: try openssl.port()))
    driver.run { end.stream.state != .handshaking }
    #expect(end.stream.state == .closed(.alert(40)))
    openssl.stop()
  }

  // MARK: - Helpers

  private let exporter = "-keymatexport EXPORTER-causeway-bypass-v2 -keymatexportlen 32"
  private func flag(_ version: TLSVersion) -> String { version == .tls12 ? "-tls1_2" : "-tls1_3" }
  private func name(_ version: TLSVersion) -> String { version == .tls12 ? "TLSv1.2" : "TLSv1.3" }

  private func exported(_ end: End) throws -> String {
    var material = [UInt8](repeating: 0, count: 32)
    let code = material.withUnsafeMutableBytes { Bypass.export(end.stream.tls, label: Bypass.exporterLabel, into: $0) }
    try #require(code == 0)
    return hex(material).uppercased()
  }

  private func serve(_ options: String, until: (SecureStream.State) -> Bool) throws -> (End, OpenSSL) {
    let listener = try Listener()
    let openssl = try OpenSSL(scratch, "s_client -connect 127.0.0.1:\(listener.port) \(options)")
    let end = try End(try makeIdentity(), .server)
    let driver = Driver(end, try listener.accept())
    driver.run { until(end.stream.state) }
    return (end, openssl)
  }

  /// The reason for which our server ends the stream of a client with these options. The stream is never established.
  private func refusal(_ options: String) throws -> SecureStreamEnd? {
    try refusalAndOutput(options).end
  }

  /// The reason for which our server ends the client's stream, and the client's output.
  private func refusalAndOutput(_ options: String, until isTold: (String) -> Bool = { _ in true }) throws
    -> (end: SecureStreamEnd?, output: String)
  {
    let (end, openssl) = try serve(options) { $0 != .handshaking }
    for _ in 0..<100 * waitSecondsMax where !isTold(openssl.output) { usleep(10_000) }
    let output = openssl.output
    openssl.stop()
    #expect(end.isEstablishedFirst == nil)
    guard case .closed(let reason) = end.stream.state else { return (nil, output) }
    return (reason, output)
  }
}
