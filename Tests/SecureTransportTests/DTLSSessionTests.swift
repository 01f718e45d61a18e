import FileSupport
import Frame
import Identity
import Primitives
import Seal
import Testing

@testable import SecureTransport

/// Two nodes with end-to-end sessions, and a path between them that can lose datagrams.
final class Path {
  let identities: (client: NodeIdentity, server: NodeIdentity)
  let sessions: (client: DTLSSessions, server: DTLSSessions)
  var client: (any PeerSession)?
  var server: (any PeerSession)?
  var now = Instant.zero + .seconds(1000)
  var random: SplitMix
  /// The number of datagrams that the path loses per thousand.
  var lossPerThousand = 0
  private(set) var datagrams: [[UInt8]] = []
  private(set) var bytes = 0

  convenience init(seed: UInt64 = 1, directory: (_ identity: Int) throws -> String? = { _ in nil }) throws {
    try self.init(between: [try Self.identity(try directory(0)), try Self.identity(try directory(1))], seed: seed)
  }

  /// Creates the path. The node with the smaller id is the client of the session.
  init(between nodes: [NodeIdentity], seed: UInt64 = 1) throws {
    var made = nodes
    made.sort { $0.id < $1.id }
    identities = (made[0], made[1])
    sessions = (try DTLSSessions(made[0]), try DTLSSessions(made[1]))
    random = SplitMix(state: seed)
  }

  private static func identity(_ directory: String?) throws -> NodeIdentity {
    guard let directory else { return try makeIdentity() }
    return try NodeIdentity.loadOrCreate(directory: directory)
  }

  var clientName: SessionName {
    SessionName(local: identities.client.id, peer: identities.server.id, localEpoch: 5, peerEpoch: 9)
  }
  var serverName: SessionName {
    SessionName(local: identities.server.id, peer: identities.client.id, localEpoch: 9, peerEpoch: 5)
  }

  func begin() { client = sessions.client.beginSession(clientName, now: now) }

  private func isLost() -> Bool { Int.random(in: 0..<1000, using: &random) < lossPerThousand }

  func take(_ session: (any PeerSession)?) -> [[UInt8]] {
    var taken: [[UInt8]] = []
    var buffer = [UInt8](repeating: 0, count: SealLimits.handshakeBytesMax)
    while let session {
      let count = buffer.withUnsafeMutableBytes { session.nextHandshake(into: $0) }
      if count == 0 { break }
      taken.append([UInt8](buffer[..<count]))
    }
    datagrams += taken
    bytes += taken.reduce(0) { $0 + $1.count }
    return taken
  }

  /// Handles a datagram at the server as `Node` does. Returns the replies that need no session.
  func receiveAtServer(_ datagram: [UInt8]) -> [[UInt8]] {
    var reply = [UInt8](repeating: 0, count: SealLimits.handshakeBytesMax)
    let answer = reply.withUnsafeMutableBytes {
      sessions.server.answerHello(datagram.span.bytes, serverName, reply: $0, now: now)
    }
    switch answer {
    case .reply(let count):
      datagrams.append([UInt8](reply[..<count]))
      bytes += count
      return [[UInt8](reply[..<count])]
    case .accepted:
      if let server, server.began(with: datagram.span.bytes) {
        server.receiveHandshake(datagram.span.bytes, now: now)
      } else {
        server = sessions.server.acceptSession(datagram.span.bytes, serverName, now: now)
      }
    case .refused: server?.receiveHandshake(datagram.span.bytes, now: now)
    }
    return []
  }

  /// While `isWaiting` holds, carries datagrams until there are none, then advances time to the next timer.
  func run(while isWaiting: () -> Bool) {
    for _ in 0..<2000 where isWaiting() {
      var isMoving = false
      for datagram in take(client) where !isLost() {
        isMoving = true
        for answer in receiveAtServer(datagram) where !isLost() {
          client?.receiveHandshake(answer.span.bytes, now: now)
        }
      }
      for datagram in take(server) where !isLost() {
        isMoving = true
        client?.receiveHandshake(datagram.span.bytes, now: now)
      }
      if isMoving { continue }
      let next = min(client?.nextDeadline ?? .never, server?.nextDeadline ?? .never)
      if next == .never { return }
      now = max(now, next)
      client?.handleTimeout(now: now)
      server?.handleTimeout(now: now)
    }
  }

