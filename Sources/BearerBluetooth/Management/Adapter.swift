import Bearer
import CBluetooth
import CSystem
import Netlink
import Primitives
import Reactor

/// Finds the controller chosen in the settings, brings it up, detects its loss, and recovers it.
///
/// No failure is final. A kernel without Bluetooth is tried again every `noSupportRetry`. A missing controller is
/// reported by the management socket when it appears, and a blocked controller by `KernelWatch` when it is unblocked.
/// `RadioRecovery` decides when a failing controller is set up again. Each new problem is reported once, and so is the
/// end of the problem.
final class Adapter {
  /// The delay before the next attempt to open the management socket, while the kernel has no Bluetooth. No event
  /// reports that the kernel has loaded its Bluetooth module.
  static let noSupportRetry = TimeSpan.seconds(30)
  /// The delay before a lost management socket is opened again.
  static let socketRetry = TimeSpan.seconds(1)
  /// The delay before the kernel is asked again for its controllers after a refusal to list the controllers.
  static let listRetry = TimeSpan.seconds(30)
  /// The interval at which a blocked controller is checked. `KernelWatch` reports that the controller was unblocked,
  /// but events can be lost.
  static let blockedLookTime = TimeSpan.seconds(60)

  /// A controller that is up.
  struct Working: Equatable {
    let index: UInt16
    let address: UInt64
    let isExtended: Bool
  }

  private enum State {
    case stopped
    /// There is no management socket, or no suitable controller. An event or the timer ends this state.
    case waiting
    /// Setup commands are in progress for this controller. `generation` identifies answers to commands of an earlier
    /// attempt.
    case settingUp(UInt16)
    case working(Working)
    /// The controller failed or is blocked. A failed controller is set up again when the timer fires, and a blocked
    /// controller when it is unblocked.
    case broken(UInt16)
  }

  var report: ((String, _ isFault: Bool) -> Void)?
  var cameUp: ((Working) -> Void)?
  /// The controller was up, and has been removed, blocked or switched off, or has failed.
  var wentDown: (() -> Void)?
  /// Events of the working controller.
  var eventReceived: ((ManagementEvent) -> Void)?

  private let loop: EventLoop
  private let choice: AdapterChoice
  private let needed: ControllerSettings
  private let openSocket: () -> Result<CInt, SystemError>
  private let block: (UInt16) -> RadioObstacle?
  private var channel: ManagementChannel?
  private var state = State.stopped
  private var generation: UInt32 = 0
  private var recovery = RadioRecovery()
  /// The recovery step that is carried out when the search has found the controller.
  private var step: RadioRecovery.Step?
  private var radioWatch: KernelWatch?
  private var trouble: String?
  private var timer: Timer?

  /// `needs`: the kind of Bluetooth that the controller must support, LE or classic. `openSocket` opens the management
  /// socket; tests use one end of a socket pair. `block` returns the obstacle if rfkill blocks a controller.
  init(
    _ loop: EventLoop, _ choice: AdapterChoice, needs needed: ControllerSettings = .lowEnergy,
    openSocket: @escaping () -> Result<CInt, SystemError>,
    block: @escaping (UInt16) -> RadioObstacle? = { RadioObstacle.block(of: "/sys/class/bluetooth/hci\($0)") }
  ) {
    self.loop = loop
    self.block = block
    self.choice = choice
    self.needed = needed
    self.openSocket = openSocket
  }

  var working: Working? {
    if case .working(let working) = state { working } else { nil }
  }

  /// The text of the current problem, as reported to the operator; nil if there is none.
  var problem: String? { trouble }

  func start() {
    guard case .stopped = state else { return }
    timer = Timer(loop) { [self] in retry() }
    radioWatch = try? KernelWatch(loop, .radios) { [self] in radioMayHaveChanged() }
    openChannel()
  }

  /// Closes the management socket. No callback follows.
  func stop() {
    state = .stopped
    generation &+= 1
    report = nil
    cameUp = nil
    wentDown = nil
    eventReceived = nil
    timer?.cancel()
    timer = nil
    radioWatch?.stop()
    radioWatch = nil
    channel?.close()
    channel = nil
  }

  /// Sends a command to the controller. `done` receives `.notSent` if there is no management socket.
  func send(_ command: ManagementCommand, _ done: @escaping (ManagementOutcome) -> Void) {
    guard let channel else { return done(.notSent) }
    channel.send(command, done)
  }

  /// Recovers a controller that does not answer, by switching it off and on.
  func recoverSilent(_ text: String) {
    guard case .working(let working) = state else { return }
    broken(working.index, text, .silent)
  }

  /// Sends a command at once, without waiting for the answer; for use just before `stop`.
  func post(_ command: ManagementCommand) { channel?.post(command) }

  // MARK: Finding

