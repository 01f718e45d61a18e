import Primitives

/// Schedules one controller's radio: advertising, scans, inquiries and dials. The plan compares the wanted state with
/// the current state, and issues one command at a time. The type does no I/O, so tests need no radio.
///
/// - The kernel ends this node's advertising set when a central connects. So the set is added again after every new
///   link.
/// - Scans and inquiries stop before a dial. On controllers without extended advertising, advertising stops too.
///   Broadcom chips fail (HCI error 0x3C) when they have to advertise and connect at the same time.
/// - After a failed dial, the box advertises and scans for `dialRest` before the next dial. Without this rest, a queue
///   of dials to peers that have left would hide the box for minutes. A controller with extended advertising also
///   advertises during dials, so the box then rests only after the second failure in a row.
/// - While every link slot is in use, the box neither advertises nor scans.
/// - Each scan lasts 10.24 s, and a pause follows. The pause doubles while scans find no new peer.
/// - An inquiry searches for peers with Bluetooth classic. An inquiry never runs at the same time as a scan, because it
///   occupies the air time that a scan leaves free. No inquiry runs while Bluetooth carries much traffic. The pauses
///   between inquiries grow. The lengths of these pauses are random, because two nodes that inquire at the same time do
///   not find each other.
/// - While Wi-Fi is loaded (carries much traffic), Bluetooth uses less air time, because Bluetooth and Wi-Fi may share
///   an antenna. A running scan ends, later scans are short, and the pauses before scans and dials are long.
///   Advertising continues, because it needs little air time.
///
/// Rule for the caller: after every `handle`, call `nextCommand` until it returns nil. Carry out each command, and
/// report the result of the command with `handle(.commandDone)`. Call `nextCommand` again at `deadline`.
struct RadioPlan {
  enum Command: Equatable {
    case advertise, stopAdvertising, scan, stopScanning, inquire, stopInquiring
    /// Begin the next dial. Report the end of the dial with `dialEnded`, not with `commandDone`.
    case dial
  }

  enum Event: Equatable {
    case adapterUp(isExtended: Bool)
    case adapterDown
    case commandDone(isSuccess: Bool)
    /// The kernel's report that a scan or an inquiry has begun or ended.
    case discovering(Bool, isInquiry: Bool)
    case advertisingRemoved
    case linkUp
    /// `isEnded`: one of the two hosts ended the link, for example because the link is parked (kept without a
    /// connection). If false, the link was lost, and other peers may be in range now.
    case linkDown(isEnded: Bool)
    /// Whether dials are waiting.
    case dialsWaiting(Bool)
    case dialEnded(isSuccess: Bool)
    /// A scan or an inquiry found a new peer.
    case foundNewcomer
    /// Whether inquiries are allowed: classic is in use and has a free link slot, and Bluetooth is not loaded.
    case mayInquire(Bool)
    /// Whether Wi-Fi is loaded.
    case airShared(Bool)
  }

  private enum Advertising { case off, on, ended }

  static let restMin = TimeSpan.seconds(1)
  /// The longest pause between scans of a relay. This pause leaves a shared antenna to Wi-Fi most of the time, and is
  /// short enough to find a new node that only advertises.
  static let restMax = TimeSpan.seconds(5)
  /// The longest pause between scans of a node that does not relay. A node that does not relay has no need to find
  /// nodes that only advertise: relays find these nodes and forward to them.
  static let leafRestMax = TimeSpan.seconds(20)
  /// The pause after a failed dial: many advertising intervals, in which peers can find and dial this node.
  static let dialRest = TimeSpan.seconds(2)
  /// The pause after a refused Add Advertising.
  static let advertiseRetry = TimeSpan.seconds(1)

  /// The pause before each scan and each dial while Wi-Fi is loaded. Each scan then lasts `sharedScan`, which is many
  /// advertising intervals. So scans take at most a sixth of the time, and so do dials.
  static let sharedRest = TimeSpan.seconds(20)
  static let sharedScan = TimeSpan.seconds(3)

  /// The length of an inquiry, which sends on each half of its frequencies for 2.56 s (Core Specification 5.4, Vol 2,
  /// Part B, 8.4.2).
  static let inquiryLength = TimeSpan.milliseconds(5_120)
  /// The pause after an inquiry that found a new peer. Each inquiry that finds none doubles the pause, up to
  /// `inquiryRestMax`, where inquiries take 4 % of the time. Long pauses are enough, because a node that arrives later
  /// inquires itself.
  static let inquiryRestMin = TimeSpan.seconds(5)
  static let inquiryRestMax = TimeSpan.seconds(120)

