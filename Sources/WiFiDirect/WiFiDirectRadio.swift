import Bearer
import BearerIP
import CSystem
import Netlink
import Primitives
import Reactor

/// A Wi-Fi radio, controlled through wpa_supplicant. The radio creates a group that others join, joins a group, or
/// takes part in a mesh.
///
/// This class only brings up an IP interface; the IP bearer carries the links. wpa_supplicant and the radio can be
/// absent, fail and return at any time.
///
/// The configuration of wpa_supplicant needs only a control socket. This class applies the settings of the group at run
/// time. Each attempt applies the settings again, because a radio that was just plugged in has no settings.
/// `RadioRecovery` decides when an attempt begins.
///
/// All calls and callbacks are on the event loop's thread.
public final class WiFiDirectRadio {
  /// The current state of the radio.
  public internal(set) var snapshot: WiFiDirectSnapshot
  /// Called with the interface that has the group's IP address, and with nil when the group is gone. The daemon sets
  /// `IPBearer.wifiDirectInterface` to this value.
  public var groupInterfaceChanged: ((String?) -> Void)?

  /// The delay before the next attempt to connect to wpa_supplicant, after the connection was lost or the directory of
  /// its sockets has changed.
  public static let retryTime = TimeSpan.seconds(2)
  /// The delay between attempts to connect while the directory of wpa_supplicant's sockets does not change.
  public static let patientRetryTime = TimeSpan.seconds(60)
  /// The delay from a change of the directory to the next attempt. wpa_supplicant first creates a socket, and only then
  /// changes the socket's group.
  static let settleTime = TimeSpan.milliseconds(200)
  /// The interval at which an absent or blocked radio is checked. `KernelWatch` reports the return of the radio, but
  /// such a report can be lost.
  public static let heldLookTime = TimeSpan.seconds(60)
  /// The interval of the checks that wpa_supplicant and the group still exist.
  public static let livenessTime = TimeSpan.seconds(3)

  let loop: EventLoop
  let options: WiFiDirectOptions
  let hint: UInt64
  let delegate: any BearerDelegate
  private let obstacle: (String) -> RadioObstacle?
  private(set) var supplicant: Supplicant?
  /// The interface to which commands for Wi-Fi Direct are sent: the p2p-dev device, or the radio's own interface.
  private(set) var deviceInterface = ""
  private var preparation: Preparation?
  private var activity: (any RadioActivity)?
  private var recovery = RadioRecovery()
  /// Whether the last failure was caused by wpa_supplicant's configuration, not by the radio.
  private var isRefused = false
  private var radioWatch: KernelWatch?
  private var timer: Timer?
  /// Watches the directory of wpa_supplicant's sockets while this process cannot connect.
  private var watch: DirectoryWatch?
  /// Whether the directory of the sockets has changed since the last attempt to connect.
  private var mayHaveCome = false
  private var isPatient = false
  private var livenessTimer: Timer?
  private var isRunning = false
  /// The last reported fault; an unchanged fault is not reported again.
  private var fault = ""

  /// `hint`: the first 8 bytes of the node id, announced in the device name.
  public convenience init(_ loop: EventLoop, _ options: WiFiDirectOptions, hint: UInt64, _ delegate: any BearerDelegate)
  {
    self.init(loop, options, hint: hint, delegate, obstacle: wirelessObstacle)
  }

  /// `obstacle` returns the reason why an interface cannot be used, or nil.
  init(
    _ loop: EventLoop, _ options: WiFiDirectOptions, hint: UInt64, _ delegate: any BearerDelegate,
    obstacle: @escaping (String) -> RadioObstacle?
  ) {
    self.loop = loop
    self.options = options
    self.hint = hint
    self.delegate = delegate
    self.obstacle = obstacle
    snapshot = WiFiDirectSnapshot()
    snapshot.role = options.role
  }

  /// Starts the radio. Each missing requirement is reported once as a fault. The radio then waits for the requirement.
  public func start() {
    guard !isRunning else { return }
    if let problem = options.problem { return report(fault: problem) }
    isRunning = true
    timer = Timer(loop) { [self] in retry() }
    livenessTimer = Timer(loop) { [self] in checkLiveness() }
    radioWatch = try? KernelWatch(loop, .radios) { [self] in radioMayHaveChanged() }
    connect()
  }

