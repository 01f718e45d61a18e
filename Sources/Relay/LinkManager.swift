import Bearer
import CSystem
import Identity
import Journal
import Link
import Log
import Node
import Primitives
import Reactor
import SecureTransport
import Trust

/// The links of the daemon, from the stream that a bearer opens to its end: admission, handshakes, crossed dials.
final class LinkManager: LinkDriverDelegate, InboundStreamsDelegate, RadiosDelegate {
  let node: Node
  let scratch = LinkScratch()
  private(set) var drivers: [LinkDriver] = []
  private let loop: EventLoop
  private let trust: TrustKeeper
  private let journal: Journal
  private let credentials: TLSCredentials
  private let contacts: ContactRecorder
  private let radios: Radios
  /// Called after a link has ended.
  private let ended: () -> Void
  private var inbound: InboundStreams?
  /// The handshake step that runs now: the number of its stream at the admission gate, and the time of the thread at
  /// which it began.
  private var step: (admission: UInt32?, began: TimeSpan)?
  /// The time of all handshake steps in one pass of the event loop, and the time at which this pass began.
  private var steps = (time: TimeSpan(nanoseconds: 0), passBegan: Instant.zero)
  /// The handshake steps of one pass end when they took this long together. A step takes up to 2 ms on x86_64, and 5 ms
  /// on a Raspberry Pi 4, so one pass makes one costly step. Between the steps, the links are served.
  static let stepTimeMax = TimeSpan.milliseconds(1)
  /// The numbers of refused streams at the last report.
  private var reportedRefusals = FixedArray<6, UInt64>(repeating: 0)

  init(
    _ loop: EventLoop, _ node: Node, _ trust: TrustKeeper, _ journal: Journal, _ contacts: ContactRecorder,
    _ radios: Radios, ended: @escaping () -> Void
  ) {
    self.loop = loop
    self.node = node
    self.trust = trust
    self.journal = journal
    self.contacts = contacts
    self.radios = radios
    self.ended = ended
    credentials = TLSCredentials(trust.identity)
    inbound = InboundStreams(loop, scratch, self)
    radios.delegate = self
  }

  // MARK: All links

  /// The number of links, without streams in their handshake.
  var count: Int { drivers.count { $0.slot != nil } }

  /// Sends the frames that the node has queued for a link slot.
  func transmit(_ slot: Int) { driver(of: slot)?.transmit() }

  /// Closes the link of a slot after its last frames.
  func finish(_ slot: Int) { driver(of: slot)?.finish() }

  /// Ends the streams that have no link slot.
  func finishHandshakes() {
    for driver in drivers where driver.slot == nil { driver.finish() }
  }

  /// Closes the streams that wait for admission.
  func close() { inbound?.close() }

  func wakeUpEnded() {
    for driver in drivers { driver.wakeUpEnded() }
  }

  /// Checks the peers of all links again, after trust has changed.
  func reconsider() {
    attribute()
    for driver in drivers { driver.reconsider() }
  }

  /// Charges the journal's records about each link to its cause. Called when the operator has decided on a node.
  func attribute() {
    for driver in drivers { attribute(driver) }
  }

  private func attribute(_ driver: LinkDriver) {
    if let slot = driver.slot { journal.attribute(link: UInt8(slot), to: driver.recordCause(trust)) }
  }

  /// The cause of a record about a node that only its neighbour `neighbour` on the way to it vouches for.
  func cause(behind neighbour: NodeID) -> RecordCause {
    drivers.first { $0.slot != nil && $0.peer == neighbour }?.handoff.cause ?? .interface(0)
  }

  func hasStream(with remote: RemoteAddress) -> Bool {
    drivers.contains { $0.handoff.remote == remote } || inbound?.contains(remote) ?? false
  }

  func endLinks(exceptOn interfaces: [UInt32]) {
    for driver in drivers where driver.handoff.interfaceIndex != 0 {
      if !interfaces.contains(driver.handoff.interfaceIndex) { driver.interfaceWent() }
    }
  }

  private func driver(of slot: Int) -> LinkDriver? { drivers.first { $0.slot == slot } }

  /// Reports all streams that were refused since the last call, in one line. In a flood, one line for each stream would
  /// fill the journal.
  func reportRefusals() {
    guard let refusals = inbound?.gate.admission.refusals else { return }
    var text = ""
    for refusal in Admission.Refusal.allCases {
      let index = Int(refusal.rawValue), count = refusals[index] &- reportedRefusals[index]
      if count > 0 { text += "\(text.utf8.isEmpty ? "" : ", ")\(count) \(refusal.name)" }
    }
    reportedRefusals = refusals
    if !text.utf8.isEmpty { journal.report(.warning, at: loop.now, "admission", "not admitted: \(text)") }
  }

  // MARK: Streams

  /// Handles a stream that a bearer opened. An inbound stream passes admission first; a dialled stream starts its
  /// handshake at once.
  func streamOpened(_ stream: StreamHandoff) {
    if stream.isInbound {
      inbound?.arrive(stream)
    } else {
      startLink(stream, [], admission: nil, deadline: loop.now + Admission.deadline(stream.bearer))
    }
  }

  func streamAdmitted(_ stream: StreamHandoff, _ opening: AdmissionGate.Opening) {
    startLink(stream, opening.bytes, admission: opening.stream, deadline: opening.deadline)
  }

  func streamStalled(_ number: UInt32) { drivers.first { $0.admission == number }?.giveWay() }

