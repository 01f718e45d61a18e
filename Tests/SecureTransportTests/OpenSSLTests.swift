import CMbedTLS
import CSystem
import Testing

@testable import SecureTransport

/// A stock OpenSSL on the other end of a loopback TCP connection.
@Suite(.serialized) struct OpenSSLTests {
  let scratch = Scratch()

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func sClientWithASelfSignedCertificateTalksToUs(version: TLSVersion) throws {
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
  func weTalkToAServerOfOpenSSL(version: TLSVersion) throws {
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
  func aClientWithoutCertificateIsRefused(version: TLSVersion) throws {
    #expect(try refusal("\(flag(version))") == .noPeerCertificate)
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func aClientWithAnRSACertificateIsRefused(version: TLSVersion) throws {
    try scratch.openssl("req -new -x509 -newkey rsa:2048 -nodes -keyout peer.key -out peer.crt -subj /CN=rsa -days 1")
    // OpenSSL has nothing that suits what we ask for, and says so with an empty certificate message.
    #expect(try refusal("-cert peer.crt -key peer.key \(flag(version))") == .noPeerCertificate)
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func aP256KeyInAnotherEncodingIsRefused(version: TLSVersion) throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out plain.key")
    try scratch.openssl("ec -in plain.key -conv_form compressed -out peer.key")
    try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=compressed -days 1")
    let end = try refusal("-cert peer.crt -key peer.key \(flag(version))")
    #expect(end == .peerKeyNotP256)
  }

  @Test(arguments: ["tls1", "tls1_1"])
  func olderVersionsAreRefused(version: String) throws {
    let end = try refusal("-\(version) -cipher ALL:@SECLEVEL=0")
    #expect(end == .library(code: MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION))
  }

  @Test(arguments: [
    "-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256", "-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256",
    "-tls1_2 -cipher AES128-GCM-SHA256", "-tls1_2 -cipher aNULL:@SECLEVEL=0", "-tls1_2 -groups P-384",
    "-tls1_3 -groups P-384",
  ])
  func otherSuitesAndGroupsAreRefused(options: String) throws {
    #expect(try refusal(options) == .library(code: MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE))
  }

  @Test(arguments: [
    "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256 -groups P-256",
    "-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305 -groups X25519:P-256",
    "-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384 -groups P-256", "-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256",
  ])
  func eachPermittedSuiteAndGroupWorks(options: String) throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out peer.key")
    try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=anybody -days 1")
    let (end, openssl) = try serve("-cert peer.crt -key peer.key \(options)") { $0 != .handshaking }
    #expect(end.stream.state == .established)
    openssl.stop()
  }

  @Test func aServerWithAnRSACertificateIsRefused() throws {
    try scratch.openssl("req -new -x509 -newkey rsa:2048 -nodes -keyout peer.key -out peer.crt -subj /CN=rsa -days 1")
    let openssl = try OpenSSL(scratch, "s_server -accept 127.0.0.1:0 -Verify 1 -cert peer.crt -key peer.key")
    let end = try End(try makeIdentity(), .client)
    let driver = Driver(end, try connect(port: try openssl.port()))
    driver.run { end.stream.state != .handshaking }
    #expect(end.stream.state == .closed(.alert(40)))
    openssl.stop()
  }

  // MARK: - Helpers

  private let exporter = "-keymatexport EXPORTER-causeway-bypass-v1 -keymatexportlen 32"
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

  /// How our server ends a handshake with this client, which never gets as far as being established.
  private func refusal(_ options: String) throws -> SecureStreamEnd? {
    let (end, openssl) = try serve(options) { $0 != .handshaking }
    openssl.stop()
    #expect(end.isEstablishedFirst == nil)
    guard case .closed(let reason) = end.stream.state else { return nil }
    return reason
  }
}

/// A running openssl: fed through a FIFO, its output collected in a file.
final class OpenSSL {
  private let scratch: Scratch
  private let process: pid_t
  private let input: Int32

  init(_ scratch: Scratch, _ arguments: String) throws {
    self.scratch = scratch
    try #require(mkfifo(scratch.file("input"), 0o600) == 0)
    input = csystem_open(scratch.file("input"), O_RDWR | O_CLOEXEC, 0)
    let started = shell("cd \(scratch.path) && { openssl \(arguments) < input > output 2>&1 & echo $!; }")
    process = try #require(pid_t(started.output.dropLast()))
  }

  var output: String { String(decoding: scratch.bytes("output") ?? [], as: UTF8.self) }
  func type(_ text: String) { _ = CSystem.write(input, text, text.utf8.count) }

  /// The port it says that it listens on.
  func port() throws -> UInt16 {
    for _ in 0..<500 {
      if let line = output.split(separator: "\n").first(where: { $0.hasPrefix("ACCEPT ") }),
        let port = line.split(separator: ":").last.flatMap({ UInt16($0) })
      {
        return port
      }
      usleep(10_000)
    }
    return try #require(nil, "openssl s_server does not listen: \(output)")
  }

  /// The test runner blocks SIGTERM, and its children inherit that.
  func stop() { kill(process, SIGKILL) }
  deinit {
    stop()
    close(input)
  }
}

func loopback(port: UInt16) -> sockaddr_in {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  return address
}

private func connect(port: UInt16) throws -> Int32 {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  var address = loopback(port: port)
  let code = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), 16)
    }
  }
  try #require(code == 0)
  return descriptor
}

private final class Listener {
  let descriptor: Int32
  let port: UInt16

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = loopback(port: 0)
    var length = socklen_t(16)
    let descriptor = descriptor
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), 16) | listen(descriptor, 1)
          | getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: $0), &length)
      }
    }
    try #require(code == 0)
    port = UInt16(bigEndian: address.sin_port)
  }
  deinit { close(descriptor) }

  func accept() throws -> Int32 {
    var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    try #require(poll(&wait, 1, 5000) == 1, "openssl does not connect")
    return CSystem.accept(descriptor, __SOCKADDR_ARG(__sockaddr__: nil), nil)
  }
}

/// Moves bytes between a stream and its socket.
private final class Driver {
  private let end: End
  private let descriptor: Int32

  init(_ end: End, _ descriptor: Int32) {
    self.end = end
    self.descriptor = descriptor
  }
  deinit { close(descriptor) }

  /// Until the condition holds, the stream is over or five seconds have passed.
  func run(until isDone: () -> Bool) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let deadline = monotonicSeconds() + 5
    while monotonicSeconds() < deadline {
      while !end.stream.outgoing.isEmpty {
        let bytes = end.stream.outgoing
        let n = send(descriptor, bytes.baseAddress!, bytes.count, Int32(MSG_NOSIGNAL))
        if n <= 0 { return }
        end.stream.consume(n)
      }
      if isDone() { return }
      if case .closed = end.stream.state { return }
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      if poll(&wait, 1, 20) == 1 {
        let n = recv(descriptor, &buffer, buffer.count, 0)
        if n <= 0 {
          end.stream.receiveEnd()
          return
        }
        end.receive(Array(buffer[..<n]))
      }
    }
  }
}

func monotonicSeconds() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec
}
