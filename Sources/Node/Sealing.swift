import Channel
import Frame
import Journal
import Mesh
import Primitives
import Seal

/// How what is said in an association is kept from those who carry it.
enum Protection {
  /// Not at all: both nodes said so, signed.
  case clear
  case sealed(Seal)
  /// One node requires what the other does not do, or the other's key is refused here.
  case refused(SealRefusal)

  var seal: Seal? {
    switch self {
    case .sealed(let seal): seal
    case .clear, .refused: nil
    }
  }

  /// Why nothing is said, if nothing is.
  var refusal: SealRefusal? {
    switch self {
    case .clear: nil
    case .sealed(let seal): seal.refusal
    case .refused(let reason): reason
    }
  }

  /// Whether payloads may leave.
  var mayFlow: Bool {
    switch self {
    case .clear: true
    case .sealed(let seal): seal.isOpen
    case .refused: false
    }
  }

  /// Nothing has shown yet that the peer is who it claims to be, and nothing is about to.
  var isUnproven: Bool {
    switch self {
    case .clear: false
    case .sealed(let seal): !seal.isOpen && !seal.isHandshaking && !seal.isDeciding
    case .refused: true
    }
  }

  /// What a route leaves for the payloads of a channel.
  func payloadBytesMax(_ route: Route) -> Int {
    switch self {
    case .clear: route.payloadBytesMax
    case .sealed, .refused:
      min(route.payloadBytesMax - SealLimits.overheadBytesMax, SealLimits.plaintextBytesMax - 1)
    }
  }
}

/// Certificates of peers, for the application.
extension Node {
  /// The application's word on a peer. Without one for `SealLimits.decisionTime` the peer is refused.
  public func decide(_ peer: NodeID, isAccepted: Bool, now: Instant) {
    guard let association = associations.association(with: peer) else { return }
    association.protection.seal?.decide(isAccepted: isAccepted, now: now)
    pumpAssociations(now)
  }
}

/// Sealing what this node says, and opening what it is told.
extension Node {
  /// How this node and `peer` talk, by what both signed; nil when the peer's word is not known.
  func protection(of peer: NodeID) -> Protection? {
    if let trust, trust.refuses(peer) { return .refused(.rejected) }
    guard let epoch = mesh.epoch(of: peer), let flags = flags(of: peer, in: epoch) else { return nil }
    switch EncryptionPreference.agreement(settings.encryption, flags.encryption) {
    case .clear: return .clear
    case .refused: return .refused(.preferences)
    case .sealed:
      return .sealed(
        Seal(
          local: settings.id, peer: peer, localEpoch: settings.epoch, peerEpoch: epoch,
          ownFlags: settings.topologyFlags, peerFlags: flags, lifetime: settings.sessionLifetime,
          asksApplication: settings.asksApplication))
    }
  }

  /// Whether `peer` is to be believed what everybody on the way could have written: both nodes chose not to seal. Nil when
  /// nothing is known of it.
  public func isClear(with peer: NodeID) -> Bool? {
    guard let protection = associations.association(with: peer)?.protection ?? protection(of: peer) else { return nil }
    if case .clear = protection { return true }
    return false
  }

  /// Peers that live again, as their advertisements say, begin anew: also one that lost its counter, or whose double has
  /// gone, once what was advertised under the later epoch has aged out.
  func renewProtection() {
    for association in associations.all {
      guard let epoch = mesh.epoch(of: association.peer), epoch != association.epoch,
        let protection = protection(of: association.peer)
      else { continue }
      if epoch < association.epoch { association.channel.remoteRestarted(epoch: epoch) }
      association.epoch = epoch
      association.protection = protection
      // The path's room for payloads may be another.
      association.route = nil
    }
  }