  private func openChannel() {
    switch openSocket() {
    case .failure(let error):
      wait(for: openProblem(error), retryAfter: Self.noSupportRetry)
    case .success(let descriptor):
      do throws(SystemError) {
        let channel = try ManagementChannel(loop, descriptor)
        channel.eventReceived = { [self] index, event in received(index, event) }
        channel.failed = { [self] error in lostChannel(error) }
        self.channel = channel
        search()
      } catch {
        _ = close(descriptor)
        wait(for: "cannot watch the management socket: \(error.text)", retryAfter: Self.noSupportRetry)
      }
    }
  }

  private func openProblem(_ error: SystemError) -> String {
    switch error.code {
    case EAFNOSUPPORT, EPROTONOSUPPORT:
      "this kernel offers no Bluetooth here (load the bluetooth module; only the first network namespace has it)"
    case EPERM, EACCES: "no permission for Bluetooth: run with CAP_NET_ADMIN"
    case _: "cannot open the Bluetooth management socket: \(error.text)"
    }
  }

  private func lostChannel(_ error: SystemError) {
    channel = nil
    leaveWorking()
    wait(for: "the Bluetooth management socket closed: \(error.text)", retryAfter: Self.socketRetry)
  }

  private func search() {
    generation &+= 1
    ask(.readIndexList) { [self] outcome in
      guard case .done(let parameters) = outcome, let indexes = indexList(parameters) else {
        return wait(
          for: "cannot list controllers: \(outcome.problem ?? "malformed answer")", retryAfter: Self.listRetry)
      }
      examine(indexes.sorted(), 0, otherwise: absence)
    }
  }

  private var absence: String {
    if case .automatic = choice {
      return "no Bluetooth controller: plug one in or switch it on (it is used once present)"
    }
    return "no Bluetooth controller \(choice.text): check the adapter setting (it is used once present)"
  }

  /// Uses the first suitable controller from `position` on.
  private func examine(_ indexes: [UInt16], _ position: Int, otherwise text: String) {
    guard position < indexes.count else { return wait(for: text, retryAfter: nil) }
    let index = indexes[position]
    if case .index(let wanted) = choice, wanted != index { return examine(indexes, position + 1, otherwise: text) }
    ask(.readInformation(index)) { [self] outcome in
      guard case .done(let parameters) = outcome, let information = ControllerInformation(parameters) else {
        let problem = outcome.problem ?? "malformed answer"
        return examine(indexes, position + 1, otherwise: "hci\(index) cannot be read: \(problem)")
      }
      if case .address(let wanted) = choice, wanted != information.address {
        return examine(indexes, position + 1, otherwise: text)
      }
      guard information.supported.contains(needed) else {
        let kind: StaticString = needed == .classic ? "classic" : "LE"
        return examine(
          indexes, position + 1, otherwise: "hci\(index) does not support Bluetooth \(kind): use another adapter")
      }
      found(index, information)
    }
  }

  private func found(_ index: UInt16, _ information: ControllerInformation) {
    recovery.handle(.present(true), loop.now)
    let obstacle = block(index)
    recovery.handle(.blocked(obstacle != nil), loop.now)
    if let obstacle {
      state = .broken(index)
      return held(index, obstacle)
    }
    guard let step = recovery.nextStep(loop.now) ?? step else {
      timer?.set(recovery.deadline)
      return
    }
    self.step = nil
    setUp(index, information, step)
  }

  // MARK: Bringing up

  private func setUp(_ index: UInt16, _ information: ControllerInformation, _ step: RadioRecovery.Step) {
    state = .settingUp(index)
    var steps: [(StaticString, ManagementCommand, isNeeded: Bool)] = []
    switch step {
    case .arm:
      // A scan or an inquiry that a killed process began continues for up to 10 s. Until its end, that scan or inquiry
      // reports little to this process, and prevents this process from beginning a scan or an inquiry.
      if information.current.contains(.powered) {
        steps.append(("end the scan of", .stopDiscovery(index), false))
        steps.append(("end the inquiry of", .stopDiscovery(index, isInquiry: true), false))
      }
    case .powerCycle, .reset: steps.append(("switch off", .setPowered(index, false), false))
    }
    if needed == .lowEnergy, !information.current.contains(.lowEnergy) {
      steps.append(("enable LE on", .setLowEnergy(index, true), true))
    }
    // A bonded phone would reconnect by itself, and occupy a connection slot. Bonding is not needed, because TLS
    // authenticates.
    if information.current.contains(.bondable) {
      steps.append(("set bonding off on", .setBondable(index, false), false))
    }
    // Kernels before 5.9 do not have this command, and use their own defaults.
    steps.append(("set defaults of", .setDefaults(index, RadioDefault.ours), false))
    steps.append(("switch on", .setPowered(index, true), true))
    perform(steps, 0, index)
  }

  private func perform(
    _ steps: [(StaticString, ManagementCommand, isNeeded: Bool)], _ position: Int, _ index: UInt16
  ) {
    guard position < steps.count else { return readResult(index) }
    let (name, command, isNeeded) = steps[position]
    ask(command) { [self] outcome in
      if isNeeded, let problem = outcome.problem {
        return broken(index, problemText(name, index, outcome, problem))
      }
      perform(steps, position + 1, index)
    }
  }

