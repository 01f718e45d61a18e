import Bearer
import BearerIP
import CSystem
import Primitives
import Reactor

/// Wi-Fi Direct through wpa_supplicant: makes the group that others join, or joins one.
///
/// It only brings up an IP interface: links run over it like over any other, by the IP bearer. wpa_supplicant may
/// be absent, die and come back at any time. Its configuration needs nothing but a control socket; what the group
/// needs is set at run time. Every call and every call back is on the loop's thread.
public final class WiFiDirectRadio {
  /// How it stands now.
  public internal(set) var snapshot: WiFiDirectSnapshot
  /// Called with the interface that carries the group when there is one, with nil when it is gone: what
  /// `IPBearer.wifiDirectInterface` wants to know.
  public var groupInterfaceChanged: ((String?) -> Void)?

  /// How long until an absent wpa_supplicant is looked for again.
  public static let retryTime = TimeSpan.seconds(2)
  /// How long until an interface that is absent or unfit is looked at again.
  public static let interfaceRetryTime = TimeSpan.seconds(10)
  /// How often wpa_supplicant is asked whether it, and the group, still live.
  public static let livenessTime = TimeSpan.seconds(3)

  let loop: EventLoop
  let options: WiFiDirectOptions
  let hint: UInt64
  let delegate: any BearerDelegate
  private(set) var supplicant: Supplicant?
  /// The interface whose configuration rules Wi-Fi Direct.
  private(set) var deviceInterface = ""
  private var activity: (any RadioActivity)?
  private var timer: Timer?
  private var livenessTimer: Timer?
  private var isRunning = false
  /// The last fault told, so that it is told once however often it is met.
  private var fault = ""

  /// `hint` is what the device name tells others: the first 8 bytes of the node id.
  public init(_ loop: EventLoop, _ options: WiFiDirectOptions, hint: UInt64, _ delegate: any BearerDelegate) {
    self.loop = loop
    self.options = options
    self.hint = hint
    self.delegate = delegate
    snapshot = WiFiDirectSnapshot()
    snapshot.role = options.role
  }

  /// Begin. What is absent is reported once as a fault and waited for.
  public func start() {
    guard !isRunning else { return }
    if let problem = options.problem { return report(fault: problem) }
    isRunning = true
    timer = Timer(loop) { [self] in retry() }
    livenessTimer = Timer(loop) { [self] in checkLiveness() }
    connect()
  }

  /// End: the group that was made or joined is left, and no call back comes after this.
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

  /// Let one device join by WPS push button within the next two minutes. False when there is no group to join.
  public func pushButton() -> Bool {
    guard snapshot.state == .groupOwner, let activity else { return false }
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
      timer?.set(after: Self.retryTime)
      return
    }
    snapshot.state = .preparing
    Preparation(self).run()
    livenessTimer?.set(after: Self.livenessTime)
  }

  private func retry() {
    if supplicant == nil { connect() } else { Preparation(self).run() }
  }

  /// Drops wpa_supplicant and everything it carried, and looks for it again.
  func lost(_ reason: String) {
    report(fault: reason)
    disconnect()
    snapshot.state = .waitingForSupplicant
    timer?.set(after: Self.retryTime)
  }

  private func disconnect() {
    livenessTimer?.cancel()
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
    // An unanswered command is a question already.
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

  /// Clears what the snapshot said of the group.
  func groupWent() {
    let hadGroup = !snapshot.groupInterface.utf8.isEmpty
    let state = snapshot.state
    snapshot = WiFiDirectSnapshot()
    snapshot.role = options.role
    snapshot.state = state
    if hadGroup { groupInterfaceChanged?(nil) }
  }
}

/// What the radio is used for while wpa_supplicant is there.
protocol RadioActivity: AnyObject {
  func begin()
  func received(_ message: SupplicantMessage)
  func pushButton()
  /// Ask whether the group still lives.
  func checkLiveness()
  /// Tell wpa_supplicant to leave or remove the group, without waiting for an answer.
  func leave()
  /// No more commands and no more timers: wpa_supplicant is gone or about to be let go.
  func end()
}