  var areEstablished: Bool { client?.state == .established && server?.state == .established }

  static func established() throws -> Path {
    let path = try Path()
    path.begin()
    path.run { !path.areEstablished }
    try #require(path.areEstablished)
    return path
  }
}

private func seal(_ session: (any PeerSession)?, _ plaintext: [UInt8]) -> [UInt8] {
  var record = [UInt8](repeating: 0, count: plaintext.count + SealLimits.overheadBytesMax)
  let count = record.withUnsafeMutableBytes { record in
    plaintext.withUnsafeBytes { session?.seal($0, into: record) ?? 0 }
  }
  return [UInt8](record[..<count])
}

private func open(_ session: (any PeerSession)?, _ record: [UInt8]) -> [UInt8]? {
  var plaintext = [UInt8](repeating: 0, count: max(record.count, 1))
  let count = plaintext.withUnsafeMutableBytes { session?.open(record.span.bytes, into: $0) }
  return count.map { [UInt8](plaintext[..<$0]) }
}

struct DatagramSessionTests {
  @Test func `two nodes prove their keys and encrypt in both directions`() throws {
    let path = try Path.established()
    for count in [1, 64, 1000, 16_384] {
      let text = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      #expect(open(path.server, seal(path.client, text)) == text)
      #expect(open(path.client, seal(path.server, text)) == text)
    }
    #expect(path.client?.peerChain.count == 1 && path.server?.peerChain.count == 1)
    #expect(path.client?.peerChain.first != path.server?.peerChain.first)
    #expect(path.client?.nextDeadline == .never && path.server?.nextDeadline == .never)
    print("inner handshake: \(path.datagrams.count) datagrams, \(path.bytes) bytes")
  }

  @Test func `encryption adds at most the documented overhead`() throws {
    let path = try Path.established()
    let record = seal(path.client, [UInt8](repeating: 7, count: 100))
    #expect(record.count <= 100 + SealLimits.overheadBytesMax - 1)
    #expect(record.prefix(5) == [23, 0xFE, 0xFD, 0, 1])
  }

  @Test func `the server keeps no state before the cookie is returned`() throws {
    let path = try Path()
    path.begin()
    let hello = try #require(path.take(path.client).first)
    let answers = path.receiveAtServer(hello)
    #expect(answers.count == 1 && path.server == nil)
    // A HelloVerifyRequest repeats the record number of the hello, and is no longer than the hello.
    #expect(answers[0][0] == 22 && answers[0][13] == 3 && answers[0][5..<11] == hello[5..<11])
    #expect(answers[0].count <= hello.count)
    let request = answers[0]
    path.client?.receiveHandshake(request.span.bytes, now: path.now)
    let second = try #require(path.take(path.client).first)
    _ = path.receiveAtServer(second)
    #expect(path.server != nil)
  }

  @Test func `a hello that is copied endlessly causes at most eight retransmissions`() throws {
    let path = try Path()
    path.begin()
    let first = try #require(path.take(path.client).first)
    let request = try #require(path.receiveAtServer(first).first)
    path.client?.receiveHandshake(request.span.bytes, now: path.now)
    var hello = try #require(path.take(path.client).first)
    _ = path.receiveAtServer(hello)
    let flight = path.take(path.server).count
    #expect(flight > 0)
    var repeats = 0
    for number in 1...50 {
      // Each repeated hello has a record number that the server has not received yet.
      hello[9] = UInt8(number)
      _ = path.receiveAtServer(hello)
      let again = path.take(path.server).count
      #expect(again == 0 || again == flight)
      if again > 0 { repeats += 1 }
    }
    #expect(repeats == DTLSSession.repeatsMax && path.server?.state == .handshaking)
  }

