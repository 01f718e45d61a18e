import Channel
import Frame
import Journal
import Link
import Mesh
import Primitives
import Seal
import Session

/// How an association is protected from the nodes that forward its frames.
enum Protection {
  /// Plaintext: both nodes chose it in signed advertisements.
  case clear
  case sealed(Seal)
  /// One node requires encryption and the other does not support it, or the peer's key is refused here.
  case refused(SealRefusal)

  var seal: Seal? {
    switch self {
    case .sealed(let seal): seal
    case .clear, .refused: nil
    }
  }

  /// Why nothing may be sent; nil when it may.
  var refusal: SealRefusal? {
    switch self {
    case .clear: nil
    case .sealed(let seal): seal.refusal
    case .refused(let reason): reason
    }
  }

  /// Whether payloads may be sent now.
  var mayFlow: Bool {
    switch self {
    case .clear: true
    case .sealed(let seal): seal.isOpen
    case .refused: false
    }
  }

  /// The peer's identity is not proven, and no handshake or decision is in progress.
  var isUnproven: Bool {
    switch self {
    case .clear: false
    case .sealed(let seal): !seal.isOpen && !seal.isHandshaking && !seal.isDeciding
    case .refused: true
    }
  }

  /// The longest channel payload on a route, in bytes.
  func payloadBytesMax(_ route: Route) -> Int {
    switch self {
    case .clear: route.payloadBytesMax
    case .sealed, .refused:
      min(route.payloadBytesMax - SealLimits.overheadBytesMax, SealLimits.plaintextBytesMax - 1)
    }
  }
}

/// The application's decisions on certificates.
extension Node {
  /// The application's decision on a peer. Without one within `SealLimits.decisionTime` the peer is refused.
  /// `checks`: the time that the decision has taken, in checks of a signature over P-256; the link that brings the peer's frames is charged.
  public func decide(_ peer: NodeID, isAccepted: Bool, checks: Int = 0, now: Instant) {
    guard let association = associations.association(with: peer) else { return }
    handshakes.charge(checks / Admission.checksPerHandshake, to: association.holder, now: now)
    association.protection.seal?.decide(isAccepted: isAccepted, now: now)
    isPumpDue = true
  }

  /// The certificates with which a peer has proved its key, in DER, its own first; none where traffic is not sealed, as with
  /// this node itself. Nil while it has not proved it, or is out of reach.
  public func certificates(of peer: NodeID) -> [[UInt8]]? {
    if peer == settings.id { return [] }
    switch associations.association(with: peer)?.protection ?? protection(of: peer) {
    case nil: return nil
    case .clear, .refused: return []
    case .sealed(let seal): return seal.peerChain
    }
  }

  /// Makes a peer prove its key, if traffic with it is sealed.
  func wantCertificates(of peer: NodeID, _ now: Instant) {
    guard certificates(of: peer) == nil, let association = try? association(with: peer, now) else { return }
    association.protection.seal?.want()
    isPumpDue = true
  }
}

/// Sealing outgoing payloads, and opening incoming ones.
extension Node {
  /// How this node and `peer` communicate, according to both signed preferences; nil while the peer's is not known.
  /// Whether traffic with a peer is sealed, by the preferences of both.
  func isSealed(_ peer: NodeID) -> Bool {
    guard let epoch = mesh.epoch(of: peer), let flags = flags(of: peer, in: epoch) else { return false }
    return EncryptionPreference.agreement(settings.encryption, flags.encryption) == .sealed
  }

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

  /// Whether plaintext from `peer`, which any relay could have written, is accepted: both nodes chose not to seal. Nil
  /// when the peer's preference is not known.
  public func isClear(with peer: NodeID) -> Bool? {
    guard let protection = associations.association(with: peer)?.protection ?? protection(of: peer) else { return nil }
    if case .clear = protection { return true }
    return false
  }