  private func startLink(_ stream: StreamHandoff, _ bytes: [UInt8], admission: UInt32?, deadline: Instant) {
    journal.record(
      .info, .linkOpening, at: loop.now, UInt64(stream.bearer.rawValue), stream.isInbound ? 1 : 0)
    // Twice the number of links leaves room for as many streams that have not proved their key.
    guard drivers.count < 2 * Limits.linksMax else {
      journal.record(.warning, .linkSlotsFull, at: loop.now, UInt64(drivers.count), UInt64(2 * Limits.linksMax))
      CSystem.close(stream.descriptor)
      if let admission { inbound?.handshakeEnded(admission, .noLink) }
      if !stream.isInbound { node.handle(.dialFailed(stream.token), now: loop.now) }
      return
    }
    step = (admission, threadTime())
    defer { endStep() }
    let io: LinkStream
    do throws(SystemError) {
      io = try LinkStream(loop, stream, scratch)
    } catch {
      return linkFailed(stream, admission, error.text)
    }
    do throws(SecureStreamError) {
      let driver = try LinkDriver(
        io, stream, credentials, judge: LinkJudge(trust, from: stream.remote.source), self)
      driver.admission = admission
      drivers.append(driver)
      io.serve(driver)
      driver.start(bytes, deadline: deadline)
    } catch {
      io.close(lingers: false)
      linkFailed(stream, admission, error.text)
    }
  }

  private func linkFailed(_ stream: StreamHandoff, _ admission: UInt32?, _ reason: String) {
    journal.report(.error, at: loop.now, "link", reason, cause: stream.cause)
    if let admission { inbound?.handshakeEnded(admission, .noLink) }
    if !stream.isInbound { node.handle(.dialFailed(stream.token), now: loop.now) }
  }

  func beginStep(_ driver: LinkDriver) -> Bool {
    if steps.passBegan == loop.now && steps.time >= Self.stepTimeMax { return false }
    step = (driver.admission, threadTime())
    return true
  }

  func endStep() {
    guard let ended = step else { return }
    step = nil
    let time = TimeSpan(nanoseconds: threadTime().nanoseconds &- ended.began.nanoseconds)
    if steps.passBegan != loop.now { steps = (TimeSpan(nanoseconds: 0), loop.now) }
    steps.time = steps.time + time
    if let admission = ended.admission { inbound?.spent(time, by: admission) }
  }

  func linkProgressed(_ driver: LinkDriver) {
    if let admission = driver.admission { inbound?.progressed(admission) }
  }

  func linkProved(_ driver: LinkDriver) {
    giveUpCrossed(driver)
    radios.proved(driver.handoff, by: driver.peer)
  }

  func linkOpened(_ driver: LinkDriver) {
    if driver.slot == nil { contacts.noteNoSlot(driver) }
    attribute(driver)
    guard let admission = driver.admission else { return }
    endStep()
    driver.admission = nil
    let end: AdmissionGate.HandshakeEnd = driver.slot == nil ? .noLink : .link(driver.peer, standing(of: driver.peer))
    inbound?.handshakeEnded(admission, end, checks: driver.checksMade)
  }

  private func standing(of peer: NodeID) -> Standing {
    if trust.isPinnedByOperator(peer) { return .pinned }
    return trust.policy == .open || trust.isPinned(peer) ? .proven : .stranger
  }

  /// Ends a second channel over Bluetooth LE to the same peer if nothing has arrived on it. If both ends dialled at the
  /// same time, one of the two channels may carry nothing. A channel that carries nothing would prevent further dials
  /// until its handshake deadline. A channel on which bytes arrived stays, because the node has a rule for two links to
  /// one neighbour.
  private func giveUpCrossed(_ proven: LinkDriver) {
    guard proven.handoff.bearer == .bluetoothLE else { return }
    let crossed = drivers.filter {
      $0 !== proven && $0.isSilent && !$0.handoff.isInbound && $0.handoff.remote == proven.handoff.remote
    }
    for driver in crossed { driver.giveUp() }
  }

  func linkEnded(_ driver: LinkDriver, reason: String) {
    contacts.noteEnd(driver, reason)
    drivers.removeAll { $0 === driver }
    ended()
    if let admission = driver.admission {
      // A handshake that ends during its step pays for this step before it leaves the gate.
      if step?.admission == admission { endStep() }
      inbound?.handshakeEnded(admission, .noLink, checks: driver.checksMade)
    }
    if let slot = driver.slot {
      if driver.handoff.isInbound && node.isLinkWasted(slot) {
        inbound?.wasted(driver.handoff.remote.source, checks: driver.checksMade)
      }
      if driver.isRefused { report(driver, reason) }
      if driver.handoff.bearer.isWiFi { radios.wifiLinkEnded() }
      let isLost = node.link(slot).state == .up
      node.handle(.linkClosed(slot), now: loop.now)
      if isLost { radios.linkLost(driver.handoff) }
      releaseConnection(driver, slot)
    } else {
      report(driver, reason)
      if !driver.handoff.isInbound { node.handle(.dialFailed(driver.handoff.token), now: loop.now) }
    }
  }

  private func report(_ driver: LinkDriver, _ reason: String) {
    journal.report(
      .notice, at: loop.now, "link", "\(driver.handoff.remote.text): \(reason)", cause: driver.recordCause(trust))
  }

  /// Closes the Bluetooth connection of a parked link (kept without a connection). The relaying end closes the
  /// connection, because that end receives the last frame.
  private func releaseConnection(_ driver: LinkDriver, _ slot: Int) {
    guard node.settings.relays, node.link(slot).state == .parked, case .bluetooth(let endpoint) = driver.handoff.remote,
      !drivers.contains(where: { $0.handoff.remote == driver.handoff.remote })
    else { return }
    radios.hangUp(endpoint)
  }
}
