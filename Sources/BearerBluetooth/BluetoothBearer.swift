import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The Bluetooth bearer of one controller: LE, LE together with classic (`ClassicRadio`), or classic alone. The bearer
/// uses the kernel's sockets, without bluetoothd. With LE, the bearer advertises and serves the Causeway service, scans
/// for peers with that service, and dials these peers. The bearer hands over credit-based L2CAP channels as streams.
///
/// There is no pairing over LE, and no bonding: the bearer refuses requests, and TLS above the channel authenticates. A
/// missing or failing controller is reported once; `Adapter` waits for its return. `RadioPlan` schedules the radio.
///
/// LE streams are SEQPACKET sockets. One `send` on an LE stream carries at most the stream's `unitBytesMax` bytes. The
/// buffer of each `recv` on an LE stream must have at least `receiveBytesMax` bytes, or the rest of the SDU is lost.
public final class BluetoothBearer {
  /// The source names in reports.
  typealias Sources = (lowEnergy: StaticString, classic: StaticString, network: StaticString)

  /// The largest SDU that a stream receives, in bytes.
  public static let receiveBytesMax = Int(L2CAPSocket.receiveUnitBytesMax)
  /// The maximum number of queued dials: one for each candidate. Further dials fail at once.
  public static let dialsQueuedMax = HeardPeers.entriesMax
  /// The number of failed commands in a row after which the bearer checks whether the controller still answers.
  private static let doubtsMax = 2
  /// After this many failed commands in a row, a controller without links is switched off and on, even if it answers.
  /// The controller's state may then differ from what the kernel assumes.
  private static let failuresMax = 4
  /// Wi-Fi is loaded when it carries this many bytes within a second. The load ends when Wi-Fi has carried less for
  /// `sharedCalm`. A file or a stream of pictures is a load; a chat is not.
  private static let sharedBytes: UInt64 = 131_072
  private static let sharedCalm = TimeSpan.seconds(3)

  let loop: EventLoop
  let settings: BluetoothSettings
  private let hint: UInt64
  private let sources: Sources
  var delegate: (any BearerDelegate)?
  /// Whether a stream with a peer is open. A peer with an open stream is not dialled.
  var hasStream: (RemoteAddress) -> Bool = { _ in false }
  let adapter: Adapter
  let attributes: AttributeConnections
  let classic: ClassicRadio?
  var plan: RadioPlan
  var candidates = HeardPeers()
  /// Classic peers that answered an inquiry.
  var classicCandidates = HeardPeers()
  private var listeners: [BluetoothListener] = []
  var linked: [WireAddress] = []
  /// Linked LE peers whose disconnection this node has requested.
  var leaving: [BluetoothEndpoint] = []
  var dials: [(peer: WireAddress, token: UInt32)] = []
  /// `isDiallingUs`: since the dial began, the peer has opened a channel itself, over the same connection.
  var dial: (process: any Dial, peer: WireAddress, token: UInt32, isDiallingUs: Bool)?
  var overtaken = OvertakenDials()
  /// The number of failed commands in a row.
  private var doubts = 0
  private var isProbing = false
  private var times = RadioTimes()
  private var classicTimes = RadioTimes()
  private var paces = ConnectionPaces()
  /// Whether the kernel applies new parameters to existing connections.
  private var updatesConnections = false
  private var has2M = false
  private var wifi = TrafficLoad(bytesMin: sharedBytes, calm: sharedCalm)
  /// The load of Bluetooth itself. No inquiry runs while Bluetooth is loaded.
  private var busy = TrafficLoad(bytesMin: ConnectionPace.loadBytes, calm: sharedCalm)
  var timer: Timer?

  /// `hint`: the first 8 bytes of this node's id, for the scan response. `settings.problem` must be nil.
  convenience init(
    _ loop: EventLoop, _ settings: BluetoothSettings, hint: UInt64, sources: Sources, _ delegate: any BearerDelegate
  ) {
    self.init(loop, settings, hint: hint, sources: sources, delegate) {
      do throws(SystemError) {
        return .success(try ManagementChannel.openSocket())
      } catch {
        return .failure(error)
      }
    }
  }

