import CSystem
import Frame
import Identity
import Primitives
import Reactor
import Seal
import SecureTransport

/// Creates two temporary identities: `lower` is the one with the lower id. Returns nil on failure.
func selftestIdentities() -> (lower: NodeIdentity, higher: NodeIdentity)? {
  var template = Array("/tmp/causeway-selftest-XXXXXX".utf8CString)
  guard let made = mkdtemp(&template) else { return nil }
  let directory = String(cString: made)
  defer {
    for end in ["a", "b"] {
      for file in ["node.key", "node.crt"] { unlink("\(directory)/\(end)/\(file)") }
      rmdir("\(directory)/\(end)")
    }
    rmdir(directory)
  }
  guard let a = try? NodeIdentity.loadOrCreate(directory: directory + "/a"),
    let b = try? NodeIdentity.loadOrCreate(directory: directory + "/b")
  else { return nil }
  return a.id < b.id ? (a, b) : (b, a)
}

/// The two ends of a link's TLS session, connected in memory; nil if the handshake fails.
func selftestLink() -> (client: SecureStream, server: SecureStream)? {
  guard let (a, b) = selftestIdentities(), let client = try? SecureStream(TLSCredentials(a), role: .client),
    let server = try? SecureStream(TLSCredentials(b), role: .server)
  else { return nil }
  while !client.outgoing.isEmpty || !server.outgoing.isEmpty {
    selftestCarry(client, server) { _ in }
    selftestCarry(server, client) { _ in }
  }
  guard client.state == .established, server.state == .established, client.peer == b.id, server.peer == a.id else {
    return nil
  }
  client.allowBypass()
  server.allowBypass()
  return (client, server)
}

/// Passes the outgoing bytes of `from` to `to`.
func selftestCarry(_ from: SecureStream, _ to: SecureStream, _ deliver: (SecureStream.Input) -> Void) {
  let bytes = from.outgoing
  to.receive(bytes, deliver)
  from.consume(bytes.count)
}

/// Whether a link's TLS handshake succeeds in memory, and a sealed frame then passes outside the TLS records.
func linkIsSecured() -> Bool {
  guard let (client, server) = selftestLink() else { return false }
  var frame = bytes(ofHex: goldenHeader)
  frame += [1, 2, 3, 4]
  let isWritten = frame.withUnsafeBytes {
    client.writeSealed(
      header: UnsafeRawBufferPointer(rebasing: $0[..<FrameHeader.byteCount]),
      payload: UnsafeRawBufferPointer(rebasing: $0[FrameHeader.byteCount...]))
  }
  var arrived: [UInt8] = []
  selftestCarry(client, server) { input in
    if case .sealed(let header, let payload) = input { arrived = Array(header) + Array(payload) }
  }
  return isWritten && arrived == frame
}

/// The two ends of an end-to-end session between two nodes (DTLS), connected in memory.
struct SelftestSessions {
  let client: any PeerSession
  let server: any PeerSession
  /// The number of datagrams of the handshake, and their bytes without frame headers.
  var datagrams = 0
  var bytes = 0

  /// Performs the handshake between the two identities. Returns nil if the handshake fails.
  init?(_ identities: (lower: NodeIdentity, higher: NodeIdentity)) {
    let now = monotonicNow()
    let (a, b) = identities
    let name = SessionName(local: a.id, peer: b.id, localEpoch: 1, peerEpoch: 2)
    let other = SessionName(local: b.id, peer: a.id, localEpoch: 2, peerEpoch: 1)
    guard let clients = try? DTLSSessions(a), let servers = try? DTLSSessions(b),
      let client = clients.beginSession(name, now: now)
    else { return nil }
    var server: (any PeerSession)?
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SealLimits.handshakeBytesMax, alignment: 16)
    defer { buffer.deallocate() }
    for _ in 0..<8 {
      while true {
        let count = client.nextHandshake(into: buffer)
        if count == 0 { break }
        datagrams += 1
        bytes += count
        let datagram = [UInt8](buffer[..<count])
        switch servers.answerHello(datagram.span.bytes, other, reply: buffer, now: now) {
        case .reply(let count):
          datagrams += 1
          bytes += count
          client.receiveHandshake([UInt8](buffer[..<count]).span.bytes, now: now)
        case .accepted: server = servers.acceptSession(datagram.span.bytes, other, now: now)
        case .refused: server?.receiveHandshake(datagram.span.bytes, now: now)
        }
      }
      while let server {
        let count = server.nextHandshake(into: buffer)
        if count == 0 { break }
        datagrams += 1
        bytes += count
        client.receiveHandshake([UInt8](buffer[..<count]).span.bytes, now: now)
      }
    }
    guard let server, client.state == .established, server.state == .established else { return nil }
    self.client = client
    self.server = server
  }
}

/// Whether an end-to-end DTLS handshake succeeds in memory, a record passes in each direction, and an altered record is
/// refused.
func peersAreSealed() -> Bool {
  guard let identities = selftestIdentities(), let sessions = SelftestSessions(identities) else { return false }
  let text: [UInt8] = [32, 1, 2, 3]
  var record = [UInt8](repeating: 0, count: text.count + SealLimits.overheadBytesMax)
  var plaintext = record
  for (from, to) in [(sessions.client, sessions.server), (sessions.server, sessions.client)] {
    let count = record.withUnsafeMutableBytes { record in text.withUnsafeBytes { from.seal($0, into: record) } }
    var altered = Array(record[..<count])
    altered[count - 1] ^= 1
    guard plaintext.withUnsafeMutableBytes({ to.open(altered.span.bytes, into: $0) }) == nil else { return false }
    let whole = Array(record[..<count])
    guard plaintext.withUnsafeMutableBytes({ to.open(whole.span.bytes, into: $0) }) == text.count else { return false }
    if Array(plaintext[..<text.count]) != text { return false }
  }
  return true
}
