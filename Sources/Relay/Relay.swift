import Bearer
import BearerBluetooth
import BearerIP
import Board
import CSystem
import Channel
import Configuration
import ControlSocket
import DHCP
import Discovery
import Frame
import Identity
import Journal
import Link
import LocalAPI
import Log
import Node
import Primitives
import Reactor
import SecureTransport
import Session
import StatusPage
import Text
import Trust
import WiFiDirect

/// Runs the relay until a signal ends it. `configurationFile` is the path from which `configuration` was read; nil
/// stands for the default path. The relay reads that file again at SIGHUP. Errors: a resource that the start needs is
/// missing.
public func runRelay(_ configuration: Configuration, configurationFile: String?) throws(StartError) {
  try startRelay(configuration, configurationFile).run()
}

/// Opens the resources that the start needs: the journal, the key, the boot epoch and the event loop.
private func startRelay(_ configuration: Configuration, _ file: String?) throws(StartError) -> Relay {
  if let excess = Ledger.excess(journalBytes: configuration.journal.sizeKiB * 1024) { say("memory", excess) }
  let journal: JournalFile
  do throws(DiagnosticsError) {
    journal = try JournalFile(
      path: configuration.journalPath, sizeKiB: configuration.journal.sizeKiB, level: configuration.journal.level)
  } catch {
    throw StartError(error.text)
  }
  reportTraps()
  Limits.checkWidths()
  ChannelLimits.eachWidth { _, greatest, fits in precondition(greatest <= fits) }
  let state = try openState(configuration, journal.journal)
  let loop: EventLoop
  let clock: WallClockWatch
  do throws(SystemError) {
    loop = try EventLoop()
    clock = try WallClockWatch(loop, journal.journal)
  } catch {
    throw StartError("cannot start the event loop: \(error.text)")
  }
  let relay = try Relay(configuration, loop, clock, state.trust, epoch: state.epoch, journal: journal)
  relay.configurationFile = file
  relay.problems = state.faults
  if let fault = state.writeFault { relay.noteState(fault) }
  return relay
}

/// The daemon. It passes events and outputs between the node and the bearers, discovery, the control socket,
/// applications and the clock. All decisions about the protocol are made in the node.
final class Relay: LinkDriverDelegate, InboundStreamsDelegate {
  /// The configuration in use. Configuration keys that need a restart retain the values that they had at the start,
  /// even after a reload.
  var configuration: Configuration
  var configurationFile: String?
  let loop: EventLoop
  let node: Node
  let trust: TrustKeeper
  let journal: Journal
  let scratch = LinkScratch()
  let startedAt: Instant
  let credentials: TLSCredentials
  let cryptography: MbedCryptography

  var drivers: [LinkDriver] = []
  var inbound: InboundStreams?
  var candidates = CandidateHandles()
  var contactFailures = ContactFailures()
  var ip: IPBearer?
  var bluetooth: BluetoothRadios?
  var wifiDirect: WiFiDirectRadio?
  var mesh: WiFiDirectRadio?
  var dnsSD: DNSServiceDiscovery?
  var page: PageServer?
  var dhcp: DHCPServer?
  /// The index of the interface on which `serveGroup` serves stations; 0 if there is none.
  var servedInterface: UInt32 = 0
  /// Why the Wi-Fi group has no status page (`pageProblem`) or no DHCP server (`dhcpProblem`). Empty if the server runs
  /// or the configuration disables it.
  var pageProblem = ""
  var dhcpProblem = ""
  var control: ControlServer?
  var local: ClientServer?
  /// The present fault of each part of the daemon, for status. A part without a fault has no entry.
  var problems: [(source: StaticString, text: String)] = []
  var probes: [ControlProbe] = []