  init(
    _ loop: EventLoop, _ settings: BluetoothSettings, hint: UInt64,
    sources: Sources = ("bluetooth", "bluetooth-classic", "bluetooth-nap"),
    _ delegate: any BearerDelegate, openSocket: @escaping () -> Result<CInt, SystemError>,
    openClassic: @escaping (UInt64) throws(SystemError) -> ClassicRadio.Sockets = ClassicRadio.openSockets
  ) {
    self.loop = loop
    self.settings = settings
    self.hint = hint
    self.sources = sources
    self.delegate = delegate
    adapter = Adapter(
      loop, settings.adapter, needs: settings.isLowEnergy ? .lowEnergy : .classic, openSocket: openSocket)
    attributes = AttributeConnections(loop, psm: settings.psm)
    classic =
      settings.isClassic
      ? ClassicRadio(
        loop, adapter, .init(hint: hint, relays: settings.relays), bridge: settings.networkBridge,
        open: openClassic) : nil
    plan = RadioPlan(
      linksMax: settings.linksMax, mayAdvertise: settings.isLowEnergy && settings.isAdvertising,
      mayScan: settings.isLowEnergy && settings.isScanning, relays: settings.relays, seed: hint)
  }

  /// Starts the bearer, which then searches for its controller. Missing hardware or permissions are reported to the
  /// delegate, not thrown.
  public func start() {
    guard timer == nil else { return }
    timer = Timer(loop) { [self] in advance() }
    adapter.report = { [self] text, isFault in delegate?.bearerReport(sources.lowEnergy, text, isFault: isFault) }
    adapter.cameUp = { [self] working in cameUp(working) }
    adapter.wentDown = { [self] in wentDown() }
    adapter.eventReceived = { [self] event in received(event) }
    classic?.report = { [self] text, isFault in
      delegate?.bearerReport(sources.classic, text, isFault: isFault)
      // The report can mean that inquiries are allowed from now on, or no longer allowed.
      advance()
    }
    classic?.network?.report = { [self] in delegate?.bearerReport(sources.network, $0, isFault: $1) }
    classic?.accepted = { [self] descriptor, address in
      accepted(descriptor, WireAddress(classic: address), unitBytesMax: Int.max)
    }
    adapter.start()
  }

  var isUp: Bool { adapter.working != nil }
  /// The maximum number of LE links at once.
  var slots: Int { settings.linksMax }
  /// The number of LE link slots, less the links and the queued dials. The number is negative if more dials are queued
  /// than slots are free, and while no controller is up.
  var slotsFree: Int { isUp ? slots - plan.links - dials.count : .min + 1 }

  /// Notes that `byteCount` bytes have passed over the stream of a peer, in both directions, since the last call.
  public func passed(_ peer: RemoteAddress, _ byteCount: UInt64) {
    guard let device = WireAddress(peer), linked.contains(device) else { return }
    let begins = settings.isClassic && busy.passed(byteCount, loop.now)
    if device.endpoint.map({ paces.passed($0, byteCount, loop.now) }) ?? false || begins { advance() }
  }

  /// Notes that `byteCount` bytes have passed over Wi-Fi since the last call.
  public func passedOverWiFi(_ byteCount: UInt64) {
    if wifi.passed(byteCount, loop.now) { advance() }
  }

  /// Notes that a link over Wi-Fi has ended. Wi-Fi then no longer counts as loaded, because the link's traffic may need
  /// Bluetooth now.
  public func wifiEnded() {
    wifi.ended(loop.now)
    advance()
  }

  /// Notes that the node at the other end of a dialled stream has proved its key in the TLS handshake.
  public func proved(_ peer: RemoteAddress) {
    guard let device = WireAddress(peer) else { return }
    if device.isClassic { classicCandidates.proved(device) } else { candidates.proved(device) }
  }

