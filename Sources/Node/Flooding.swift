import Frame
import Journal
import Link
import Mesh
import Primitives
import Session

/// The timers of this node's own advertisements.
struct Originator {
  private var sequences: (topology: UInt64, profile: UInt64, services: UInt64) = (0, 0, 0)
  private var topologyDue = Instant.never
  private var topologyRenewal = Instant.zero
  private var profileDue = Instant.never
  private var servicesDue = Instant.never
  private var lastServices = Instant.zero
  private var lastTopology = Instant.zero
  /// The pause before the next urgent topology advertisement.
  private var urgent = Backoff(first: Timing.urgentPauseMin, longest: Timing.urgentPauseMax)
  /// The time until which new routes wait for further ones. `.never` if no new route waits.
  private var gatheringEnd = Instant.never

  /// Schedules the topology advertisement after a change. In a crowded broadcast domain (`LinkSelection.isCrowd`), new
  /// routes are advertised together. These routes wait until no further link will come up soon (`makesLinks`), but at
  /// most `Timing.gatheringMax`, which is also the least interval between such advertisements.
  mutating func topologyChanged(
    _ change: Mesh.TopologyChange, inCrowd: Bool, makesLinks: @autoclosure () -> Bool, now: Instant
  ) {
    switch change {
    case .none: break
    case .routine: topologyDue = min(topologyDue, lastTopology + Timing.routinePause)
    case .newWay: gatheringEnd = min(gatheringEnd, now + Timing.gatheringMax)
    case .loss: topologyDue = min(topologyDue, lastTopology + urgent.pause)
    }
    if gatheringEnd == .never { return }
    if inCrowd && gatheringEnd > now && makesLinks() { return }
    topologyDue = min(topologyDue, lastTopology + (inCrowd ? Timing.gatheringMax : urgent.pause))
    gatheringEnd = .never
  }
  mutating func profileChanged() { profileDue = .zero }
  /// Schedules the services advertisement. A change is advertised immediately, and a series of changes at intervals of
  /// `Timing.urgentPauseMax`. A node that never had a service sends no services advertisement.
  mutating func servicesChanged() { servicesDue = min(servicesDue, lastServices + Timing.urgentPauseMax) }

  /// Schedules all advertisements, because this node has a new epoch.
  mutating func epochChanged() {
    topologyDue = .zero
    profileDue = .zero
    if sequences.services > 0 { servicesDue = .zero }
  }

  var deadline: Instant { min(topologyDue, min(min(profileDue, servicesDue), gatheringEnd)) }

  /// The kind of advertisement that is due, and its new sequence number. nil if no advertisement is due. `hasTold` is
  /// whether the last topology advertisement is still correct. A link that vanished and came back thus causes no
  /// advertisement.
  mutating func next(now: Instant, hasTold: @autoclosure () -> Bool) -> (AdvertisementKind, UInt64)? {
    if topologyDue <= now && topologyRenewal > now && hasTold() {
      gatheringEnd = .never
      topologyDue = topologyRenewal
    }
    if topologyDue <= now {
      if now - lastTopology >= Timing.routinePause { urgent.reset() } else { urgent.double() }
      lastTopology = now
      gatheringEnd = .never
      topologyRenewal = now + Timing.advertisementInterval
      topologyDue = topologyRenewal
      sequences.topology += 1
      return (.topology, sequences.topology)
    }
    if profileDue <= now {
      profileDue = now + Timing.advertisementInterval
      sequences.profile += 1
      return (.profile, sequences.profile)
    }
    if servicesDue <= now {
      lastServices = now
      servicesDue = now + Timing.advertisementInterval
      sequences.services += 1
      return (.services, sequences.services)
    }
    return nil
  }
}

