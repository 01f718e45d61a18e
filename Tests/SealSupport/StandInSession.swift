import Primitives
import Seal
import TestSupport

/// A datagram of the stand-in handshake. The datagrams are, in order: hello, verify with a cookie, hello with that
/// cookie, proof, finish, finished.
///
/// `busy` is the answer if the server has no slot, or no longer has one. Proof and finish have the sender's public
/// point. Each datagram ends with a hash over the complete message.
struct StandInMessage {
  enum Kind: UInt8 { case hello = 1, verify, proof, finish, finished, busy }

  static let byteCount = 90
  var kind: Kind
  var client: UInt64
  /// In hello and verify, the cookie. In later messages, the server's random number.
  var server: UInt64
  var point: [UInt8]

  init(_ kind: Kind, client: UInt64, server: UInt64, point: [UInt8] = [UInt8](repeating: 0, count: 65)) {
    self.kind = kind
    self.client = client
    self.server = server
    self.point = point
  }

  init?(_ bytes: RawSpan) {
    let octets = bytes.array
    guard octets.count == Self.byteCount, let kind = Kind(rawValue: octets[0]) else { return nil }
    self.init(
      kind, client: Self.word(octets[1..<9]), server: Self.word(octets[9..<17]), point: [UInt8](octets[17..<82]))
    guard octets == encoded() else { return nil }
  }

  func encoded() -> [UInt8] {
    let body = [kind.rawValue] + Self.octets(client) + Self.octets(server) + point
    let seal = StandInHash.of(point.span.bytes, seed: 3)
    return body + Self.octets(StandInHash.of(body.span.bytes, seed: seal))
  }

  static func word(_ octets: ArraySlice<UInt8>) -> UInt64 { octets.reduce(0) { $0 << 8 | UInt64($1) } }
  static func octets(_ word: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
  }
}

/// A session without cryptography that behaves like DTLS, with cookies, retransmission, a replay window, and a record
/// layout with the same fields. The content of a record cannot be read on the wire.
public final class StandInSession: PeerSession {
  public private(set) var state = SessionState.handshaking
  public private(set) var peerChain: [[UInt8]] = []
  public private(set) var nextDeadline = Instant.never
  public private(set) var progress: UInt32 = 0

  private let identity: Identity
  private let name: SessionName
  private let random: UInt64
  private var message: StandInMessage
  private var outgoing: [[UInt8]] = []
  private var pause = TimeSpan.milliseconds(500)
  private var clientRandom: UInt64
  private var key: UInt64 = 0
  private var sealed: UInt64 = 0
  private var highest: UInt64 = 0
  private var window: UInt64 = 0

  private static let headerBytes = 13
  private static let tagBytes = 16
  private static let retransmissionMax = TimeSpan.seconds(8)

  init(_ identity: Identity, _ name: SessionName, random: UInt64, now: Instant) {
    self.identity = identity
    self.name = name
    self.random = random
    clientRandom = name.isClient ? random : 0
    message = StandInMessage(.hello, client: random, server: 0)
    if name.isClient { transmit(message, now) }
  }

  /// The first datagram of a handshake: a hello without cookie.
  public static func hello(random: UInt64) -> [UInt8] { StandInMessage(.hello, client: random, server: 0).encoded() }

  public func began(with hello: RawSpan) -> Bool { StandInMessage(hello)?.client == clientRandom }

  public func receiveHandshake(_ datagram: RawSpan, now: Instant) {
    guard let received = StandInMessage(datagram) else { return }
    if case .failed = state { return }
    switch (received.kind, name.isClient) {
    case (.verify, true):
      guard state == .handshaking, message.kind == .hello, received.client == random else { return }
      transmit(StandInMessage(.hello, client: random, server: received.server), now)
    case (.hello, false):
      guard state == .handshaking else { return }
      clientRandom = received.client
      transmit(StandInMessage(.proof, client: clientRandom, server: random, point: identity.point), now)
    case (.proof, true):
      guard state == .handshaking, message.kind == .hello, received.client == random else { return }
      guard prove(received) else { return }
      transmit(StandInMessage(.finish, client: random, server: received.server, point: identity.point), now)
    case (.finish, false):
      guard received.client == clientRandom, received.server == random else { return }
      if state == .handshaking {
        guard prove(received) else { return }
        establish(received, now)
      }
      outgoing.append(StandInMessage(.finished, client: clientRandom, server: random, point: identity.point).encoded())
    case (.finished, true):
      guard state == .handshaking, message.kind == .finish, received.client == random else { return }
      establish(received, now)
    case (.busy, _):
      guard state == .handshaking, received.client == clientRandom else { return }
      fail(.busy)
    case (.verify, false), (.hello, true), (.proof, false), (.finish, true), (.finished, false): return
    }
  }

  public func abandon() {
    guard state == .handshaking else { return }
    outgoing = [StandInMessage(.busy, client: clientRandom, server: 0).encoded()]
    fail(.displaced)
  }

  public func nextHandshake(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    if outgoing.isEmpty { return 0 }
    let datagram = outgoing.removeFirst()
    buffer.copyBytes(from: datagram)
    return datagram.count
  }

  public func handleTimeout(now: Instant) {
    guard nextDeadline <= now, state == .handshaking else { return }
    if pause > Self.retransmissionMax {
      state = .failed(.timedOut)
      nextDeadline = .never
    } else {
      transmit(message, now)
    }
  }