  /// Removes this node's advertising, and closes every socket of the bearer. Streams that were handed over stay open.
  /// No delegate call follows.
  public func stop() {
    delegate = nil
    timer?.cancel()
    timer = nil
    if let working = adapter.working {
      adapter.post(.removeAdvertising(working.index))
      if plan.isScanning || plan.isInquiring {
        adapter.post(.stopDiscovery(working.index, isInquiry: plan.isInquiring))
      }
      classic?.hide(working.index)
    }
    wentDown()
    classic?.report = nil
    classic?.network?.report = nil
    classic?.accepted = nil
    adapter.stop()
  }

  public var snapshot: BluetoothSnapshot {
    let (scanning, dialling) = times.total(loop.now)
    return BluetoothSnapshot(
      adapterIndex: adapter.working?.index, adapterAddress: adapter.working?.address, problem: adapter.problem,
      isExtended: adapter.working?.isExtended ?? false, isAdvertising: plan.isAdvertising,
      isScanning: plan.isScanning, isDialling: plan.isDialling && !isDiallingClassic,
      isAirShared: wifi.isLoaded(loop.now), has2M: has2M,
      fastLinks: paces.fast, slowLinks: paces.slow,
      scanningTime: scanning, diallingTime: dialling, links: plan.links, linksMax: settings.linksMax,
      candidates: candidates.count, dialsQueued: dials.count, attributeChannels: attributes.channels.count,
      psm: settings.psm,
      isLowEnergy: settings.isLowEnergy, classic: classicSnapshot)
  }

  private var classicSnapshot: ClassicSnapshot? {
    guard var snapshot = classic?.snapshot else { return nil }
    snapshot.links = linked.count { $0.isClassic }
    snapshot.isInquiring = plan.isInquiring
    snapshot.isDialling = isDiallingClassic
    (snapshot.inquiringTime, snapshot.diallingTime) = classicTimes.total(loop.now)
    return snapshot
  }

  // MARK: Controller up and down

  private func cameUp(_ working: Adapter.Working) {
    doubts = 0
    isProbing = false
    if settings.isLowEnergy { startLowEnergy(working) }
    classic?.start(working)
    plan.handle(.adapterUp(isExtended: working.isExtended), loop.now)
    advance()
  }

  private func startLowEnergy(_ working: Adapter.Working) {
    // The listeners exist before advertising begins: the kernel creates a link's attribute channel only if a listener
    // exists.
    listen(
      "attribute channel",
      accepted: { [self] descriptor, peer in attributes.adopt(descriptor, peer) },
      open: { () throws(SystemError) in try L2CAPSocket.listenForAttributes(working.address) })
    listen(
      "channel listener",
      accepted: { [self] descriptor, peer in
        accepted(descriptor, WireAddress(peer), unitBytesMax: try? L2CAPSocket.prepare(descriptor))
      },
      open: { () throws(SystemError) in try L2CAPSocket.listen(working.address, psm: settings.psm) })
    choosePHYs(working)
  }

  private func choosePHYs(_ working: Adapter.Working) {
    adapter.send(.readVersion) { [self] outcome in
      guard case .done(let version) = outcome else { return }
      updatesConnections = BearerBluetooth.updatesConnections(version)
    }
    // Controllers with only the LE 1M PHY support neither of the two PHY commands.
    adapter.send(.readPHYs(working.index)) { [self] outcome in
      guard case .done(let answer) = outcome, let phys = PHYConfiguration(answer), adapter.working == working else {
        return
      }
      has2M = phys.supported.contains(.twoMegabit)
      if let wanted = phys.wanted { adapter.send(.setPHYs(working.index, wanted)) { _ in } }
    }
  }

  private func listen(
    _ name: StaticString, accepted: @escaping (CInt, BluetoothEndpoint) -> Void,
    open: () throws(SystemError) -> CInt
  ) {
    do throws(SystemError) {
      listeners.append(
        try BluetoothListener(loop, try open(), accepted, shortage: { [self] error in reportShortage(name, error) }))
    } catch {
      let remedy: StaticString =
        error.code == EADDRINUSE ? "another program uses it: stop bluetoothd" : "phones cannot connect until it opens"
      delegate?.bearerReport(sources.lowEnergy, "cannot open the \(name): \(error.text) (\(remedy))", isFault: true)
    }
  }