  /// Leaves the group; an owner removes the group. No callback follows.
  public func stop() {
    guard isRunning else { return }
    isRunning = false
    if supplicant != nil { activity?.leave() }
    disconnect()
    radioWatch?.stop()
    radioWatch = nil
    timer?.cancel()
    livenessTimer?.cancel()
    timer = nil
    livenessTimer = nil
    snapshot.state = .off
  }

  /// Allows one device to join by WPS push button within the next two minutes. Returns false if this node owns no
  /// group, or if the options forbid push button.
  public func pushButton() -> Bool {
    guard snapshot.state == .groupOwner, options.pushButton != .never, let activity else { return false }
    activity.pushButton()
    return true
  }

  // MARK: - Connection to wpa_supplicant

  private func connect() {
    guard open() else { return }
    recovery.handle(.renewed, loop.now)
    look()
    advance()
  }

  /// Connects to wpa_supplicant. If connecting fails, begins to wait for wpa_supplicant, and returns false.
  private func open() -> Bool {
    snapshot.state = .waitingForSupplicant
    do {
      supplicant = try Supplicant(
        loop, options, received: { [self] in received($0) }, failed: { [self] in lost("wpa_supplicant \($0)") })
    } catch {
      report(fault: error.text)
      waitForSupplicant()
      return false
    }
    watch?.stop()
    watch = nil
    livenessTimer?.set(after: Self.livenessTime)
    return true
  }

  private func waitForSupplicant() {
    if watch == nil {
      watch = try? DirectoryWatch(loop, parentDirectory(options.controlSocket)) { [self] in
        mayHaveCome = true
        // A directory that changes often causes at most one attempt in two seconds.
        if isPatient { timer?.set(after: Self.settleTime) }
        isPatient = false
      }
      // The socket may have appeared before the watch started.
      mayHaveCome = true
    }
    isPatient = watch != nil && !mayHaveCome
    if isPatient {
      timer?.set(after: Self.patientRetryTime, slack: Timer.choreSlack)
    } else {
      timer?.set(after: Self.retryTime)
    }
    mayHaveCome = false
  }

  private func retry() {
    if supplicant == nil { return connect() }
    look()
    advance()
  }

  /// Closes the connection to wpa_supplicant and everything that depends on it, and retries later.
  func lost(_ reason: String) {
    report(fault: reason)
    disconnect()
    snapshot.state = .waitingForSupplicant
    timer?.set(after: Self.retryTime)
  }

  private func disconnect() {
    livenessTimer?.cancel()
    watch?.stop()
    watch = nil
    endUse()
    supplicant?.close()
    supplicant = nil
  }

  private func received(_ message: SupplicantMessage) {
    if message.event == .terminating, message.interface.utf8.isEmpty || sameText(message.interface, options.interface) {
      return lost("wpa_supplicant has stopped")
    }
    activity?.received(message)
  }

  private func checkLiveness() {
    livenessTimer?.set(after: Self.livenessTime)
    // While a command is pending, no check is needed: the command has a time limit.
    guard let supplicant, supplicant.isIdle else { return }
    supplicant.send("PING")
    // Another program may have removed the bridge.
    if options.isBridged, !snapshot.groupInterface.utf8.isEmpty, GroupBridge.index == 0 {
      enterBridge(snapshot.groupInterface)
    }
    activity?.checkLiveness()
  }

  // MARK: - Recovery

  /// Handles a report that some radio of the machine appeared, disappeared, was blocked or unblocked.
  func radioMayHaveChanged() {
    guard supplicant != nil else { return }
    let wasUsable = recovery.isUsable
    look()
    if recovery.isUsable != wasUsable { advance() }
  }

  /// Checks whether the radio is present and not blocked. If not, its use ends until the radio is available again.
  private func look() {
    let obstacle = obstacle(options.interface)
    var isAbsent = false
    if case .absent = obstacle { isAbsent = true }
    recovery.handle(.present(!isAbsent), loop.now)
    recovery.handle(.blocked(obstacle != nil && !isAbsent), loop.now)
    guard let obstacle else { return }
    endUse()
    snapshot.state = .unavailable
    report(fault: obstacle.text(options.interface, type: "wlan"))
  }

  private func advance() {
    switch recovery.nextStep(loop.now) {
    case nil:
      break
    case .arm: prepare()
    case .powerCycle: powerCycle()
    case .reset:
      disconnect()
      guard open() else { return }
      prepare()
    }
    if recovery.isUsable {
      timer?.set(recovery.deadline)
    } else {
      timer?.set(after: Self.heldLookTime, slack: Timer.choreSlack)
    }
  }