  public func seal(_ plaintext: UnsafeRawBufferPointer, into record: UnsafeMutableRawBufferPointer) -> Int {
    guard state == .established else { return 0 }
    let count = plaintext.count + Self.tagBytes
    for (index, byte) in ([23, 0xfe, 0xfd, 0, 1] as [UInt8]).enumerated() { record[index] = byte }
    for index in 0..<6 { record[5 + index] = UInt8(truncatingIfNeeded: sealed >> UInt64(40 - 8 * index)) }
    record[11] = UInt8(count >> 8)
    record[12] = UInt8(count & 0xff)
    let body = UnsafeMutableRawBufferPointer(rebasing: record[Self.headerBytes..<Self.headerBytes + plaintext.count])
    let key = key(isClient: name.isClient, sealed)
    mask(plaintext, key, into: body)
    writeTag(
      of: plaintext, key, to: UnsafeMutableRawBufferPointer(rebasing: record[(Self.headerBytes + plaintext.count)...]))
    sealed += 1
    return Self.headerBytes + count
  }

  public func open(_ record: RawSpan, into plaintext: UnsafeMutableRawBufferPointer) -> Int? {
    guard state == .established, record.byteCount > Self.headerBytes + Self.tagBytes else { return nil }
    return record.withUnsafeBytes { record -> Int? in
      guard record[0] == 23, record[1] == 0xfe, record[2] == 0xfd, record[3] == 0, record[4] == 1,
        Int(record[11]) << 8 | Int(record[12]) == record.count - Self.headerBytes
      else { return nil }
      let sequence = record[5..<11].reduce(0) { $0 << 8 | UInt64($1) }
      guard isFresh(sequence) else { return nil }
      let count = record.count - Self.headerBytes - Self.tagBytes
      let body = UnsafeRawBufferPointer(rebasing: record[Self.headerBytes..<Self.headerBytes + count])
      let key = key(isClient: !name.isClient, sequence)
      let opened = UnsafeMutableRawBufferPointer(rebasing: plaintext[..<count])
      mask(body, key, into: opened)
      var tag = (UInt64(0), UInt64(0))
      let isAuthentic = withUnsafeMutableBytes(of: &tag) { tag in
        writeTag(of: UnsafeRawBufferPointer(opened), key, to: tag)
        return tag.elementsEqual(record[(record.count - Self.tagBytes)...])
      }
      guard isAuthentic else { return nil }
      remember(sequence)
      return count
    }
  }

  // MARK: Inside

  private func transmit(_ message: StandInMessage, _ now: Instant) {
    if message.kind != self.message.kind { progress += 1 }
    if message.kind != self.message.kind || message.server != self.message.server { pause = .milliseconds(500) }
    self.message = message
    outgoing.append(message.encoded())
    nextDeadline = now + pause
    pause = pause * 2
  }

  /// Returns whether the message proves the key of the expected peer. If not, the session fails.
  private func prove(_ received: StandInMessage) -> Bool {
    if Identity.id(of: received.point.span.bytes) == name.peer { return true }
    fail(.wrongIdentity)
    return false
  }

  private func fail(_ reason: SessionFailure) {
    state = .failed(reason)
    nextDeadline = .never
  }

  private func establish(_ received: StandInMessage, _ now: Instant) {
    let randoms = StandInMessage.octets(received.client) + StandInMessage.octets(received.server)
    key = StandInHash.of(randoms.span.bytes, seed: 9)
    peerChain = [received.point]
    progress += 1
    state = .established
    nextDeadline = .never
  }

  private func key(isClient: Bool, _ sequence: UInt64) -> UInt64 {
    var random = SeededRandom(seed: key ^ (isClient ? 1 : 2) ^ sequence << 2)
    return random.next()
  }

  private func mask(
    _ input: UnsafeRawBufferPointer, _ key: UInt64, into output: UnsafeMutableRawBufferPointer
  ) {
    var stream = SeededRandom(seed: key)
    var offset = 0
    while offset + 8 <= input.count {
      let word = input.loadUnaligned(fromByteOffset: offset, as: UInt64.self) ^ stream.next()
      output.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
      offset += 8
    }
    let last = stream.next()
    for index in offset..<input.count {
      output[index] = input[index] ^ UInt8(truncatingIfNeeded: last >> UInt64(8 * (index - offset)))
    }
  }

  private func writeTag(of plaintext: UnsafeRawBufferPointer, _ key: UInt64, to tag: UnsafeMutableRawBufferPointer) {
    tag.storeBytes(of: StandInHash.of(plaintext.bytes, seed: key ^ 5), toByteOffset: 0, as: UInt64.self)
    tag.storeBytes(of: StandInHash.of(plaintext.bytes, seed: key ^ 6), toByteOffset: 8, as: UInt64.self)
  }

  /// Whether a record is new by the anti-replay window of 64 records (RFC 6347, 4.1.2.6).
  private func isFresh(_ sequence: UInt64) -> Bool {
    if window == 0 || sequence > highest { return true }
    return highest - sequence < 64 && window & 1 << (highest - sequence) == 0
  }

  private func remember(_ sequence: UInt64) {
    if window == 0 || sequence > highest {
      let shift = window == 0 ? 64 : sequence - highest
      window = (shift < 64 ? window << shift : 0) | 1
      highest = sequence
    } else {
      window |= 1 << (highest - sequence)
    }
  }
}