  private func problemText(
    _ name: StaticString, _ index: UInt16, _ outcome: ManagementOutcome, _ problem: String
  ) -> String {
    switch outcome {
    case .refused(.blockedByRFKill): RadioObstacle.blocked.text("hci\(index)", type: "bluetooth")
    case .refused(.permissionDenied): "no permission to configure hci\(index): run with CAP_NET_ADMIN"
    case .done, .refused, .timedOut, .notSent: "cannot \(name) hci\(index): \(problem); it is tried again"
    }
  }

  private func readResult(_ index: UInt16) {
    ask(.readInformation(index)) { [self] outcome in
      guard case .done(let parameters) = outcome, let information = ControllerInformation(parameters) else {
        return broken(index, "hci\(index) cannot be read: \(outcome.problem ?? "malformed answer")")
      }
      guard information.address != 0 else {
        return broken(index, "hci\(index) has no public address: set one with `btmgmt public-addr`")
      }
      ask(.readAdvertisingFeatures(index)) { [self] outcome in
        var isExtended = false
        if case .done(let features) = outcome { isExtended = supportsExtendedAdvertising(features) }
        isUp(Working(index: index, address: information.address, isExtended: isExtended))
      }
    }
  }

  private func isUp(_ working: Working) {
    state = .working(working)
    recovery.handle(.works, loop.now)
    let address = BluetoothEndpoint(address: working.address, isRandom: false).text
    trouble = nil
    report?("hci\(working.index) \(address) is up", false)
    cameUp?(working)
  }

  // MARK: Monitoring and recovery

  private func received(_ index: UInt16, _ event: ManagementEvent) {
    switch event {
    case .indexAdded: if case .waiting = state { search() }
    case .indexRemoved: if index == current { removed() }
    case .newSettings(let settings):
      guard working?.index == index else { return }
      if !settings.contains(.powered) || !settings.contains(needed) {
        broken(index, "hci\(index) was switched off; it is switched on again")
      }
    case .reply, .controllerError, .deviceConnected, .deviceDisconnected, .connectFailed, .pinCodeRequest,
      .confirmationRequest, .passkeyRequest, .deviceFound, .discovering, .advertisingRemoved, .other:
      if working?.index == index { eventReceived?(event) }
    }
  }

  private var current: UInt16? {
    switch state {
    case .settingUp(let index), .broken(let index): index
    case .working(let working): working.index
    case .stopped, .waiting: nil
    }
  }

  private func removed() {
    leaveWorking()
    recovery.handle(.present(false), loop.now)
    state = .waiting
    search()
  }

  private func broken(_ index: UInt16, _ text: String, _ event: RadioRecovery.Event = .failed) {
    leaveWorking()
    generation &+= 1
    state = .broken(index)
    // For a blocked controller, the kernel reports the same failure as for any other cause.
    if let obstacle = block(index) { return held(index, obstacle) }
    recovery.handle(event, loop.now)
    fault(recovery.isHopeless ? "\(text). Nothing has helped so far: is the adapter broken?" : text)
    timer?.set(recovery.deadline)
  }

  private func held(_ index: UInt16, _ obstacle: RadioObstacle) {
    recovery.handle(.blocked(true), loop.now)
    fault(obstacle.text("hci\(index)", type: "bluetooth"))
    timer?.set(after: Self.blockedLookTime, slack: Timer.choreSlack)
  }

  /// Checks whether the controller was blocked or unblocked. The event that led to this call may be about another
  /// radio.
  func radioMayHaveChanged() {
    guard let index = current else { return }
    let obstacle = block(index)
    if recovery.isUsable, obstacle != nil { return broken(index, "") }
    recovery.handle(.blocked(obstacle != nil), loop.now)
    if recovery.deadline <= loop.now { retry() }
  }

  /// Reports a problem, and waits for an event, or for at most `span` if that is not nil.
  private func wait(for text: String, retryAfter span: TimeSpan?) {
    generation &+= 1
    state = .waiting
    step = nil
    recovery.handle(.present(false), loop.now)
    fault(text)
    guard let span else {
      timer?.cancel()
      return
    }
    timer?.set(after: span, slack: span < Self.listRetry ? .seconds(0) : Timer.choreSlack)
  }

  private func retry() {
    switch state {
    case .waiting: if channel == nil { openChannel() } else { search() }
    case .broken:
      step = recovery.nextStep(loop.now)
      if step == .reset {
        channel?.close()
        channel = nil
      }
      if channel == nil { openChannel() } else { search() }
    case .stopped, .settingUp, .working: break
    }
  }

  private func leaveWorking() {
    guard case .working = state else { return }
    state = .waiting
    wentDown?()
  }

  private func fault(_ text: String) {
    if trouble?.utf8.elementsEqual(text.utf8) ?? false { return }
    trouble = text
    report?(text, true)
  }

  /// Sends a command of the current attempt. The answer is dropped if another attempt has begun.
  private func ask(_ command: ManagementCommand, _ done: @escaping (ManagementOutcome) -> Void) {
    let asked = generation
    send(command) { [self] outcome in
      if asked == generation { done(outcome) }
    }
  }
}