/// Signed advertisements: receiving, forwarding, originating.
extension Node {
  func receiveAdvertisement(_ header: FrameHeader, _ payload: RawSpan, on slot: Int, now: Instant) throws(FrameError) {
    let view = try AdvertisementView(payload)
    // The identifier of a flooded frame is the advertisement's age.
    let age = header.identifier
    var replacement: Mesh.Replacement?
    switch mesh.assess(header.source, view, age: age, now: now) {
    case .new: break
    case .duplicate:
      mesh.neighbour(on: slot, holds: view, payload, of: header.source, age: age, now: now)
      throw .duplicate
    case .stale: throw .stale
    case .full:
      // The search for a node to evict takes as long as a signature check. Only one of the two is charged.
      guard try mayCheck(header, payload, on: slot, now) else { return }
      replacement = try findReplacement(for: header.source, on: slot, now)
    case .tooOften:
      flooding[slot].owe(header.source, now: now)
      throw .tooMany
    case .ownEcho:
      mesh.neighbour(on: slot, holds: view, payload, of: header.source, age: age, now: now)
      throw .loopedSource
    case .ownFromElsewhere:
      // Other nodes still store advertisements of an earlier epoch of this node.
      if view.epoch < settings.epoch { throw .loopedSource }
      guard try mayCheck(header, payload, on: slot, now) else { return }
      try verify(view, of: header.source, on: slot, now)
      // This node's stored epoch counter was lost, or two nodes use the key, which must be reported.
      let age = TimeSpan.milliseconds(min(age, UInt64(view.lifetimeSeconds) * 1000))
      if epochRecovery.receive(view.epoch, age: age, now: now) {
        journal.record(.error, .identityDuplicated, at: now, view.epoch, settings.epoch)
      }
      throw .loopedSource
    }
    if replacement == nil {
      guard try mayCheck(header, payload, on: slot, now) else { return }
    }
    try verify(view, of: header.source, on: slot, now)
    if refuses(header.source, view, on: slot, now) { throw .notTrusted }
    if let replacement { evict(replacement, for: header.source, on: slot) }
    let hasChanged = mesh.install(header.source, view, payload, age: age, from: slot, now: now)
    if hasChanged { routeCost.note(changeFrom: slot) }
    if hasChanged && mesh.isFull { askForUnknown(view, of: header.source, on: slot, now) }
    if parking.parked != 0 { reviewParked(header.source, view) }
    count { $0.advertisementsAccepted &+= 1 }
    journal.record(
      .debug, .advertisementAccepted, at: now, link: UInt8(slot), view.sequence, view.epoch, node: header.source)
    switch view.kind {
    case .topology: break
    case .profile: updateDirectory(now)
    case .services: reportServices(of: header.source)
    }
  }

  /// Originates the advertisements that are due.
  func originate(_ now: Instant) {
    while let (kind, sequence) = originator.next(
      now: now, hasTold: mesh.hasTold(flags: settings.topologyFlags, epoch: settings.epoch))
    {
      let bytes = ownAdvertisement(kind, sequence)
      guard let view = try? AdvertisementView(bytes.span.bytes) else { preconditionFailure("a bad advertisement") }
      mesh.installOwn(view, bytes.span.bytes)
      journal.record(.debug, .advertisementSent, at: now, sequence)
    }
  }

  /// Queues unsent advertisements on a link until its queue has enough bytes.
  func queueAdvertisements(on slot: Int, _ now: Instant) {
    while links[slot].takesAdvertisement, mesh.mayHaveUnsent(slot) {
      guard flooding[slot].sending.hasToken(LinkFlooding.sendingRate, now: now) else {
        flooding[slot].sendingDue = flooding[slot].sending.next(LinkFlooding.sendingRate)
        return
      }
      guard let (index, kind) = mesh.nextUnsent(slot) else { return }
      guard mesh.maySend(index, kind, now: now), let payload = mesh.advertisement(of: index, kind) else { continue }
      let header = FrameHeader(
        type: .advertisement, ttl: Limits.hopsMax, priority: .control, payloadByteCount: payload.byteCount,
        source: mesh.node(at: index), identifier: mesh.age(of: index, kind, now: now))
      if links[slot].append(header, payload, from: FramePool.ownIngress) {
        _ = flooding[slot].sending.take(LinkFlooding.sendingRate, now: now)
        wantTransmit(slot)
      }
    }
  }

  /// Chooses the node to evict from a full database for `source`. Throws if there is none.
  private func findReplacement(for source: NodeID, on slot: Int, _ now: Instant) throws(FrameError) -> Mesh.Replacement
  {
    let replacement = mesh.replacement(for: source) {
      associations.association(with: $0) != nil || trust?.isPinnedByOperator($0) ?? false
    }
    if let replacement { return replacement }
    journal.record(.warning, .nodesFull, at: now, UInt64(mesh.nodeCount), UInt64(Limits.nodesMax))
    linksWithoutRoom |= 1 << UInt64(slot)
    throw .overLength
  }