  /// Begins again with peers whose advertised epoch has changed. A lower epoch is possible too: the peer lost its
  /// counter, or shared its identity with another node, and the advertisements of the later epoch have expired.
  func renewProtection() {
    for association in associations.all {
      guard let epoch = mesh.epoch(of: association.peer), epoch != association.epoch,
        let protection = protection(of: association.peer)
      else { continue }
      if epoch < association.epoch { association.channel.remoteRestarted(epoch: epoch) }
      association.epoch = epoch
      association.protection = protection
      // The room for payloads may have changed.
      association.route = nil
    }
  }

  /// Drives the session of an association: begins and renews it, sends its frames, handles its events.
  func tend(_ association: Association, _ now: Instant) {
    associations.revive(association, now: now)
    guard let seal = association.protection.seal else { return }
    // A question without certificates stays open until a handshake succeeds, whatever gets lost.
    seal.isWanted =
      association.channel.hasUnfinishedSends || (!seal.isOpen && sessions.hasQuestion(about: association.peer))
    seal.channelEpoch = association.channel.localEpoch
    if association.route != nil {
      if seal.needsSession(now: now) {
        if takeHandshake(with: association, now) {
          seal.begin(cryptography.beginSession(seal.sessionName, now: now), now: now)
        } else {
          seal.postpone(now: now)
        }
      }
      while let frame = seal.nextFrame(into: sealScratch, now: now) {
        switch frame {
        case .handshake(let byteCount): sendHandshake(byteCount, to: association)
        case .sealed(let byteCount): sendSealed(byteCount, to: association)
        }
      }
    }
    while let event = seal.nextEvent() { note(event, association, now) }
  }

  /// Takes a place and a share of the rate for a handshake that this node begins. False without one of them. A handshake that a
  /// peer requested was charged to the link that brought the request; this node's own needs have a share like a link's.
  private func takeHandshake(with association: Association, _ now: Instant) -> Bool {
    let isCharged = association.isHandshakeCharged
    guard isCharged || handshakes.take(by: FairShare.ownHolder, now: now) else { return false }
    guard takeHandshakePlace(for: association.peer, association.holder, now) else {
      if !isCharged { handshakes.giveBack(1, by: FairShare.ownHolder) }
      return false
    }
    association.isHandshakeCharged = false
    return true
  }

  /// Sends the handshake payload at the start of `sealScratch`.
  func sendHandshake(_ byteCount: Int, to association: Association) {
    guard let route = association.route else { return }
    _ = queue(.handshake, sealScratch[..<byteCount], .interactive, association.peer, route)
  }

  /// Sends the sealed payload at the start of `sealScratch`.
  func sendSealed(_ byteCount: Int, to association: Association) {
    guard let route = association.route else { return }
    _ = queue(.sealed, sealScratch[..<byteCount], .interactive, association.peer, route)
  }

  /// Ends the session of an association, and reports it to the other end. The seal must not be used afterwards.
  func endSession(with association: Association, _ reason: SealRefusal, _ now: Instant) {
    switch association.protection.seal?.end(reason, into: sealScratch, now: now) {
    case nil: break
    case .handshake(let byteCount): sendHandshake(byteCount, to: association)
    case .sealed(let byteCount): sendSealed(byteCount, to: association)
    }
  }

  /// Sends the payload that starts at byte 1 of `payloadScratch`, sealed if required.
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