  /// Switches the radio's interface off and on, and begins an attempt. The interface stays on if it carries a
  /// connection or also has a group, or if the configuration caused the failure.
  private func powerCycle() {
    if isRefused || options.mesh?.isBesideGroup == true { return prepare() }
    supplicant?.send(to: options.interface, "STATUS") { [self] reply in
      guard recovery.isUsable, activity == nil else { return }
      if !(reply.value("wpa_state").map { sameText($0, "COMPLETED") } ?? false) {
        for isUp in [false, true] { _ = try? setInterface(if_nametoindex(options.interface), up: isUp) }
      }
      prepare()
    }
  }

  private func prepare() {
    snapshot.state = .preparing
    let preparation = Preparation(self)
    self.preparation = preparation
    preparation.run()
  }

  /// Handles the failure of an attempt or of the group; `recovery` schedules the next attempt. `isRefused`: whether
  /// wpa_supplicant's configuration caused the failure, not the radio.
  func failed(_ reason: String, _ state: WiFiDirectState, isRefused: Bool = false) {
    self.isRefused = isRefused
    endUse()
    snapshot.state = state
    look()
    recovery.handle(.failed, loop.now)
    if recovery.isUsable {
      report(
        fault: recovery.isHopeless && !isRefused ? "\(reason). Nothing has helped so far: is the radio broken?" : reason
      )
    }
    advance()
  }

  private func endUse() {
    preparation = nil
    activity?.end()
    activity = nil
  }

  // MARK: - Result of the preparation

  func isCurrent(_ preparation: Preparation) -> Bool { self.preparation === preparation }

  /// Starts the configured use of the radio. Without Wi-Fi Direct, an owner's group becomes an ordinary access point.
  func prepared(deviceInterface: String, hasWiFiDirect: Bool = true) {
    preparation = nil
    self.deviceInterface = deviceInterface
    let activity = activity(hasWiFiDirect: hasWiFiDirect)
    self.activity = activity
    activity.begin()
  }

  private func activity(hasWiFiDirect: Bool) -> any RadioActivity {
    if let mesh = options.mesh { return HostedNetwork(self, .mesh(mesh, options)) }
    switch options.role {
    case .groupOwner:
      return hasWiFiDirect ? GroupOwner(self) : HostedNetwork(self, .accessPoint(options, hint: hint))
    case .client: return options.ssid.utf8.isEmpty ? GroupClient(self) : Station(self)
    }
  }

  // MARK: - Shared by the activities

  /// Whether the radio takes part in a mesh instead of a group.
  public var isMesh: Bool { options.mesh != nil }

  /// The name of the source in reports and in the status.
  public var source: StaticString { isMesh ? "mesh" : "wifi-direct" }

  func report(fault text: String) {
    if sameText(fault, text) { return }
    fault = text
    delegate.bearerReport(source, text, isFault: true)
  }

  func report(_ text: String) {
    fault = ""
    delegate.bearerReport(source, text, isFault: false)
  }

  /// Records that the group is up. `addressInterface`: the interface that has the group's IP address, if that is not
  /// `interface`.
  func groupCame(_ interface: String, at addressInterface: String? = nil) {
    recovery.handle(.works, loop.now)
    snapshot.groupInterface = interface
    groupInterfaceChanged?(addressInterface ?? interface)
  }

  /// Records that the group is gone, and clears it from the snapshot.
  func groupWent() {
    let hadGroup = !snapshot.groupInterface.utf8.isEmpty
    if hadGroup { leaveBridge(snapshot.groupInterface) }
    let state = snapshot.state
    snapshot = WiFiDirectSnapshot()
    snapshot.role = options.role
    snapshot.state = state
    if hadGroup { groupInterfaceChanged?(nil) }
  }
}

/// One use of the radio, such as a group or a mesh, while this process is connected to wpa_supplicant.
protocol RadioActivity: AnyObject {
  func begin()
  func received(_ message: SupplicantMessage)
  func pushButton()
  /// Checks whether the group still exists.
  func checkLiveness()
  /// Requests wpa_supplicant to leave or remove the group, without waiting for a reply.
  func leave()
  /// Ends this use of the radio: stops its timers, and ignores replies that arrive later.
  func end()
}

/// The reason why a Wi-Fi interface cannot be used, or nil.
private func wirelessObstacle(_ interface: String) -> RadioObstacle? {
  if_nametoindex(interface) == 0 ? .absent : RadioObstacle.block(of: "/sys/class/net/\(interface)/phy80211")
}