  private(set) var isScanning = false
  private(set) var isInquiring = false
  private(set) var isDialling = false
  private(set) var links = 0
  private let linksMax: Int
  private let mayAdvertise: Bool
  private let mayScan: Bool
  private let relays: Bool
  private var isUp = false
  private var isExtended = false
  private var advertising = Advertising.off
  private var advertiseAfter = Instant.zero
  private var hasDials = false
  private var dialAfter = Instant.zero
  private var hasDialFailed = false
  private var outstanding: Command?
  /// Whether a central connected while Add Advertising was in progress. The new advertising set may then have ended
  /// again.
  private var linkedMeanwhile = false
  private var rest: Backoff
  private var scanAfter = Instant.zero
  private var foundInSession = false
  private var isAirShared = false
  /// When the running scan has to end because Wi-Fi is loaded; never if Wi-Fi is not loaded.
  private var scanUntil = Instant.never
  private var mayInquire = false
  private var inquiryRest = Backoff(first: inquiryRestMin, longest: inquiryRestMax)
  private var inquireAfter = Instant.zero
  private var inquireUntil = Instant.never
  private var pauses: SeededRandom

  /// `seed`: a value for random lengths of pauses, different for each node.
  init(linksMax: Int, mayAdvertise: Bool, mayScan: Bool, relays: Bool, seed: UInt64 = 0) {
    pauses = SeededRandom(seed: seed)
    rest = Backoff(first: Self.restMin, longest: relays ? Self.restMax : Self.leafRestMax)
    self.linksMax = linksMax
    self.mayAdvertise = mayAdvertise
    self.mayScan = mayScan
    self.relays = relays
  }

  var isAdvertising: Bool { advertising == .on }
  var hasFreeSlot: Bool { links < linksMax }

  mutating func handle(_ event: Event, _ now: Instant) {
    switch event {
    case .adapterUp(let isExtended):
      restart()
      isUp = true
      self.isExtended = isExtended
      // If this node also scans for LE peers, a scan comes before the first inquiry.
      inquireAfter = mayScan ? now + Self.inquiryRestMin : now
    case .adapterDown:
      restart()
      hasDials = false
    case .commandDone(let isSuccess): commandDone(isSuccess, now)
    case .discovering(let isOn, let isInquiry): discovering(isOn, isInquiry, now)
    case .advertisingRemoved: advertising = .off
    case .linkUp:
      links += 1
      if advertising == .on { advertising = .ended }
      if outstanding == .advertise { linkedMeanwhile = true }
    case .linkDown(let isEnded):
      links = max(0, links - 1)
      if isEnded { break }
      rest.reset()
      if !isAirShared { scanAfter = now }
    case .dialsWaiting(let isWaiting): hasDials = isWaiting
    case .dialEnded(let isSuccess):
      isDialling = false
      if isAirShared {
        dialAfter = now + Self.sharedRest
      } else if !isSuccess && (hasDialFailed || !isExtended) {
        dialAfter = now + Self.dialRest
      }
      hasDialFailed = !isSuccess
    case .foundNewcomer: foundInSession = true
    case .mayInquire(let isAllowed): mayInquire = isAllowed
    case .airShared(let isShared): share(isShared, now)
    }
  }

  /// Resets the plan, except for the waiting dials and the load of Wi-Fi, which do not depend on the controller.
  private mutating func restart() {
    let (dials, shared) = (hasDials, isAirShared)
    self = RadioPlan(
      linksMax: linksMax, mayAdvertise: mayAdvertise, mayScan: mayScan, relays: relays, seed: pauses.next())
    (hasDials, isAirShared) = (dials, shared)
  }

  private mutating func share(_ isShared: Bool, _ now: Instant) {
    if isShared == isAirShared { return }
    isAirShared = isShared
    if isShared {
      scanUntil = now
      scanAfter = max(scanAfter, now + Self.sharedRest)
      dialAfter = max(dialAfter, now + Self.sharedRest)
    } else {
      scanUntil = .never
      scanAfter = min(scanAfter, now + Self.restMin)
      dialAfter = min(dialAfter, now)
    }
  }

