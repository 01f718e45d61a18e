import CSystem
import FileSupport
import Testing

@testable import Identity
@testable import SecureTransport

// The tests compare the ledger's figures for mbedTLS with the heap. Each test runs in a process of its own, so that the
// heap contains no memory of other tests.

private func heapBytes() -> Int {
  let heap = mallinfo2()
  return Int(heap.uordblks + heap.hblkhd)
}

private let count = 8

/// The memory that the limits allow for a peer's certificate chain. The chains in these tests are one short
/// certificate, so these chains use almost no memory.
private let chainBytes = 16_384 + ChainRules.entriesMax * ChainRules.entryBytes

/// Connects a client and a server, whose streams share only what all streams of a node share. Returns the greatest
/// number of heap bytes during the handshake.
private func connect(_ client: SecureStream, _ server: SecureStream) -> Int {
  var most = 0
  while !client.outgoing.isEmpty || !server.outgoing.isEmpty {
    for (from, to) in [(client, server), (server, client)] {
      let bytes = Array(from.outgoing)
      from.consume(bytes.count)
      bytes.withUnsafeBytes { to.receive($0) { _ in } }
      most = max(most, heapBytes())
    }
  }
  precondition(client.state == .established && server.state == .established)
  client.allowBypass()
  server.allowBypass()
  return most
}

@Test func `the stream of a link uses at most the memory in the ledger`() async {
  await #expect(processExitsWith: .success) {
    let credentials = (TLSCredentials(try makeIdentity()), TLSCredentials(try makeIdentity()))
    var streams: [SecureStream] = []
    var before = 0, mostInHandshake = 0
    // The first pair of streams creates the data that all later streams share, so it is not part of the measurement.
    for round in 0...count {
      let client = try SecureStream(credentials.0, role: .client),
        server = try SecureStream(credentials.1, role: .server)
      let start = heapBytes()
      mostInHandshake = connect(client, server) - start
      streams += [client, server]
      if round == 0 { before = heapBytes() }
    }
    let each = (heapBytes() - before) / (2 * count)
    print("a stream: \(each) bytes of \(SecureMemory.stream); its handshake took \(mostInHandshake / 2) more")
    precondition(each > SecureMemory.stream / 2 && each + chainBytes <= SecureMemory.stream)
    precondition(mostInHandshake / 2 <= SecureMemory.handshakeBytesMax)
  }
}

@Test func `a session uses at most the memory in the ledger`() async {
  await #expect(processExitsWith: .success) {
    var paths = [try Path.established()]
    let before = heapBytes()
    for _ in 0..<count { paths.append(try Path.established()) }
    let each = (heapBytes() - before) / (2 * count)
    print("a session: \(each) bytes of \(SecureMemory.session)")
    precondition(each > SecureMemory.session / 4 && each + chainBytes <= SecureMemory.session)
  }
}