  /// Evicts a node from a full database. The neighbours know the evicted node and would not send its advertisements
  /// again before their renewal. So the advertisements are requested when the database has room again.
  private func evict(_ replacement: Mesh.Replacement, for newcomer: NodeID, on slot: Int) {
    let link = mesh.take(replacement, for: newcomer, from: slot)
    if links.indices.contains(link) { linksWithoutRoom |= 1 << UInt64(link) }
  }

  /// Charges a signature check to the link's share of the check rate (`CheckBudget`). Returns false if the frame was
  /// stored for the next piece of checks, in which the frame is received again. Throws if the link has used its share.
  /// The advertisement is then requested again later.
  private func mayCheck(_ header: FrameHeader, _ payload: RawSpan, on slot: Int, _ now: Instant) throws(FrameError)
    -> Bool
  {
    switch checks.take(by: slot, now: now) {
    case .granted: return true
    case .pieceUsed: if keepForPiece(header, payload, on: slot) { return false }
    case .overShare: break
    }
    flooding[slot].owe(header.source, now: now)
    throw .tooMany
  }

  /// Verifies the signature of an advertisement. After repeated wrong signatures the neighbour is disconnected, because
  /// it did not verify them itself.
  private func verify(_ view: borrowing AdvertisementView, of source: NodeID, on slot: Int, _ now: Instant)
    throws(FrameError)
  {
    if cryptography.verify(view.signature, over: view.signed, by: view.point, of: source) { return }
    noteWrongSignature(on: slot, now)
    throw .wrongSignature
  }

  /// Records that a neighbour passed on a wrong signature. Closes the link after the third wrong signature.
  func noteWrongSignature(on slot: Int, _ now: Instant) {
    let peer = links[slot].peer
    if signatureOffenders.note(peer, now: now) {
      closeLink(slot, .protocolError, retryAfterSeconds: signatureOffenders.secondsRefused(peer, now: now), now: now)
    }
  }

  /// Raises this node's epoch if others store advertisements of a later epoch. To other nodes, this node has then
  /// restarted. Returns true if the epoch was raised. Protection and routes of all associations must then be renewed.
  func raiseEpochIfDue(_ now: Instant) -> Bool {
    guard let epoch = epochRecovery.next(current: settings.epoch, now: now) else { return false }
    journal.record(.warning, .epochRaised, at: now, settings.epoch, epoch)
    settings.epoch = epoch
    local = settings.hello
    associations.epochRaised(to: epoch)
    originator.epochChanged()
    return true
  }

  private func ownAdvertisement(_ kind: AdvertisementKind, _ sequence: UInt64) -> [UInt8] {
    let settings = settings
    let services = services
    return [UInt8](unsafeUninitializedCapacity: Limits.advertisementBytesMax) { buffer, count in
      var output = OutputRawSpan(buffer: UnsafeMutableRawBufferPointer(buffer), initializedCount: 0)
      Advertisement.writeHead(
        kind, lifetimeSeconds: Timing.advertisementLifetimeSeconds, epoch: settings.epoch, sequence: sequence,
        point: settings.point.span.bytes, to: &output)
      switch kind {
      case .topology: mesh.writeTopology(flags: settings.topologyFlags, to: &output)
      case .profile: writeProfile(to: &output)
      case .services: output.append(bytes: services.span.bytes)
      }
      let signature = cryptography.sign(output.bytes)
      output.append(bytes: signature.span.bytes)
      count = output.byteCount
    }
  }

  @_lifetime(output: copy output)
  private func writeProfile(to output: inout OutputRawSpan) {
    let settings = settings
    settings.name.write(to: &output)
    output.append(UInt8(settings.serviceType.count))
    output.append(bytes: settings.serviceType.span.bytes)
    output.append(UInt8(settings.info.count))
    for pair in settings.info {
      output.append(UInt8(pair.count))
      output.append(bytes: pair.span.bytes)
    }
  }
}