  mutating func nextCommand(_ now: Instant) -> Command? {
    guard isUp, outstanding == nil, let command = wanted(now, isQuiet: isDialling || hasDials && now >= dialAfter)
    else { return nil }
    if command == .dial {
      isDialling = true
    } else {
      outstanding = command
    }
    return command
  }

  /// The time at which `nextCommand` can return a command without a further event.
  var deadline: Instant {
    guard isUp, outstanding == nil, !isDialling else { return .never }
    var deadline = hasDials ? dialAfter : .never
    if wantsAdvertising(isQuiet: false), advertising != .on { deadline = min(deadline, advertiseAfter) }
    if isScanning { return min(deadline, scanUntil) }
    if isInquiring { return min(deadline, inquireUntil) }
    if wantsScanning(isQuiet: false) { deadline = min(deadline, scanAfter) }
    if wantsInquiry(isQuiet: false) { deadline = min(deadline, inquireAfter) }
    return deadline
  }

  private func wantsAdvertising(isQuiet: Bool) -> Bool { mayAdvertise && hasFreeSlot && (isExtended || !isQuiet) }
  private func wantsScanning(isQuiet: Bool) -> Bool { mayScan && hasFreeSlot && !isQuiet }

  private func wantsInquiry(isQuiet: Bool) -> Bool { mayInquire && !isAirShared && !isQuiet }

  private func wanted(_ now: Instant, isQuiet: Bool) -> Command? {
    let wantsAdvertising = wantsAdvertising(isQuiet: isQuiet)
    if !wantsAdvertising, advertising != .off { return .stopAdvertising }
    if isScanning, isQuiet || now >= scanUntil { return .stopScanning }
    let wantsInquiry = wantsInquiry(isQuiet: isQuiet)
    if isInquiring, !wantsInquiry || now >= inquireUntil { return .stopInquiring }
    if isQuiet, !isDialling { return .dial }
    if wantsAdvertising, advertising != .on, now >= advertiseAfter { return .advertise }
    if isScanning || isInquiring { return nil }
    if wantsInquiry, now >= inquireAfter { return .inquire }
    return wantsScanning(isQuiet: isQuiet) && now >= scanAfter ? .scan : nil
  }

  private mutating func commandDone(_ isSuccess: Bool, _ now: Instant) {
    guard let command = outstanding else { return }
    outstanding = nil
    switch command {
    case .advertise:
      if isSuccess {
        advertising = linkedMeanwhile ? .ended : .on
      } else {
        advertiseAfter = now + Self.advertiseRetry
      }
      linkedMeanwhile = false
    // If the kernel refuses a stop, there was nothing to stop.
    case .stopAdvertising: advertising = .off
    case .stopScanning:
      isScanning = false
      if isAirShared { takeRest(now) }
    case .scan:
      isScanning = isSuccess
      scanUntil = isAirShared ? now + Self.sharedScan : .never
      foundInSession = false
      if !isSuccess { takeRest(now) }
    case .stopInquiring:
      isInquiring = false
      takeInquiryRest(now)
    case .inquire:
      isInquiring = isSuccess
      inquireUntil = now + Self.inquiryLength
      foundInSession = false
      if !isSuccess { takeInquiryRest(now) }
    case .dial: break
    }
  }

  private mutating func discovering(_ isOn: Bool, _ isInquiry: Bool, _ now: Instant) {
    if isInquiry {
      if isInquiring, !isOn, outstanding != .stopInquiring { takeInquiryRest(now) }
      isInquiring = isOn
      return
    }
    if isScanning, !isOn, outstanding != .stopScanning { takeRest(now) }
    isScanning = isOn
  }

  private mutating func takeRest(_ now: Instant) {
    if foundInSession { rest.reset() } else { rest.double() }
    scanAfter = now + (isAirShared ? Self.sharedRest : rest.pause)
  }

  /// Begins a pause after an inquiry. A random time is added to the pause, at most as long as the pause.
  private mutating func takeInquiryRest(_ now: Instant) {
    if foundInSession { inquiryRest.reset() } else { inquiryRest.double() }
    let rest = inquiryRest.pause.nanoseconds
    inquireAfter = now + TimeSpan(nanoseconds: rest + rest / 256 * (pauses.next() & 0xFF))
  }
}