  let journalFile: JournalFile
  private let clock: WallClockWatch
  private var signals: SignalSource?
  private var deadline: Timer?
  let statusLED: StatusLED?
  let statusLight: GPIOLight?
  var button: GPIOButton?
  /// When the button was held to switch the board off. nil once `keepButton` has checked the result.
  var powerOffAskedAt: Instant?
  var maintenance: Timer?
  /// The timer that returns the memory of ended links and lost peers to the kernel, `memoryRest` after the last such
  /// event.
  var memoryReturn: Timer?
  static let memoryRest = TimeSpan.milliseconds(250)
  var stateWatch: DescriptorWatch?
  var wasSynchronised = false
  /// The serial numbers of the deny-lists (lists of revoked keys) against which the links were last checked.
  var deniedSeen: [UInt64] = []
  /// The value of `TrustKeeper.pinsLeft` that was reported last.
  var pinsLeft = PinsLeft.many
  var unpinnedReported: UInt64 = 0
  var refusalsTold = FixedArray<6, UInt64>(repeating: 0)
  let serviceManager = ServiceManager()
  var health = StatusLED.Pattern.off
  private var isStopping = false
  /// The time at which a stopping daemon closes its links, even if members do not know yet how their streams ended.
  /// `.never` while the daemon runs and after the links were closed.
  private var linksCloseAt = Instant.never
  private var linksClosing: Timer?
  /// How long a stopping daemon waits, so that it can send the ends of streams that its applications have already
  /// ended.
  private static let owingTime = TimeSpan.seconds(1)

  init(
    _ configuration: Configuration, _ loop: EventLoop, _ clock: WallClockWatch, _ trust: TrustKeeper, epoch: UInt64,
    journal file: JournalFile
  ) throws(StartError) {
    self.configuration = configuration
    self.loop = loop
    self.clock = clock
    self.trust = trust
    let identity = trust.identity
    credentials = TLSCredentials(identity)
    journalFile = file
    journal = file.journal
    let led = configuration.board.statusLED
    statusLED = led.utf8.isEmpty ? nil : StatusLED(name: led)
    statusLight = configuration.board.statusPin.map { GPIOLight(loop, $0) }
    startedAt = monotonicNow()
    let name: DisplayName
    do throws(FrameError) {
      name = try DisplayName(Array(configuration.node.displayName.utf8).span.bytes)
    } catch {
      throw StartError("display name \"\(configuration.node.displayName)\": 1 to 63 bytes of UTF-8 are needed")
    }
    do throws(SecureStreamError) { cryptography = try MbedCryptography(identity) } catch {
      throw StartError(error.text)
    }
    var settings = NodeSettings(
      id: identity.id, epoch: epoch, point: (0..<65).map { identity.publicPoint[$0] }, name: name,
      serviceType: Array(configuration.node.serviceType.utf8),
      info: configuration.node.discoveryInfo.map { Array(($0.key + "=" + $0.value).utf8) },
      relays: configuration.node.isRelay, bypass: true, linksMax: configuration.node.peersMax,
      encryption: configuration.peer.encryption)
    settings.asksApplication = true
    settings.bluetoothPlaces = BearerBluetooth.BluetoothSettings().linksMax
    node = Node(
      settings, cryptography, trust: TrustAdapter(trust), journal: journal, now: startedAt)
  }

  /// Runs until a signal ends it.
  func run() throws(StartError) {
    let deadline = Timer(loop) { [self] in node.handle(.timeout, now: loop.now) }
    self.deadline = deadline
    loop.batchEnded = { [self] in drain() }
    do throws(SystemError) {
      signals = try SignalSource(loop, [SIGTERM, SIGINT, SIGHUP]) { [self] signal in
        if signal == SIGHUP { reload() } else { stop(signal) }
      }
    } catch {
      throw StartError("cannot watch for signals: \(error.text)")
    }
    do throws(DiagnosticsError) {
      control = try ControlServer(loop, path: configuration.controlSocketPath, journal: journal, delegate: self)
    } catch {
      throw StartError(error.text)
    }
    try startLocalAPI()
    journal.record(.notice, .boxStarted, at: startedAt, node.settings.epoch, UInt64(getpid()), node: node.settings.id)
    inbound = InboundStreams(loop, scratch, self)
    startBearers()
    startButton()
    startMaintenance()
    drain()
    serviceManager?.ready()
    loop.run()
  }

  // MARK: Streams

