import Primitives
import Seal
import TestSupport

/// The cryptography of a node in tests, based on an `Identity`. This cryptography offers no security.
public final class StandInCryptography: SessionMaker {
  public let identity: Identity
  /// The number of signatures that were made. Tests measure the cost of an event by this number.
  public private(set) var signCount = 0
  /// The number of signatures that were verified.
  public private(set) var verifyCount = 0
  /// The number of sessions that were created.
  public private(set) var sessionCount = 0
  private var random: SeededRandom

  public init(_ identity: Identity) {
    self.identity = identity
    let point = identity.point
    random = SeededRandom(seed: StandInHash.of(point.span.bytes, seed: 4))
  }

  public func sign(_ message: RawSpan) -> InlineArray<64, UInt8> {
    signCount += 1
    return identity.sign(message)
  }

  public func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool {
    verifyCount += 1
    guard Identity.id(of: point) == node, signature.byteCount == 64 else { return false }
    return signature.array == Identity.signature(message, point).span.bytes.array
  }

  public func beginSession(_ name: SessionName, now: Instant) -> (any PeerSession)? {
    sessionCount += 1
    return StandInSession(identity, name, random: random.next(), now: now)
  }

  public func answerHello(
    _ datagram: RawSpan, _ name: SessionName, reply: UnsafeMutableRawBufferPointer, now: Instant
  ) -> HelloAnswer {
    guard let message = StandInMessage(datagram), message.kind == .hello else { return .refused }
    let point = identity.point
    let cookie = StandInHash.of(point.span.bytes, seed: name.peer.low ^ name.peerEpoch ^ name.localEpoch)
    if message.server == cookie { return .accepted }
    let answer = StandInMessage(.verify, client: message.client, server: cookie).encoded()
    reply.copyBytes(from: answer)
    return .reply(byteCount: answer.count)
  }

  public func refuseHello(_ datagram: RawSpan, reply: UnsafeMutableRawBufferPointer) -> Int {
    guard let message = StandInMessage(datagram) else { return 0 }
    let answer = StandInMessage(.busy, client: message.client, server: 0).encoded()
    reply.copyBytes(from: answer)
    return answer.count
  }

  public func acceptSession(_ datagram: RawSpan, _ name: SessionName, now: Instant) -> (any PeerSession)? {
    sessionCount += 1
    let session = StandInSession(identity, name, random: random.next(), now: now)
    session.receiveHandshake(datagram, now: now)
    return session
  }
}