  @Test func `a cookie is valid for one pair of epochs and for at most two minutes`() throws {
    let cookies = try HelloCookies()
    let path = try Path()
    let cookie = cookies.make(path.serverName, now: path.now)
    #expect(cookies.check(cookie, path.serverName, now: path.now))
    #expect(!cookies.check(cookie, path.clientName, now: path.now))
    var later = path.serverName
    later.peerEpoch += 1
    #expect(!cookies.check(cookie, later, now: path.now))
    #expect(!cookies.check(cookie, path.serverName, now: path.now + .seconds(121)))
    #expect(!cookies.check([], path.serverName, now: path.now))
    #expect(!(try HelloCookies().check(cookie, path.serverName, now: path.now)))
  }

  @Test(arguments: 1...8)
  func `a handshake completes over a path that loses a fifth of its frames`(seed: UInt64) throws {
    let path = try Path(seed: seed)
    path.lossPerThousand = 200
    path.begin()
    path.run { !path.areEstablished && path.client?.state == .handshaking }
    // The client finishes last. If the server's last flight is lost, the client repeats its own flight, and the server
    // sends its last flight again.
    #expect(path.client?.state == .established && path.server?.state == .established)
    #expect(open(path.server, seal(path.client, [1, 2, 3])) == [1, 2, 3])
    print("20 % loss, seed \(seed): \((path.now - (.zero + .seconds(1000))).milliseconds) ms, \(path.bytes) bytes")
  }

  @Test func `a long certificate chain is sent in pieces`() throws {
    let scratch = Scratch()
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out node.key")
    try scratch.openssl("req -new -x509 -key node.key -out node.crt -subj /CN=leaf -days 1")
    for number in 0..<8 {
      try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out ca.key")
      try scratch.openssl("req -new -x509 -key ca.key -out ca.crt -subj /CN=authority-\(number) -days 1")
      _ = shell("cat \(scratch.file("ca.crt")) >> \(scratch.file("node.crt"))")
    }
    try scratch.chmod("node.key", 0o600)
    let path = try Path { $0 == 0 ? scratch.path : nil }
    path.begin()
    path.run { !path.areEstablished }
    #expect(path.areEstablished)
    #expect(path.datagrams.allSatisfy { $0.count <= SealLimits.handshakeBytesMax })
    #expect(Set([path.client?.peerChain.count, path.server?.peerChain.count]) == [1, 9])
  }

  @Test func `a key other than the expected one is refused by either end`() throws {
    let path = try Path()
    let stranger = try makeIdentity()
    let impostor = try DTLSSessions(stranger)
    // A node with another key answers in place of the server.
    path.begin()
    var hello = try #require(path.take(path.client).first)
    let answer = try #require(path.receiveAtServer(hello).first)
    path.client?.receiveHandshake(answer.span.bytes, now: path.now)
    hello = try #require(path.take(path.client).first)
    path.server = impostor.acceptSession(hello.span.bytes, path.serverName, now: path.now)
    path.run { path.client?.state == .handshaking }
    #expect(path.client?.state == .failed(.wrongIdentity))
    // A node with another key sends a hello under the client's name.
    path.server = nil
    path.client = impostor.beginSession(path.clientName, now: path.now)
    path.run { path.server == nil || path.server?.state == .handshaking }
    #expect(path.server?.state == .failed(.wrongIdentity))
  }