  /// Handles a stream that a bearer opened. An inbound stream passes admission first; a dialled stream starts its
  /// handshake at once.
  func begin(_ stream: StreamHandoff) {
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
      close(stream.descriptor)
      if let admission { inbound?.handshakeEnded(admission, .noLink) }
      if !stream.isInbound { node.handle(.dialFailed(stream.token), now: loop.now) }
      return
    }
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
    journal.report(.error, at: loop.now, "link", reason)
    if let admission { inbound?.handshakeEnded(admission, .noLink) }
    if !stream.isInbound { node.handle(.dialFailed(stream.token), now: loop.now) }
  }

  func linkProgressed(_ driver: LinkDriver) {
    if let admission = driver.admission { inbound?.progressed(admission) }
  }

  func linkProved(_ driver: LinkDriver) {
    giveUpCrossed(driver)
    if !driver.handoff.isInbound { bluetooth?.proved(driver.handoff.remote) }
    dnsSD?.proved(driver.handoff.remote, hint: driver.peer.high)
  }

  func linkOpened(_ driver: LinkDriver) {
    if driver.slot == nil { noteNoSlot(driver) }
    guard let admission = driver.admission else { return }
    driver.admission = nil
    let end: AdmissionGate.HandshakeEnd = driver.slot == nil ? .noLink : .link(standing(of: driver.peer))
    inbound?.handshakeEnded(admission, end, checks: driver.checksMade)
  }

  private func standing(of peer: NodeID) -> Standing {
    if trust.isPinnedByOperator(peer) { return .pinned }
    return trust.policy == .open || trust.isPinned(peer) ? .proven : .stranger
  }

  /// Ends a second channel over Bluetooth LE to the same peer if nothing has arrived on it. If both ends dialled at the
  /// same time, one of the two channels may carry nothing. Such a channel would prevent further dials until its
  /// handshake deadline. A channel on which bytes arrived stays, because the node has a rule for two links to one
  /// neighbour.
  private func giveUpCrossed(_ proven: LinkDriver) {
    guard proven.handoff.bearer == .bluetoothLE else { return }
    let crossed = drivers.filter {
      $0 !== proven && $0.isSilent && !$0.handoff.isInbound && $0.handoff.remote == proven.handoff.remote
    }
    for driver in crossed { driver.giveUp() }
  }

  func linkEnded(_ driver: LinkDriver, reason: String) {
    noteEnd(driver, reason)
    drivers.removeAll { $0 === driver }
    memoryReturn?.set(after: Self.memoryRest)
    if let admission = driver.admission { inbound?.handshakeEnded(admission, .noLink, checks: driver.checksMade) }
    if let slot = driver.slot {
      if driver.handoff.isInbound && node.isLinkWasted(slot) {
        inbound?.wasted(driver.handoff.remote.source, checks: driver.checksMade)
      }
      if driver.isRefused { journal.report(.notice, at: loop.now, "link", "\(driver.handoff.remote.text): \(reason)") }
      if driver.handoff.bearer.isWiFi { bluetooth?.wifiEnded() }
      let isLost = node.link(slot).state == .up
      node.handle(.linkClosed(slot), now: loop.now)
      if isLost, case .bluetooth(let endpoint) = driver.handoff.remote {
        bluetooth?.answerAgain(endpoint, wasDialled: !driver.handoff.isInbound)
      }
      freePlace(driver, slot)
    } else {
      journal.report(.notice, at: loop.now, "link", "\(driver.handoff.remote.text): \(reason)")
      if !driver.handoff.isInbound { node.handle(.dialFailed(driver.handoff.token), now: loop.now) }
    }
  }

  /// Closes the Bluetooth connection of a parked link (one that is kept without a connection). The end that relays
  /// closes it, because that end receives the last frame.
  private func freePlace(_ driver: LinkDriver, _ slot: Int) {
    guard node.settings.relays, node.link(slot).state == .parked, case .bluetooth(let endpoint) = driver.handoff.remote,
      !drivers.contains(where: { $0.handoff.remote == driver.handoff.remote })
    else { return }
    bluetooth?.hangUp(endpoint)
  }

  // MARK: Outputs of the node

  /// Carries out the node's outputs until none remain. Called at the end of each pass of the event loop.
  private func drain() {
    let now = monotonicNow()
    while true {
      // Applications receive their data and may write before this node encrypts and sends its own data. So they work
      // while the node encrypts, and the node's acknowledgements include what they have consumed.
      if let output = node.nextOutput(now: now, sends: false) {
        carryOut(output, now)
      } else if reportTrust(now) || local?.tellClients() == true {
        continue
      } else if node.isPumpDue, let output = node.nextOutput(now: now) {
        carryOut(output, now)
      } else if !closeLinksIfDue(now) {
        break
      }
    }
    control?.sendFrames()
    for driver in drivers { driver.wakeUpEnded() }
    tellBluetoothTraffic()
    deadline?.set(node.nextDeadline(now: now))
    showHealth()
    if isStopping && drivers.isEmpty { finish() }
  }

  private func carryOut(_ output: Node.Output, _ now: Instant) {
    switch output {
    case .dial(let handle): dial(handle, now)
    case .transmit(let slot): driver(of: slot)?.transmit()
    case .close(let slot): driver(of: slot)?.finish()
    case .peer(let event): reportPeer(event, now)
    case .decisionWanted(let peer, let chain): decide(peer, chain, now)
    case .completed(let peer, let completion): probeEnded(peer, completion)
    // Only messages of an unassigned kind arrive here, and they are discarded (docs/protocol.md, "Message kinds").
    case .messageWaiting(let peer, let message): _ = node.takeMessage(from: peer, message.lane, now: now)
    case .datagram: break
    case .epochRaised(let epoch): epochRaised(to: epoch)
    case .session(let event): local?.clients.hear(event, now: now)
    }
  }

  private func dial(_ handle: UInt32, _ now: Instant) {
    guard let candidate = candidates[handle] else { return node.handle(.dialFailed(handle), now: now) }
    journal.record(.info, .dialStarted, at: now, UInt64(candidate.bearer.rawValue), UInt64(handle))
    switch candidate.address {
    case .ip:
      guard let ip else { return node.handle(.dialFailed(handle), now: now) }
      ip.dial(candidate, token: handle)
    case .bluetooth, .bluetoothClassic:
      guard let bluetooth else { return node.handle(.dialFailed(handle), now: now) }
      bluetooth.dial(candidate, token: handle)
    }
  }

  private func driver(of slot: Int) -> LinkDriver? { drivers.first { $0.slot == slot } }

  // MARK: Shutdown

  private func stop(_ signal: CInt) {
    if isStopping { return finish() }
    isStopping = true
    serviceManager?.stopping()
    journal.record(.notice, .boxStopped, at: loop.now, UInt64(signal))
    linksCloseAt = loop.now + Self.owingTime
    // The timer only causes a pass of the event loop. `drain` at the end of a pass closes the links.
    linksClosing = Timer(loop) {}
    linksClosing?.set(linksCloseAt)
  }

  /// Closes the links of a stopping daemon when `linksCloseAt` has come. Closes them earlier once all members know how
  /// the streams of this node's applications ended. Returns whether the links were closed in this call.
  private func closeLinksIfDue(_ now: Instant) -> Bool {
    guard linksCloseAt != .never, now >= linksCloseAt || !node.sessions.owesStreams else { return false }
    linksCloseAt = .never
    node.shutDown(now: now)
    for driver in drivers where driver.slot == nil { driver.finish() }
    return true
  }

  private func finish() {
    stateWatch?.stop()
    try? trust.saveIfChanged()
    try? trust.store.settle()
    inbound?.close()
    page?.close()
    dhcp?.close()
    dnsSD?.stop()
    bluetooth?.stop()
    wifiDirect?.stop()
    if configuration.bluetooth.joinsGroup { GroupBridge.remove() }
    mesh?.stop()
    ip?.stop()
    control?.close()
    local?.close()
    button?.close()
    try? statusLED?.show(.off)
    statusLight?.close()
    journal.recordRepeats(at: monotonicNow(), isLast: true)
    loop.batchEnded = nil
    loop.stop()
  }
}

/// Why the daemon could not start, and the remedy, in one line.
public struct StartError: Error {
  public let text: String
  init(_ text: String) { self.text = text }
}

/// Writes one line for the operator to standard error.
func say(_ source: StaticString, _ text: String) {
  var line = TextBuilder()
  line.add("causeway: \(source): ")
  line.add(message: text.utf8)
  line.add("\n")
  line.bytes.withUnsafeBytes { offerToStandardError($0) }
}
