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
  /// Plaintext, which both nodes chose in signed advertisements.
  case clear
  case sealed(Seal)
  /// One node requires encryption that the other node does not support, or this node refuses the peer's key.
  case refused(SealRefusal)

  var seal: Seal? {
    switch self {
    case .sealed(let seal): seal
    case .clear, .refused: nil
    }
  }

  /// The reason why nothing may be sent, or nil if sending is allowed.
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

  /// Whether the peer's key is not proven, and no handshake or decision is in progress.
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
  /// Applies the application's decision on a peer. Without a decision within `SealLimits.decisionTime` the peer is
  /// refused. `checks` is the processor time that the decision took, in P-256 signature checks. This time is charged to
  /// the link that delivers the peer's frames.
  public func decide(_ peer: NodeID, isAccepted: Bool, checks: Int = 0, now: Instant) {
    guard let association = associations.association(with: peer) else { return }
    handshakes.charge(checks / Admission.checksPerHandshake, to: association.holder, now: now)
    association.protection.seal?.decide(isAccepted: isAccepted, now: now)
    isPumpDue = true
  }

  /// The peers with which this node has or begins encrypted sessions.
  public var sealedPeers: [NodeID] { associations.all.filter { $0.protection.seal != nil }.map { $0.peer } }

  /// Repeats the application's decision on a peer, after trust has changed. The encrypted session ends if `isRefused`
  /// returns true for the chain that was accepted.
  public func reconsider(_ peer: NodeID, now: Instant, isRefused: ([[UInt8]]) -> Bool) {
    associations.association(with: peer)?.protection.seal?.reconsider(now: now, isRefused: isRefused)
    isPumpDue = true
  }

  /// The certificates with which a peer has proved its key, in DER, the peer's own certificate first. Empty if traffic
  /// with the peer is not encrypted or is refused, and for this node itself. nil if the peer has not proved its key or
  /// is unreachable.
  public func certificates(of peer: NodeID) -> [[UInt8]]? {
    if peer == settings.id { return [] }
    switch associations.association(with: peer)?.protection ?? protection(of: peer) {
    case nil: return nil
    case .clear, .refused: return []
    case .sealed(let seal): return seal.peerChain
    }
  }

  /// Makes a peer prove its key, if traffic with the peer is encrypted.
  func wantCertificates(of peer: NodeID, _ now: Instant) {
    guard certificates(of: peer) == nil, let association = try? association(with: peer, now) else { return }
    association.protection.seal?.want()
    isPumpDue = true
  }
}

/// Encrypting outgoing payloads, and decrypting incoming ones.
extension Node {
  /// Whether traffic with a peer is encrypted, by the preferences of both nodes.
  func isSealed(_ peer: NodeID) -> Bool {
    guard let epoch = mesh.epoch(of: peer), let flags = flags(of: peer, in: epoch) else { return false }
    return EncryptionPreference.agreement(settings.encryption, flags.encryption) == .sealed
  }

  /// The protection of traffic with `peer`, by the signed preferences of both nodes. nil if the peer's preference is
  /// unknown.
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

  /// Whether plaintext from `peer`, which any relay could have written, is accepted because both nodes chose no
  /// encryption. nil if the peer's preference is unknown.
  public func isClear(with peer: NodeID) -> Bool? {
    guard let protection = associations.association(with: peer)?.protection ?? protection(of: peer) else { return nil }
    if case .clear = protection { return true }
    return false
  }

  /// Restarts associations with peers whose advertised epoch has changed. The new epoch may be lower than the old
  /// epoch. An epoch is lower if the peer lost its counter, or shared its key with another node, and the later
  /// advertisements have expired.
  func renewProtection() {
    for association in associations.all {
      guard let epoch = mesh.epoch(of: association.peer), epoch != association.epoch,
        let protection = protection(of: association.peer)
      else { continue }
      if epoch < association.epoch { association.channel.remoteRestarted(epoch: epoch) }
      association.epoch = epoch
      association.protection = protection
      // The longest payload may have changed, so the route is set again.
      association.route = nil
    }
  }

  /// Drives the encrypted session of an association: begins and renews the session, sends its frames, and handles its
  /// events.
  func tend(_ association: Association, _ now: Instant) {
    associations.revive(association, now: now)
    guard let seal = association.protection.seal else { return }
    // While the application has to decide on a session member of this peer, this node needs the peer's certificates. So
    // a session is wanted until a handshake succeeds, despite losses.
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
    seal.setParked(association.route.map { waitsParked(Int($0.link)) } ?? false, now: now)
    while let event = seal.nextEvent() { note(event, association, now) }
  }