  /// See to the sessions of an association: begin, renew, send what they have to say.
  func tend(_ association: Association, _ now: Instant) {
    associations.revive(association, now: now)
    guard let seal = association.protection.seal else { return }
    seal.isWanted = association.channel.hasUnfinishedSends
    if let route = association.route {
      if seal.needsSession(now: now) {
        seal.begin(
          handshakeCount < SealLimits.handshakesMax ? cryptography.beginSession(seal.sessionName, now: now) : nil,
          now: now)
      }
      while let frame = seal.nextFrame(into: sealScratch, now: now) {
        switch frame {
        case .handshake(let count): _ = queue(.handshake, sealScratch[..<count], .interactive, association.peer, route)
        case .sealed(let count): _ = queue(.sealed, sealScratch[..<count], .interactive, association.peer, route)
        }
      }
    }
    while let event = seal.nextEvent() { note(event, association, now) }
  }

  /// Send the payload that stands behind the first byte of `payloadScratch`, sealed where it has to be.
  func sendPayload(_ type: FrameType, _ byteCount: Int, _ priority: FramePriority, to association: Association)
    -> Bool
  {
    guard let route = association.route else { return false }
    let plaintext = UnsafeMutableRawBufferPointer(rebasing: payloadScratch[..<(1 + byteCount)])
    switch association.protection {
    case .clear: return queue(type, plaintext[1...], priority, association.peer, route)
    case .sealed(let seal):
      plaintext[0] = type.rawValue
      let count = seal.seal(UnsafeRawBufferPointer(plaintext), into: sealScratch)
      return count > 0 && queue(.sealed, sealScratch[..<count], priority, association.peer, route)
    case .refused: return false
    }
  }

  /// A sealed payload for this node.
  func receiveSealed(_ header: FrameHeader, _ payload: RawSpan, _ now: Instant) throws(FrameRefusal) {
    guard let association = associations.association(with: header.source) else {
      requestSession(header.source, now)
      throw .notOpened
    }
    guard let seal = association.protection.seal else { throw .unexpected }
    guard let opened = seal.open(payload, into: payloadScratch, now: now) else {
      seal.noteUndecryptable(now: now)
      throw .notOpened
    }
    switch opened {
    case .hello: break
    case .payload(let octet, let byteCount):
      guard let type = FrameType(rawValue: octet) else { throw .unknownType }
      guard byteCount > 0 else { throw .truncated }
      let bytes = UnsafeRawBufferPointer(rebasing: payloadScratch[1..<1 + byteCount]).bytes
      switch type {
      case .segment, .acknowledgement, .datagram, .reset: try take(type, bytes, association, now)
      case .hello, .ping, .pong, .goodbye, .advertisement, .denyList, .handshake, .sealed: throw .unexpected
      }
    }
  }

  /// A datagram of a handshake, or the wish for one.
  func receiveHandshake(_ header: FrameHeader, _ payload: RawSpan, _ now: Instant) throws(FrameRefusal) {
    var reader = ByteReader(payload)
    let meant = try reader.u64()
    let epoch = try reader.u64()
    // Epochs are believed when they are signed; the other end tries again.
    guard meant == settings.epoch, epoch == mesh.epoch(of: header.source) else { throw .stale }
    let name = SessionName(
      local: settings.id, peer: header.source, localEpoch: settings.epoch, peerEpoch: epoch)
    let datagram = try reader.span(reader.remaining)
    if datagram.byteCount == 0 {
      guard name.isClient, let association = try? association(with: header.source, now) else { throw .unexpected }
      association.protection.seal?.noteUndecryptable(now: now)
      return
    }
    switch name.isClient ? .refused : cryptography.answerHello(datagram, name, reply: sealReply, now: now) {
    case .refused:
      guard let seal = associations.association(with: header.source)?.protection.seal, seal.peerEpoch == epoch else {
        throw .unexpected
      }
      seal.receiveHandshake(datagram, now: now)
    case .reply(let byteCount):
      guard let route = mesh.route(to: header.source) else { throw .unexpected }
      writeEpochs(epoch)
      let end = SealLimits.handshakeHeaderBytes + byteCount
      _ = queue(.handshake, sealScratch[..<end], .interactive, header.source, route)
    case .accepted: try acceptSession(datagram, name, now)
    }
  }