  @Test func `a record is decrypted once, in any order, and never if it was altered`() throws {
    let path = try Path.established()
    let records = (0..<20).map { seal(path.client, [UInt8($0)]) }
    for index in [3, 0, 7, 1, 19, 2] { #expect(open(path.server, records[index]) == [UInt8(index)]) }
    for index in [3, 0, 19] { #expect(open(path.server, records[index]) == nil) }
    let victim = records[5]
    for index in victim.indices {
      var altered = victim
      altered[index] ^= 1 << UInt8(index % 8)
      #expect(open(path.server, altered) == nil, "byte \(index)")
    }
    #expect(open(path.server, [UInt8](victim.dropLast())) == nil && open(path.server, victim + [0]) == nil)
    #expect(open(path.server, []) == nil && open(path.client, victim) == nil)
    // After the wrong records the session still works.
    #expect(open(path.server, victim) == [5])
  }

  @Test func `a record of another session is not decrypted`() throws {
    let path = try Path.established()
    let former = seal(path.client, [1])
    path.begin()
    path.server = nil
    path.run { !path.areEstablished }
    #expect(open(path.server, former) == nil)
    #expect(open(path.server, seal(path.client, [2])) == [2])
  }

  @Test func `messages of the handshake do not affect an established session`() throws {
    let path = try Path.established()
    for datagram in path.datagrams {
      path.server?.receiveHandshake(datagram.span.bytes, now: path.now)
      path.client?.receiveHandshake(datagram.span.bytes, now: path.now)
      // The same datagram also arrives behind a record that the session skips.
      let hidden: [UInt8] = [20, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 1] + datagram
      path.server?.receiveHandshake(hidden.span.bytes, now: path.now)
    }
    #expect(path.areEstablished)
    #expect(open(path.server, seal(path.client, [1])) == [1])
    #expect(open(path.client, seal(path.server, [2])) == [2])
  }

  @Test func `every truncated and every altered handshake message is handled`() throws {
    let good = try Path.established()
    let path = try Path()
    for datagram in good.datagrams {
      for length in stride(from: 0, to: datagram.count, by: 7) {
        path.begin()
        let prefix = [UInt8](datagram[..<length])
        path.client?.receiveHandshake(prefix.span.bytes, now: path.now)
        _ = path.receiveAtServer(prefix)
      }
    }
    path.server = nil
    path.begin()
    let hello = try #require(path.take(path.client).first)
    for index in hello.indices {
      var altered = hello
      altered[index] ^= 0xFF
      _ = path.receiveAtServer(altered)
      #expect(path.server == nil)
    }
  }

  @Test func `a handshake with a node that becomes silent times out`() throws {
    let path = try Path()
    path.lossPerThousand = 1000
    path.begin()
    let start = path.now
    path.run { path.client?.state == .handshaking }
    #expect(path.client?.state == .failed(.timedOut))
    #expect(path.now - start <= SealLimits.handshakeTime)
  }

  /// The client's second hello, which contains the server's cookie.
  private func secondHello(_ path: Path) throws -> [UInt8] {
    path.begin()
    let first = try #require(path.take(path.client).first)
    let answer = try #require(path.receiveAtServer(first).first)
    path.client?.receiveHandshake(answer.span.bytes, now: path.now)
    return try #require(path.take(path.client).first)
  }

  @Test func `a client is notified if no slot is free for its hello`() throws {
    let path = try Path()
    let hello = try secondHello(path)
    var reply = [UInt8](repeating: 0, count: SealLimits.handshakeBytesMax)
    let count = reply.withUnsafeMutableBytes { path.sessions.server.refuseHello(hello.span.bytes, reply: $0) }
    path.client?.receiveHandshake(reply.span.bytes.extracting(..<count), now: path.now)
    #expect(path.client?.state == .failed(.busy))
  }

  @Test func `a handshake that one end abandons ends at the other end at once`() throws {
    for isServer in [true, false] {
      let path = try Path()
      let hello = try secondHello(path)
      _ = path.receiveAtServer(hello)
      let (leaver, other) = isServer ? (path.server, path.client) : (path.client, path.server)
      leaver?.abandon()
      #expect(leaver?.state == .failed(.displaced))
      let told = path.take(leaver)
      #expect(told.count == 1)
      for datagram in told { other?.receiveHandshake(datagram.span.bytes, now: path.now) }
      #expect(other?.state == .failed(.busy))
    }
  }

  @Test func `a cookie does not count as progress of a handshake`() throws {
    let path = try Path()
    path.begin()
    let first = try #require(path.take(path.client).first)
    let before = path.client?.progress
    let cookie = try #require(path.receiveAtServer(first).first)
    path.client?.receiveHandshake(cookie.span.bytes, now: path.now)
    #expect(path.client?.state == .handshaking && path.client?.progress == before)
  }

  @Test func `only new handshake messages count as progress`() throws {
    let path = try Path()
    let hello = try secondHello(path)
    _ = path.receiveAtServer(hello)
    let flight = path.take(path.server)
    let before = try #require(path.server?.progress)
    for _ in 0..<3 { _ = path.receiveAtServer(hello) }
    path.server?.receiveHandshake([UInt8](repeating: 0, count: 40).span.bytes, now: path.now)
    #expect(path.server?.progress == before)
    for datagram in flight { path.client?.receiveHandshake(datagram.span.bytes, now: path.now) }
    for datagram in path.take(path.client) { _ = path.receiveAtServer(datagram) }
    #expect(try #require(path.server?.progress) > before && path.server?.state == .established)
  }

  @Test func `no plaintext is visible in a record`() throws {
    let path = try Path.established()
    let canary = Array("the canary sings at noon".utf8)
    let record = seal(path.client, [32] + canary)
    #expect(!record.indices.contains { record[$0...].starts(with: canary.prefix(8)) })
    #expect(open(path.server, record) == [32] + canary)
  }
}

struct SealOverDatagramSessionsTests {
  @Test func `a session of the module Seal works over DTLS`() throws {
    let path = try Path()
    let flags = TopologyFlags(relays: false, encryption: .required)
    let client = Seal(
      local: path.identities.client.id, peer: path.identities.server.id, localEpoch: 5, peerEpoch: 9, ownFlags: flags,
      peerFlags: flags)
    let server = Seal(
      local: path.identities.server.id, peer: path.identities.client.id, localEpoch: 9, peerEpoch: 5, ownFlags: flags,
      peerFlags: flags)
    client.isWanted = true
    #expect(client.needsSession(now: path.now))
    client.begin(path.sessions.client.beginSession(path.clientName, now: path.now), now: path.now)
    var buffer = [UInt8](repeating: 0, count: 20_000)
    var plaintext = [UInt8](repeating: 0, count: 20_000)
    func receiveAtServer(_ datagram: [UInt8]) {
      let hello = datagram.span.bytes
      var reply = [UInt8](repeating: 0, count: SealLimits.handshakeBytesMax)
      let answer = reply.withUnsafeMutableBytes {
        path.sessions.server.answerHello(hello, server.sessionName, reply: $0, now: path.now)
      }
      switch answer {
      case .reply(let count):
        let request = [UInt8](reply[..<count])
        client.receiveHandshake(request.span.bytes, now: path.now)
      case .accepted:
        if server.receiveAgain(hello, now: path.now) { return }
        if let made = path.sessions.server.acceptSession(hello, server.sessionName, now: path.now) {
          server.accept(made, now: path.now)
        }
      case .refused: server.receiveHandshake(hello, now: path.now)
      }
    }
    func move(_ from: Seal, _ to: Seal) {
      while let frame = buffer.withUnsafeMutableBytes({ from.nextFrame(into: $0, now: path.now) }) {
        switch frame {
        case .handshake(let count):
          let datagram = [UInt8](buffer[16..<count])
          if to === client {
            to.receiveHandshake(datagram.span.bytes, now: path.now)
          } else {
            receiveAtServer(datagram)
          }
        case .sealed(let count):
          let record = [UInt8](buffer[..<count])
          let opened = plaintext.withUnsafeMutableBytes { to.open(record.span.bytes, into: $0, now: path.now) }
          #expect(opened == .hello(channelEpoch: from.localEpoch))
        }
      }
    }
    for _ in 0..<10 {
      move(client, server)
      move(server, client)
    }
    #expect(client.isOpen && server.isOpen)
  }
}