  /// Takes a slot, and a unit of the handshake rate, for a handshake that this node begins. Returns false if the slot
  /// or the unit is missing. If the peer requested the handshake, the link that delivered the request was already
  /// charged. If the peer did not request the handshake, this node is charged, which has a share of the rate like a
  /// link.
  private func takeHandshake(with association: Association, _ now: Instant) -> Bool {
    let isCharged = association.isHandshakeCharged
    guard isCharged || handshakes.take(by: FairShare.ownHolder, now: now) else { return false }
    guard takeHandshakeSlot(for: association.peer, association.holder, now) else {
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

  /// Sends the encrypted payload at the start of `sealScratch`.
  func sendSealed(_ byteCount: Int, to association: Association) {
    guard let route = association.route else { return }
    _ = queue(.sealed, sealScratch[..<byteCount], .interactive, association.peer, route)
  }

  /// Ends the encrypted session of an association and notifies the other end. The association's seal must not be used
  /// afterwards.
  func endSession(with association: Association, _ reason: SealRefusal, _ now: Instant) {
    switch association.protection.seal?.end(reason, into: sealScratch, now: now) {
    case nil: break
    case .handshake(let byteCount): sendHandshake(byteCount, to: association)
    case .sealed(let byteCount): sendSealed(byteCount, to: association)
    }
  }

  /// Sends the payload that starts at byte 1 of `payloadScratch`, encrypted if required.
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

  /// Handles an encrypted payload for this node.
  func receiveSealed(
    _ header: FrameHeader, _ payload: RawSpan, from slot: Int, _ now: Instant
  ) throws(FrameError) {
    guard let association = associations.association(with: header.source) else {
      guard requestSession(header.source, from: slot, now) else { throw .tooMany }
      throw .notOpened
    }
    guard let seal = association.protection.seal else { throw .unexpected }
    guard let opened = seal.open(payload, into: payloadScratch, now: now) else {
      _ = ask(association, from: slot, now)
      throw .notOpened
    }
    // Only the peer can have encrypted the payload. So the association is charged to the link that now delivers the
    // peer's frames.
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

  /// Handles the datagram of a handshake frame. An empty datagram requests a handshake.
  func receiveHandshake(
    _ header: FrameHeader, _ payload: RawSpan, from slot: Int, _ now: Instant
  ) throws(FrameError) {
    var reader = ByteReader(payload, orThrow: FrameError.truncated)
    let meant = try reader.u64()
    let epoch = try reader.u64()
    // Only the epochs of the newest signed advertisements are accepted. If this node lacks the newest advertisement of
    // the other end, that end retries.
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
      guard let association = associations.association(with: header.source), let seal = association.protection.seal,
        seal.peerEpoch == epoch
      else { throw .unexpected }
      if seal.receiveHandshake(datagram, now: now) { association.channel.handshakeAdvanced(now: now) }
    case .reply(let byteCount): try sendReply(byteCount, to: name, from: slot, now)
    case .accepted: try acceptSession(datagram, name, from: slot, now)
    }
  }

  /// Sends the handshake datagram in `sealReply`, for which no state is kept. The reply is charged to the link that
  /// delivered the answered frame, because anyone could have forged that frame.
  private func sendReply(
    _ byteCount: Int, to name: SessionName, from slot: Int, _ now: Instant
  ) throws(FrameError) {
    guard let route = mesh.route(to: name.peer) else { throw .unexpected }
    guard replies.take(by: slot, now: now) else { throw .tooMany }
    writeEpochs(name.peerEpoch)
    let end = SealLimits.handshakeHeaderBytes + byteCount
    _ = queue(.handshake, sealScratch[..<end], .interactive, name.peer, route)
  }

  private func acceptSession(
    _ hello: RawSpan, _ name: SessionName, from slot: Int, _ now: Instant
  ) throws(FrameError) {
    if let seal = associations.association(with: name.peer)?.protection.seal {
      guard seal.peerEpoch == name.peerEpoch else { throw .unexpected }
      if seal.receiveAgain(hello, now: now) { return }
      guard seal.mayAccept(now: now) else { throw .unexpected }
    }
    // If the link has used its share of the handshake rate, the client is refused and sends its hello again.
    if !handshakes.take(by: slot, now: now) { return try turnAway(hello, name, from: slot, now) }
    guard takeHandshakeSlot(for: name.peer, slot, now) else { return try turnAway(hello, name, from: slot, now) }
    let association: Association?
    do throws(AssociationError) { association = try self.association(with: name.peer, from: slot, now) } catch {
      throw .unexpected
    }
    guard let association else { return try turnAway(hello, name, from: slot, now) }
    guard let seal = association.protection.seal, seal.peerEpoch == name.peerEpoch else { throw .unexpected }
    guard let session = cryptography.acceptSession(hello, name, now: now) else {
      return try turnAway(hello, name, from: slot, now)
    }
    if !seal.isOpen { association.ingress = slot }
    seal.accept(session, now: now)
    association.channel.handshakeAdvanced(now: now)
  }

  /// Refuses a session for lack of capacity. The client receives the refusal and retries.
  private func turnAway(
    _ hello: RawSpan, _ name: SessionName, from slot: Int, _ now: Instant
  ) throws(FrameError) {
    count { $0.handshakesTurnedAway &+= 1 }
    let byteCount = cryptography.refuseHello(hello, reply: sealReply)
    if byteCount > 0 { try sendReply(byteCount, to: name, from: slot, now) }
  }

  /// Handles a sealed frame of a peer that uses a session which this node no longer has: asks for a new session.
  /// Returns false if the link has used its share of the rate.
  private func requestSession(_ peer: NodeID, from slot: Int, _ now: Instant) -> Bool {
    if settings.id < peer { return beginRequested(by: peer, from: slot, now) != .tooMany }
    guard replies.take(by: slot, now: now) else { return false }
    guard case .sealed(let seal)? = protection(of: peer), let route = mesh.route(to: peer) else { return true }
    // No state is kept for a node that only sent a payload which cannot be decrypted.
    writeEpochs(seal.peerEpoch)
    _ = queue(.handshake, sealScratch[..<SealLimits.handshakeHeaderBytes], .interactive, peer, route)
    return true
  }

  /// Handles a forgeable frame that requests a handshake with `peer`. The link that delivered the frame is charged
  /// before any state is created. Returns the reason if no handshake is begun: `.tooMany` if the link has used its
  /// share.
  private func beginRequested(by peer: NodeID, from slot: Int, _ now: Instant) -> FrameError? {
    if let known = associations.association(with: peer) { return ask(known, from: slot, now) ? nil : .tooMany }
    guard handshakes.take(by: slot, now: now) else { return .tooMany }
    // A request in the neighbour's own name is not forged, because the link proves the neighbour's key.
    guard isSealed(peer),
      let association = try? association(with: peer, from: slot, isClaimed: links[slot].peer != peer, now),
      let seal = association.protection.seal
    else { return .unexpected }
    association.isHandshakeCharged = true
    seal.noteUndecryptable(now: now)
    return nil
  }

  /// Handles a forgeable frame that requests a session with a peer that has an association. If this node begins a
  /// handshake for that reason, the link that delivered the frame is charged. Returns false if the link has used its
  /// share.
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
    let cause = journal.cause(ofLink: association.holder).about(.none)
    switch event {
    case .opened(let milliseconds):
      count { $0.sessionsOpened &+= 1 }
      journal.record(.info, .sessionOpened, at: now, milliseconds, node: peer, cause: cause.about(decided(peer)))
      provenPeers.note(peer, on: association.holder)
      sessions.askAgain(about: peer)
    case .failed(let reason):
      count { $0.sessionsFailed &+= 1 }
      // A peer that begins handshakes again and again can cause any number of displaced ones.
      let level: Level = reason == .displaced ? .debug : .notice
      journal.record(level, .sessionFailed, at: now, UInt64(reason.rawValue), node: peer, cause: cause)
      sessions.askAgain(about: peer)
    case .refused(let reason, let byPeer):
      count { $0.sessionsRefused &+= 1 }
      // The peer has proved its key.
      journal.record(
        .warning, .sessionRefused, at: now, UInt64(reason.rawValue), byPeer ? 1 : 0, node: peer,
        cause: cause.about(decided(peer)))
      // Unfinished sends fail. A channel without unfinished sends continues when the refusal ends.
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
