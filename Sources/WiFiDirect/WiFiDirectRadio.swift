import Bearer
import BearerIP
import CSystem
import Primitives
import Reactor

/// Wi-Fi Direct through wpa_supplicant: creates a group that others join, or joins one.
///
/// It only brings up an IP interface; the IP bearer runs links over it. wpa_supplicant may be absent, die and return at
/// any time. Its configuration only needs a control socket; the settings for the group are made at run time. All calls
/// and callbacks are on the loop's thread.
public final class WiFiDirectRadio {
  /// The current state.
  public internal(set) var snapshot: WiFiDirectSnapshot
  /// Called with the group's interface when there is one, and with nil when it is gone; for
  /// `IPBearer.wifiDirectInterface`.
  public var groupInterfaceChanged: ((String?) -> Void)?

  /// The delay before an absent wpa_supplicant is tried again, soon after something has changed.
  public static let retryTime = TimeSpan.seconds(2)
  /// The same while nothing changes where its sockets would be.
  public static let patientRetryTime = TimeSpan.seconds(60)
  /// The delay after a change: wpa_supplicant makes a socket, and gives it to a group then.
  static let settleTime = TimeSpan.milliseconds(200)
  /// The delay before a missing or unsuitable interface is tried again.
  public static let interfaceRetryTime = TimeSpan.seconds(10)
  /// Interval of the checks that wpa_supplicant and the group still exist.
  public static let livenessTime = TimeSpan.seconds(3)

  let loop: EventLoop
  let options: WiFiDirectOptions
  let hint: UInt64
  let delegate: any BearerDelegate
  private(set) var supplicant: Supplicant?
  /// The interface whose configuration controls Wi-Fi Direct.
  private(set) var deviceInterface = ""
  private var activity: (any RadioActivity)?
  private var timer: Timer?
  /// Of the directory of wpa_supplicant's sockets, while there is none.
  private var watch: DirectoryWatch?
  /// Whether something has changed there since the last attempt.
  private var mayHaveCome = false
  private var isPatient = false
  private var livenessTimer: Timer?
  private var isRunning = false
  /// The last reported fault, so that it is reported once.
  private var fault = ""

  /// `hint` is announced in the device name: the first 8 bytes of the node id.
  public init(_ loop: EventLoop, _ options: WiFiDirectOptions, hint: UInt64, _ delegate: any BearerDelegate) {
    self.loop = loop
    self.options = options
    self.hint = hint
    self.delegate = delegate
    snapshot = WiFiDirectSnapshot()
    snapshot.role = options.role
  }

  /// Starts. Anything missing is reported once as a fault and waited for.
  public func start() {
    guard !isRunning else { return }
    if let problem = options.problem { return report(fault: problem) }
    isRunning = true
    timer = Timer(loop) { [self] in retry() }
    livenessTimer = Timer(loop) { [self] in checkLiveness() }
    connect()
  }

  /// Stops: leaves the group, or removes it as the owner. No callback follows.
  public func stop() {
    guard isRunning else { return }
    isRunning = false
    if supplicant != nil { activity?.leave() }
    disconnect()
    timer?.cancel()
    livenessTimer?.cancel()
    timer = nil
    livenessTimer = nil
    snapshot.state = .off
  }

  /// Allows one device to join by WPS push button within the next two minutes. False without a group of this node, and where
  /// the options forbid it.
  public func pushButton() -> Bool {
    guard snapshot.state == .groupOwner, options.pushButton != .never, let activity else { return false }
    activity.pushButton()
    return true
  }

  // MARK: - wpa_supplicant comes and goes

  private func connect() {
    snapshot.state = .waitingForSupplicant
    do {
      supplicant = try Supplicant(
        loop, options, received: { [self] in received($0) }, failed: { [self] in lost("wpa_supplicant \($0)") })
    } catch {
      report(fault: error.text)
      return waitForSupplicant()
    }
    watch?.stop()
    watch = nil
    snapshot.state = .preparing
    Preparation(self).run()
    livenessTimer?.set(after: Self.livenessTime)
  }

  private func waitForSupplicant() {
    if watch == nil {
      watch = try? DirectoryWatch(loop, parentDirectory(options.controlSocket)) { [self] in
        mayHaveCome = true
        // Where much changes it is tried every two seconds, and no more often.
        if isPatient { timer?.set(after: Self.settleTime) }
        isPatient = false
      }
      // It may have come before the watch.
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
    if supplicant == nil { connect() } else { Preparation(self).run() }
  }

  /// Closes the connection to wpa_supplicant and everything that depends on it, and tries again later.
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
    activity?.end()
    activity = nil
    supplicant?.close()
    supplicant = nil
  }

  private func received(_ message: SupplicantMessage) {
    if message.event == .terminating, message.interface.utf8.isEmpty || sameText(message.interface, options.interface) {
      return lost("wpa_supplicant ends")
    }
    activity?.received(message)
  }

  private func checkLiveness() {
    livenessTimer?.set(after: Self.livenessTime)
    // A pending command already checks for an answer.
    guard let supplicant, supplicant.isIdle else { return }
    supplicant.send("PING")
    activity?.checkLiveness()
  }

  // MARK: - Preparation's outcome

  func prepared(deviceInterface: String) {
    self.deviceInterface = deviceInterface
    let activity: any RadioActivity =
      switch options.role {
      case .groupOwner: GroupOwner(self)
      case .client: options.ssid.utf8.isEmpty ? GroupClient(self) : Station(self)
      }
    self.activity = activity
    activity.begin()
  }

  func unavailable(_ reason: String) {
    snapshot.state = .unavailable
    report(fault: reason)
    timer?.set(after: Self.interfaceRetryTime)
  }

  // MARK: - What the activities share

  func report(fault text: String) {
    if sameText(fault, text) { return }
    fault = text
    delegate.bearerReport("wifi-direct", text, isFault: true)
  }

  func report(_ text: String) {
    fault = ""
    delegate.bearerReport("wifi-direct", text, isFault: false)
  }

  func groupCame(_ interface: String) {
    snapshot.groupInterface = interface
    groupInterfaceChanged?(interface)
  }

  /// Clears the group from the snapshot.
  func groupWent() {
    let hadGroup = !snapshot.groupInterface.utf8.isEmpty
    let state = snapshot.state
    snapshot = WiFiDirectSnapshot()
    snapshot.role = options.role
    snapshot.state = state
    if hadGroup { groupInterfaceChanged?(nil) }
  }
}

/// The use of the radio while wpa_supplicant is connected.
protocol RadioActivity: AnyObject {
  func begin()
  func received(_ message: SupplicantMessage)
  func pushButton()
  /// Checks whether the group still exists.
  func checkLiveness()
  /// Tells wpa_supplicant to leave or remove the group, without waiting for an answer.
  func leave()
  /// Stops commands and timers: the connection to wpa_supplicant is closed or about to be.
  func end()
}
