import BearerBluetooth
import Board
import CSystem
import Channel
import Configuration
import ControlSocket
import Frame
import Identity
import Journal
import LocalAPI
import Log
import Node
import Primitives
import Reactor
import SecureTransport
import Session
import Text
import Trust
import WiFiDirect

/// Runs the relay until a signal ends the process. `configurationFile` is the path from which `configuration` was read;
/// nil stands for the default path. The relay reads that file again at SIGHUP. Errors: a resource that the start needs
/// is missing.
public func runRelay(_ configuration: Configuration, configurationFile: String?) throws(StartError) {
  try startRelay(configuration, configurationFile).run()
}

/// Opens the resources that the start needs: the journal, the key, the boot epoch and the event loop.
private func startRelay(_ configuration: Configuration, _ file: String?) throws(StartError) -> Relay {
  if let excess = Ledger.excess(journalBytes: configuration.journal.sizeKiB * 1024) { say("memory", excess) }
  let journal: JournalFile
  do throws(AccessError) {
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
  for fault in state.faults { relay.faults.add(fault.source, fault.text) }
  if let fault = state.writeFault { relay.noteState(fault) }
  return relay
}

/// The daemon. The relay passes events and outputs between the node and the bearers, discovery, the control socket,
/// applications and the clock. All decisions about the protocol are made in the node.
final class Relay {
  /// The configuration in use. Configuration keys that need a restart retain their values from the start, even after a
  /// reload.
  var configuration: Configuration
  var configurationFile: String?
  let loop: EventLoop
  let node: Node
  let trust: TrustKeeper
  let journal: Journal
  let startedAt: Instant
  let cryptography: MbedCryptography

  let faults: FaultReports
  let contacts: ContactRecorder
  let radios: Radios
  let links: LinkManager
  let trustReports: TrustReports
  var control: ControlServer?
  var local: ClientServer?
  var probes: [ControlProbe] = []

  let journalFile: JournalFile
  private let clock: WallClockWatch
  private var signals: SignalSource?
  private var deadline: Timer?
  let indicators: Indicators
  var button: BoardButton?
  var maintenance: Timer?
  /// The peers whose end-to-end sessions are to be checked again, and the timer of that check (`reconsiderPeers`).
  var unreviewed: [NodeID] = []
  var sessionReview: Timer?
  /// The timer that returns the memory of ended links and lost peers to the kernel, `memoryRest` after the last end or
  /// loss.
  let memoryReturn: Timer
  static let memoryRest = TimeSpan.milliseconds(250)
  var stateWatch: DescriptorWatch?
  private var isStopping = false
  /// The time at which a stopping daemon closes its links, even if members do not know yet how their streams ended, or
  /// that an application has left.
  /// `.never` while the daemon runs and after the links were closed.
  private var linksCloseAt = Instant.never
  private var linksClosing: Timer?
  /// How long a stopping daemon waits, to send the ends of streams that its applications have already ended, and the
  /// departures of applications.
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
    journalFile = file
    journal = file.journal
    faults = FaultReports(journal, now: { loop.now })
    indicators = Indicators(loop, configuration.board, faults, serviceManager: ServiceManager())
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
    settings.bluetoothSlots = BearerBluetooth.BluetoothSettings().linksMax
    let node = Node(settings, cryptography, trust: TrustAdapter(trust), journal: journal, now: startedAt)
    self.node = node
    let memoryReturn = Timer(loop) { returnMemory(node) }
    self.memoryReturn = memoryReturn
    contacts = ContactRecorder(loop, node, trust)
    radios = Radios(loop, configuration, node, trust, journal, faults, contacts)
    links = LinkManager(loop, node, trust, journal, contacts, radios) { memoryReturn.set(after: Self.memoryRest) }
    trustReports = TrustReports(trust, journal, faults)
  }

  /// Runs until a signal ends the relay.
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
    do throws(AccessError) {
      control = try ControlServer(loop, path: configuration.controlSocketPath, journal: journal, delegate: self)
    } catch {
      throw StartError(error.text)
    }
    try startLocalAPI()
    journal.record(.notice, .boxStarted, at: startedAt, node.settings.epoch, UInt64(getpid()), node: node.settings.id)
    radios.start()
    button = BoardButton(loop, configuration, journal, faults) { [radios] in radios.openGroup() }
    startMaintenance()
    drain()
    indicators.ready()
    loop.run()
  }

  // MARK: Outputs of the node

  /// Carries out the node's outputs until none remain. Called at the end of each pass of the event loop.
  private func drain() {
    let now = monotonicNow()
    while true {
      // Applications receive their data and may write before this node encrypts and sends its own data. So applications
      // work while the node encrypts, and the node's acknowledgements include the data that applications have consumed.
      if let output = node.nextOutput(now: now, sends: false) {
        carryOut(output, now)
      } else if trustReports.report(now) {
        links.reconsider()
      } else if local?.sendEventsToClients() == true {
        continue
      } else if node.isPumpDue, let output = node.nextOutput(now: now) {
        carryOut(output, now)
      } else if !closeLinksIfDue(now) {
        break
      }
    }
    control?.sendFrames()
    links.wakeUpEnded()
    radios.reportTraffic(of: links.drivers)
    deadline?.set(node.nextDeadline(now: now))
    indicators.show { health }
    if isStopping && links.drivers.isEmpty { finish() }
  }

  private func carryOut(_ output: Node.Output, _ now: Instant) {
    switch output {
    case .dial(let handle): radios.dial(handle, now)
    case .transmit(let slot): links.transmit(slot)
    case .close(let slot): links.finish(slot)
    case .peer(let event): reportPeer(event, now)
    case .decisionWanted(let peer, let chain): decide(peer, chain, now)
    case .completed(let peer, let completion): probeEnded(peer, completion)
    // Only messages of an unassigned kind arrive here, and they are discarded (docs/protocol.md, "Message kinds").
    case .messageWaiting(let peer, let message): _ = node.takeMessage(from: peer, message.lane, now: now)
    case .datagram: break
    case .epochRaised(let epoch): epochRaised(to: epoch)
    case .session(let event): local?.clients.receive(event, now: now)
    }
  }

  var health: Indicators.Health {
    Indicators.Health(
      hasFault: !trust.alarms.isEmpty || !faults.all.isEmpty,
      isJoining: radios.group?.isPushButtonPressed ?? false, isLinked: node.isLinked)
  }

  // MARK: Shutdown

  private func stop(_ signal: CInt) {
    if isStopping { return finish() }
    isStopping = true
    indicators.stopping()
    journal.record(.notice, .boxStopped, at: loop.now, UInt64(signal))
    linksCloseAt = loop.now + Self.owingTime
    // The timer only causes a pass of the event loop. `drain` at the end of a pass closes the links.
    linksClosing = Timer(loop) {}
    linksClosing?.set(linksCloseAt)
  }

  /// Closes the links of a stopping daemon when `linksCloseAt` has come. Closes the links earlier once all members know
  /// how the streams of this node's applications ended, and the departures of applications are sent. Returns whether
  /// the links were closed in this call.
  private func closeLinksIfDue(_ now: Instant) -> Bool {
    let owes = node.sessions.owesStreams || node.sessions.owesDepartures
    guard linksCloseAt != .never, now >= linksCloseAt || !owes else { return false }
    linksCloseAt = .never
    node.shutDown(now: now)
    links.finishHandshakes()
    return true
  }

  private func finish() {
    stateWatch?.stop()
    try? trust.saveIfChanged()
    try? trust.store.settle()
    links.close()
    radios.stop()
    control?.close()
    local?.close()
    button?.close()
    indicators.close()
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