  private func acceptSession(_ hello: RawSpan, _ name: SessionName, _ now: Instant) throws(FrameRefusal) {
    guard let seal = (try? association(with: name.peer, now))?.protection.seal, seal.peerEpoch == name.peerEpoch else {
      throw .unexpected
    }
    if seal.receiveAgain(hello, now: now) { return }
    guard seal.mayAccept(now: now) else { throw .unexpected }
    guard handshakeCount < SealLimits.handshakesMax, let session = cryptography.acceptSession(hello, name, now: now)
    else { return count { $0.handshakesTurnedAway &+= 1 } }
    seal.accept(session, now: now)
  }

  /// Somebody believes in a session that this node has forgotten.
  private func requestSession(_ peer: NodeID, _ now: Instant) {
    guard case .sealed(let seal)? = protection(of: peer), let route = mesh.route(to: peer) else { return }
    if seal.sessionName.isClient {
      (try? association(with: peer, now))?.protection.seal?.noteUndecryptable(now: now)
    } else {
      // Nothing is kept for whoever merely sends something unreadable.
      writeEpochs(seal.peerEpoch)
      _ = queue(.handshake, sealScratch[..<SealLimits.handshakeHeaderBytes], .interactive, peer, route)
    }
  }

  private func note(_ event: SealEvent, _ association: Association, _ now: Instant) {
    let peer = association.peer
    switch event {
    case .opened(let milliseconds):
      count { $0.sessionsOpened &+= 1 }
      journal.record(.info, .sessionOpened, at: now, milliseconds, node: peer)
    case .failed(let reason):
      count { $0.sessionsFailed &+= 1 }
      journal.record(.notice, .sessionFailed, at: now, UInt64(reason.rawValue), node: peer)
    case .refused(let reason, let byPeer):
      count { $0.sessionsRefused &+= 1 }
      journal.record(.warning, .sessionRefused, at: now, UInt64(reason.rawValue), byPeer ? 1 : 0, node: peer)
      // What was taken for sending fails; without any, the channel goes on when the refusal is over.
      if association.channel.hasUnfinishedSends { association.channel.close() }
    case .decisionWanted(let chain): decisions.append((peer, chain))
    }
  }

  /// Handshakes under way with everybody.
  private var handshakeCount: Int {
    var count = 0
    for association in associations.all {
      if let seal = association.protection.seal, seal.isHandshaking { count += 1 }
    }
    return count
  }

  /// What the peer's topology says of it, in its present life.
  private func flags(of peer: NodeID, in epoch: UInt64) -> TopologyFlags? {
    guard let index = mesh.index(of: peer), let bytes = mesh.advertisement(of: index, .topology),
      let advertisement = try? AdvertisementView(bytes), advertisement.epoch == epoch,
      let topology = try? TopologyView(advertisement.body)
    else { return nil }
    return topology.flags
  }

  private var sealReply: UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: sealScratch[SealLimits.handshakeHeaderBytes...])
  }

  private func writeEpochs(_ peerEpoch: UInt64) {
    sealScratch.storeBytes(of: peerEpoch.bigEndian, toByteOffset: 0, as: UInt64.self)
    sealScratch.storeBytes(of: settings.epoch.bigEndian, toByteOffset: 8, as: UInt64.self)
  }

  private func queue(
    _ type: FrameType, _ payload: Slice<UnsafeMutableRawBufferPointer>, _ priority: FramePriority, _ peer: NodeID,
    _ route: Route
  ) -> Bool {
    let header = FrameHeader(
      type: type, flags: type == .sealed ? FrameHeader.sealed : 0, ttl: Limits.hopsMax, priority: priority,
      payloadByteCount: payload.count, destination: peer, source: settings.id, identifier: nextIdentifier())
    return send(header, UnsafeRawBufferPointer(rebasing: payload).bytes, over: route)
  }
}