  /// Handles a sealed payload for this node.
  func receiveSealed(
    _ header: FrameHeader, _ payload: RawSpan, from slot: Int, _ now: Instant
  ) throws(FrameRefusal) {
    guard let association = associations.association(with: header.source) else {
      guard requestSession(header.source, from: slot, now) else { throw .tooMany }
      throw .notOpened
    }
    guard let seal = association.protection.seal else { throw .unexpected }
    guard let opened = seal.open(payload, into: payloadScratch, now: now) else {
      _ = ask(association, from: slot, now)
      throw .notOpened
    }
    // Only the peer can have sealed it, so its place is charged to the link that brings its frames now.
    association.ingress = slot
    switch opened {
    case .hello(let epoch): if let epoch { association.channel.remoteSaid(epoch: epoch) }
    case .payload(let octet, let byteCount):
      guard let type = FrameType(rawValue: octet) else { throw .unknownType }
      guard byteCount > 0 else { throw .truncated }
      let bytes = UnsafeRawBufferPointer(rebasing: payloadScratch[1..<1 + byteCount]).bytes
      switch type {
      case .segment, .acknowledgement, .datagram, .reset, .joined:
        try take(type, bytes, association, from: slot, now)
      case .hello, .ping, .pong, .goodbye, .request, .advertisement, .denyList, .handshake, .sealed: throw .unexpected
      }
    }
  }

  /// Handles a handshake datagram, or a request for a handshake (an empty one).
  func receiveHandshake(
    _ header: FrameHeader, _ payload: RawSpan, from slot: Int, _ now: Instant
  ) throws(FrameRefusal) {
    var reader = ByteReader(payload, orThrow: FrameRefusal.truncated)
    let meant = try reader.u64()
    let epoch = try reader.u64()
    // Only epochs from signed advertisements are accepted; the other end retries.
    guard meant == settings.epoch, epoch == mesh.epoch(of: header.source) else { throw .stale }
    let name = SessionName(
      local: settings.id, peer: header.source, localEpoch: settings.epoch, peerEpoch: epoch)
    let datagram = try reader.span(reader.remaining)
    if datagram.byteCount == 0 {
      guard name.isClient else { throw .unexpected }
      if let refusal = beginRequested(by: header.source, from: slot, now) { throw refusal }
      return
    }
    switch name.isClient ? .refused : cryptography.answerHello(datagram, name, reply: sealReply, now: now) {
    case .refused:
      guard let seal = associations.association(with: header.source)?.protection.seal, seal.peerEpoch == epoch else {
        throw .unexpected
      }
      seal.receiveHandshake(datagram, now: now)
    case .reply(let byteCount): try sendReply(byteCount, to: name, from: slot, now)
    case .accepted: try acceptSession(datagram, name, from: slot, now)
    }
  }

  /// Sends the handshake datagram in `sealReply`, for which no state is kept. It is charged to the link that brought the frame:
  /// anybody can have forged that frame.
  private func sendReply(
    _ byteCount: Int, to name: SessionName, from slot: Int, _ now: Instant
  ) throws(FrameRefusal) {
    guard let route = mesh.route(to: name.peer) else { throw .unexpected }
    guard replies.take(by: slot, now: now) else { throw .tooMany }
    writeEpochs(name.peerEpoch)
    let end = SealLimits.handshakeHeaderBytes + byteCount
    _ = queue(.handshake, sealScratch[..<end], .interactive, name.peer, route)
  }

  private func acceptSession(
    _ hello: RawSpan, _ name: SessionName, from slot: Int, _ now: Instant
  ) throws(FrameRefusal) {
    if let seal = associations.association(with: name.peer)?.protection.seal {
      guard seal.peerEpoch == name.peerEpoch else { throw .unexpected }
      if seal.receiveAgain(hello, now: now) { return }
      guard seal.mayAccept(now: now) else { throw .unexpected }
    }
    // Whose link has its share sends the hello again.
    if !handshakes.take(by: slot, now: now) { return try turnAway(hello, name, from: slot, now) }
    guard takeHandshakePlace(for: name.peer, slot, now) else { return try turnAway(hello, name, from: slot, now) }
    let association: Association?
    do throws(AssociationRefusal) { association = try self.association(with: name.peer, from: slot, now) } catch {
      throw .unexpected
    }
    guard let association else { return try turnAway(hello, name, from: slot, now) }
    guard let seal = association.protection.seal, seal.peerEpoch == name.peerEpoch else { throw .unexpected }
    guard let session = cryptography.acceptSession(hello, name, now: now) else {
      return try turnAway(hello, name, from: slot, now)
    }
    if !seal.isOpen { association.ingress = slot }
    seal.accept(session, now: now)
  }

