import CSystem
import Channel
import FuzzSupport
import Identity
import Primitives
import Seal
import SecureTransport

/// Decodes any bytes as a sealed hello, the first message in a new DTLS session. Passes the bytes as datagrams and
/// records to both ends of an established DTLS session, which must continue. Also passes the bytes to a server as the
/// datagrams of a handshake, each after its length in the input.
func fuzzSealing(_ input: UnsafeRawBufferPointer) {
  if let hello = try? SealHello(input.bytes) {
    var bytes = [UInt8](repeating: 0, count: SealHello.byteCount)
    bytes.withUnsafeMutableBytes { hello.encode(into: $0) }
    expect((try? SealHello(bytes.span.bytes)) == hello, "a hello is written otherwise than it was read")
  }
  pair.disturb(input)
  pair.shakeHands(Script(input))
}

nonisolated(unsafe) private let pair = Pair()

/// Two nodes and the DTLS session between them, created once for all inputs.
private final class Pair {
  private let ends: [DTLSSessions]
  private let names: [SessionName]
  private let sessions: [any PeerSession]
  private let now = Instant.zero + .seconds(1000)
  private nonisolated(unsafe) static let space = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SealLimits.plaintextBytesMax + SealLimits.overheadBytesMax, alignment: 16)

  init() {
    let identities = [Self.identity(), Self.identity()].sorted { $0.id < $1.id }
    ends = identities.compactMap { try? DTLSSessions($0) }
    names = [0, 1].map { end in
      SessionName(local: identities[end].id, peer: identities[1 - end].id, localEpoch: 1, peerEpoch: 1)
    }
    guard ends.count == 2, let client = ends[0].beginSession(names[0], now: now) else { fatalError("no client") }
    var server: (any PeerSession)?
    for _ in 0..<20 {
      for datagram in Self.take(client) {
        let bytes = datagram.span.bytes
        if let server {
          server.receiveHandshake(bytes, now: now)
        } else {
          switch ends[1].answerHello(bytes, names[1], reply: Self.space, now: now) {
          case .accepted: server = ends[1].acceptSession(bytes, names[1], now: now)
          case .reply(let byteCount): client.receiveHandshake(Array(Self.space[..<byteCount]).span.bytes, now: now)
          case .refused: fatalError("an honest hello is refused")
          }
        }
      }
      if let server { for datagram in Self.take(server) { client.receiveHandshake(datagram.span.bytes, now: now) } }
    }
    guard let server, client.state == .established, server.state == .established else { fatalError("no session") }
    sessions = [client, server]
  }

  /// Checks that foreign, altered and repeated records are dropped, and that later valid records are still accepted.
  func disturb(_ input: UnsafeRawBufferPointer) {
    if input.count > Self.space.count { return }
    for end in 0..<2 {
      sessions[end].receiveHandshake(input.bytes, now: now)
      _ = Self.take(sessions[end])
      expect(sessions[end].open(input.bytes, into: Self.space) == nil, "foreign bytes are opened")
      expect(sessions[end].state == .established, "an established session ends")
    }
    let record = seal(Array("what one node says to the other".utf8))
    var altered = record
    for (index, byte) in input.enumerated() where index < altered.count { altered[index] ^= byte }
    if altered != record {
      expect(sessions[1].open(altered.span.bytes, into: Self.space) == nil, "an altered record is opened")
    }
    expect(sessions[1].open(record.span.bytes, into: Self.space) != nil, "a good record is not opened")
    expect(sessions[1].open(record.span.bytes, into: Self.space) == nil, "a record is opened twice")
  }

  func shakeHands(_ script: consuming Script) {
    let hello = Array(script.bytes(Int(script.u16())))
    _ = ends[1].answerHello(hello.span.bytes, names[1], reply: Self.space, now: now)
    guard let server = ends[1].acceptSession(hello.span.bytes, names[1], now: now) else { fatalError("no memory") }
    while !script.isOver {
      let datagram = Array(script.bytes(Int(script.u16())))
      server.receiveHandshake(datagram.span.bytes, now: now)
      _ = Self.take(server)
      expect(server.state != .established, "a session with nobody")
    }
  }

  private func seal(_ plaintext: [UInt8]) -> [UInt8] {
    var record = [UInt8](repeating: 0, count: plaintext.count + SealLimits.overheadBytesMax)
    let count = plaintext.withUnsafeBytes { plaintext in
      record.withUnsafeMutableBytes { sessions[0].seal(plaintext, into: $0) }
    }
    return Array(record.prefix(count))
  }

  private static func take(_ session: any PeerSession) -> [[UInt8]] {
    var datagrams: [[UInt8]] = []
    while true {
      let count = session.nextHandshake(into: space)
      if count == 0 { return datagrams }
      datagrams.append(Array(space[..<count]))
      expect(datagrams.count < 1000, "a handshake without an end")
    }
  }

  private static func identity() -> NodeIdentity {
    var path = Array("/tmp/causeway-fuzz-XXXXXX".utf8CString)
    let directory = path.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
    guard let identity = try? NodeIdentity.loadOrCreate(directory: directory) else { fatalError("no identity") }
    for file in ["node.key", "node.crt"] { unlink("\(directory)/\(file)") }
    rmdir(directory)
    return identity
  }
}