  private func reportShortage(_ name: StaticString, _ error: SystemError?) {
    let text =
      error.map { "the \(name) cannot accept connections: \($0.text). Trying every second." }
      ?? "the \(name) accepts connections again"
    delegate?.bearerReport(sources.lowEnergy, text, isFault: error != nil)
  }

  private func wentDown() {
    let now = loop.now
    plan.handle(.adapterDown, now)
    for listener in listeners { listener.close() }
    listeners = []
    attributes.channels.closeAll()
    classic?.stop()
    linked = []
    leaving = []
    paces.removeAll()
    has2M = false
    dial?.process.cancel()
    let failed = (dial.map { [$0.token] } ?? []) + dials.map { $0.token } + overtaken.takeAll()
    dial = nil
    dials = []
    for token in failed { delegate?.bearerDialFailed(token: token, reason: "the Bluetooth controller went down") }
    lost(candidates.removeAll(now) + classicCandidates.removeAll(now))
    advance()
  }

  // MARK: Carrying out the plan

  func advance() {
    while let token = overtaken.next(loop.now) {
      delegate?.bearerDialFailed(token: token, reason: "the peer connected first")
    }
    plan.handle(.airShared(wifi.isLoaded(loop.now)), loop.now)
    let mayInquire = classic?.isDiscoverable ?? false && !busy.isLoaded(loop.now) && hasClassicSlot
    plan.handle(.mayInquire(mayInquire), loop.now)
    while let command = plan.nextCommand(loop.now) { carryOut(command) }
    while let next = paces.next(loop.now) { load(next.parameters, next.endpoint) }
    times.note(isScanning: plan.isScanning, isDialling: plan.isDialling && !isDiallingClassic, loop.now)
    classicTimes.note(isScanning: plan.isInquiring, isDialling: isDiallingClassic, loop.now)
    let sharedUntil = wifi.isLoaded(loop.now) ? wifi.end : .never
    let busyUntil = busy.isLoaded(loop.now) ? busy.end : .never
    timer?.set(min(min(plan.deadline, overtaken.deadline), min(paces.deadline, min(sharedUntil, busyUntil))))
  }

  private func carryOut(_ command: RadioPlan.Command) {
    guard let index = adapter.working?.index else { return }
    switch command {
    case .advertise: ask(advertisement(index))
    case .stopAdvertising: ask(.removeAdvertising(index))
    case .scan: ask(.startDiscovery(index))
    case .stopScanning: ask(.stopDiscovery(index))
    case .inquire: ask(.startDiscovery(index, isInquiry: true))
    case .stopInquiring: ask(.stopDiscovery(index, isInquiry: true))
    case .dial: startDial()
    }
  }

  /// Sends the parameters of a connection to the kernel. The answer is ignored.
  func load(_ parameters: ConnectionParameters, _ endpoint: BluetoothEndpoint) {
    guard let working = adapter.working, updatesConnections else { return }
    adapter.post(.loadConnectionParameters(working.index, WireAddress(endpoint), parameters))
  }

  private func advertisement(_ index: UInt16) -> ManagementCommand {
    .addAdvertising(
      index, data: CausewayService.advertisement,
      scanResponse: CausewayService.scanResponse(.init(hint: hint, relays: settings.relays)))
  }

  private func ask(_ command: ManagementCommand) {
    adapter.send(command) { [self] outcome in
      let isSuccess = outcome.problem == nil
      plan.handle(.commandDone(isSuccess: isSuccess), loop.now)
      candidates.scanning(plan.isScanning, loop.now)
      classicCandidates.scanning(plan.isInquiring, loop.now)
      doubts = isSuccess ? 0 : doubts + 1
      if doubts >= Self.doubtsMax { doubt(outcome) }
      advance()
    }
  }