  /// There is no place for a session: its client is told, and tries again.
  private func turnAway(
    _ hello: RawSpan, _ name: SessionName, from slot: Int, _ now: Instant
  ) throws(FrameRefusal) {
    count { $0.handshakesTurnedAway &+= 1 }
    let byteCount = cryptography.refuseHello(hello, reply: sealReply)
    if byteCount > 0 { try sendReply(byteCount, to: name, from: slot, now) }
  }

  /// A peer uses a session that this node no longer has. False when the link has its share.
  private func requestSession(_ peer: NodeID, from slot: Int, _ now: Instant) -> Bool {
    if settings.id < peer { return beginRequested(by: peer, from: slot, now) != .tooMany }
    guard replies.take(by: slot, now: now) else { return false }
    guard case .sealed(let seal)? = protection(of: peer), let route = mesh.route(to: peer) else { return true }
    // Keep no state for a node that only sent something undecryptable.
    writeEpochs(seal.peerEpoch)
    _ = queue(.handshake, sealScratch[..<SealLimits.handshakeHeaderBytes], .interactive, peer, route)
    return true
  }

  /// A frame that anybody can forge wants this node to begin a handshake with `peer`. Before anything is made for it, the link
  /// that brought it is charged. Returns why nothing is begun: `.tooMany` when the link has its share.
  private func beginRequested(by peer: NodeID, from slot: Int, _ now: Instant) -> FrameRefusal? {
    if let known = associations.association(with: peer) { return ask(known, from: slot, now) ? nil : .tooMany }
    guard handshakes.take(by: slot, now: now) else { return .tooMany }
    // The key of the neighbour itself is proven by its link.
    guard isSealed(peer),
      let association = try? association(with: peer, from: slot, isClaimed: links[slot].peer != peer, now),
      let seal = association.protection.seal
    else { return .unexpected }
    association.isHandshakeCharged = true
    seal.noteUndecryptable(now: now)
    return nil
  }

  /// A frame that anybody can forge asks for a session with a peer of this node. A handshake that this node begins for it is
  /// charged to the link that brought the frame. False when the link has its share.
  private func ask(_ association: Association, from slot: Int, _ now: Instant) -> Bool {
    guard let seal = association.protection.seal, seal.mayBeAsked(now: now) else { return true }
    if seal.sessionName.isClient {
      guard handshakes.take(by: slot, now: now) else { return false }
      association.isHandshakeCharged = true
    }
    seal.noteUndecryptable(now: now)
    return true
  }

  private func note(_ event: SealEvent, _ association: Association, _ now: Instant) {
    let peer = association.peer
    switch event {
    case .opened(let milliseconds):
      count { $0.sessionsOpened &+= 1 }
      journal.record(.info, .sessionOpened, at: now, milliseconds, node: peer)
      provenPeers.note(peer, on: association.holder)
      sessions.askAgain(about: peer)
    case .failed(let reason):
      count { $0.sessionsFailed &+= 1 }
      // A peer that begins handshakes without end can cause these without end.
      let level: Level = reason == .displaced ? .debug : .notice
      journal.record(level, .sessionFailed, at: now, UInt64(reason.rawValue), node: peer)
      sessions.askAgain(about: peer)
    case .refused(let reason, let byPeer):
      count { $0.sessionsRefused &+= 1 }
      journal.record(.warning, .sessionRefused, at: now, UInt64(reason.rawValue), byPeer ? 1 : 0, node: peer)
      // Unfinished sends fail. Without any, the channel continues when the refusal ends.
      if association.channel.hasUnfinishedSends { association.channel.close() }
    case .decisionWanted(let chain): decisions.append((peer, chain))
    }
  }

  /// The flags in the peer's topology advertisement of this epoch.
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