  /// Checks a controller whose commands fail. For a controller that does not answer, the kernel can report the same
  /// failure as for a busy one. So the advertisement is added once more: that fails only if the controller does not
  /// answer.
  private func doubt(_ outcome: ManagementOutcome) {
    guard let working = adapter.working, !isProbing else { return }
    if outcome == .timedOut { return silent() }
    if doubts >= Self.failuresMax, linked.isEmpty {
      return adapter.recoverSilent("the controller refuses its commands; it is switched off and on")
    }
    guard plan.isAdvertising, doubts == Self.doubtsMax else { return }
    isProbing = true
    adapter.send(advertisement(working.index)) { [self] outcome in
      guard isProbing, adapter.working == working else { return }
      isProbing = false
      if outcome.problem != nil { silent() }
    }
  }

  private func silent() { adapter.recoverSilent("the controller does not answer; it is switched off and on") }

  // MARK: Events

  private func received(_ event: ManagementEvent) {
    let now = loop.now
    guard let index = adapter.working?.index else { return }
    switch event {
    case .deviceConnected(let device, let isCentral): connected(device, isCentral: isCentral)
    case .deviceDisconnected(let device, let isEnded): disconnected(device, isEnded: isEnded)
    case .deviceFound(let found): heard(found)
    case .discovering(let isOn, let isInquiry):
      plan.handle(.discovering(isOn, isInquiry: isInquiry), now)
      candidates.scanning(plan.isScanning, now)
      classicCandidates.scanning(plan.isInquiring, now)
      if !isOn { lost(isInquiry ? classicCandidates.expire(now) : candidates.expire(now)) }
    case .advertisingRemoved(let instance):
      if instance == ManagementCommand.advertisingInstance { plan.handle(.advertisingRemoved, now) }
    case .pinCodeRequest(let device): adapter.send(.refusePIN(index, device)) { _ in }
    case .confirmationRequest(let device): adapter.send(.refuseConfirmation(index, device)) { _ in }
    case .passkeyRequest(let device): adapter.send(.refusePasskey(index, device)) { _ in }
    case .controllerError(let code):
      delegate?.bearerReport(sources.lowEnergy, "the controller reports hardware error \(code)", isFault: true)
    case .reply, .indexAdded, .indexRemoved, .newSettings, .connectFailed, .other: break
    }
    advance()
  }

  func connected(_ device: WireAddress, isCentral: Bool) {
    if linked.contains(device) { return }
    linked.append(device)
    if let endpoint = device.endpoint {
      if isCentral && updatesConnections { paces.linked(endpoint, loop.now) }
      candidates.linked(device, true, loop.now)
      plan.handle(.linkUp, loop.now)
    } else {
      classicCandidates.linked(device, true, loop.now)
    }
    dialsChanged()
  }

  private func disconnected(_ device: WireAddress, isEnded: Bool) {
    guard let position = linked.firstIndex(of: device) else { return }
    linked.remove(at: position)
    if let endpoint = device.endpoint {
      leaving.removeAll { $0 == endpoint }
      paces.unlinked(endpoint)
      candidates.linked(device, false, loop.now)
      plan.handle(.linkDown(isEnded: isEnded), loop.now)
    } else {
      classicCandidates.linked(device, false, loop.now)
    }
    dialsChanged()
  }

  private func heard(_ found: FoundDevice) {
    // Another program may search for devices of a kind, LE or classic, that this bearer does not use.
    let isUsed = found.device.isClassic ? settings.isClassic : settings.isLowEnergy
    guard isUsed, found.isConnectable, let claim = CausewayService.claim(in: found.data),
      claim.hint == 0 || claim.hint != hint
    else { return }
    let change =
      found.device.isClassic
      ? classicCandidates.heard(found.device, hint: claim.hint, relays: claim.relays, loop.now)
      : candidates.heard(found.device, hint: claim.hint, relays: claim.relays, loop.now)
    if let lost = change.lost { delegate?.bearerLost(lost) }
    if let pendingStream = change.found {
      plan.handle(.foundNewcomer, loop.now)
      delegate?.bearerFound(pendingStream)
    }
  }

  private func lost(_ lost: [Candidate]) {
    for candidate in lost { delegate?.bearerLost(candidate) }
  }
}
