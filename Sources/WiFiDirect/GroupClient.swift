import Bearer
import BearerIP
import CSystem
import Netlink
import Primitives
import Reactor

/// Joins the Wi-Fi group of another node by push button. The client searches for group owners, with pauses, and joins
/// the group of an owner. The client uses the IP address that the owner assigns. When the group is gone, the client
/// searches again.
final class GroupClient: RadioActivity {
  /// The duration of one search in seconds. One search in `fullSearchEvery` covers all channels, because an owner can
  /// be on any channel. All other searches cover only the social channels, which leaves more air time to other traffic.
  static let searchSeconds = 6
  static let fullSearchEvery = 3
  /// The time after the loss of a group in which its owner is expected to return. Pauses between searches are then at
  /// most `eagerPauseMax`.
  static let eagerTime = TimeSpan.seconds(300)
  static let eagerPauseMax = TimeSpan.seconds(3)
  /// The time limit for joining: provision discovery, WPS and association.
  static let joinTime = TimeSpan.seconds(40)

  private enum Phase {
    case resting
    case searching
    case joining
    case member
  }

  private let radio: WiFiDirectRadio
  private var options: WiFiDirectOptions { radio.options }
  private var phase = Phase.resting
  private var backoff = Backoff(first: .seconds(1), longest: .seconds(60))
  private var searches = 0
  private var timer: Timer?
  private var eagerUntil = Instant.zero
  private var owner: FoundDevice?
  /// Group owners that did not admit this node, the most recent failure last. Owners that are not in this list are
  /// tried first, because any device can take the name of a node.
  private var failedOwners: [MACAddress] = []
  private static let failedOwnersMax = 16
  /// The owner that failed longest ago among those found in this search.
  private var lastResort: FoundDevice?
  private var group: StartedGroup?
  private var reported: Candidate?

  init(_ radio: WiFiDirectRadio) { self.radio = radio }

  func begin() {
    timer = Timer(radio.loop) { [self] in timedOut() }
    search()
  }

  func received(_ message: SupplicantMessage) {
    switch message.event {
    case .deviceFound(let device):
      if phase == .searching, isWanted(device) { found(device) }
    case .findStopped:
      if phase == .searching { searchEnded() }
    case .groupStarted(let group):
      if phase == .joining, !group.isOwner { joined(group) }
    case .groupRemoved(let name, let reason):
      if let group, sameText(group.interface, name) {
        left(reason)
      } else if phase == .joining {
        failed("the group ended while it was being joined: \(reason)")
      }
    case .formationFailed:
      if phase == .joining { failed("the group owner refused this node") }
    case .pushButtonOverlap:
      if phase == .joining { failed("the group owner refused this node, because another device is joining") }
    case .full:
      if phase == .joining { failed("the group is full: its owner accepts no more stations") }
    case .pushButtonRequested, .pushButtonEnded, .stationConnected, .stationDisconnected,
      .connected, .disconnected, .terminating, .meshPeerRefused, .meshRefused, .other:
      break
    }
  }

  func pushButton() {}

  func checkLiveness() {
    guard let interface = group?.interface else { return }
    radio.supplicant?.send(to: interface, "STATUS") { [self] reply in
      guard let group, sameText(group.interface, interface) else { return }
      if reply.value("wpa_state") == nil { left("it no longer exists") }
    }
  }

  func leave() {
    switch phase {
    case .resting: break
    case .searching: radio.supplicant?.sendLast("P2P_STOP_FIND")
    case .joining: radio.supplicant?.sendLast("P2P_CANCEL")
    case .member: if let group { radio.supplicant?.sendLast("P2P_GROUP_REMOVE \(group.interface)") }
    }
  }

  func end() {
    timer?.cancel()
    timer = nil
    forgetGroup()
  }

  // MARK: - Searching

  private func search() {
    phase = .searching
    lastResort = nil
    radio.snapshot.state = .searching
    timer?.set(after: .seconds(UInt64(Self.searchSeconds * 2)))
    let kind =
      options.frequency != 0
      ? " freq=\(options.frequency)" : searches % Self.fullSearchEvery == Self.fullSearchEvery - 1 ? "" : " type=social"
    searches += 1
    radio.supplicant?.send("P2P_FIND \(Self.searchSeconds)\(kind)") { [self] reply in
      if !reply.isOK, phase == .searching, timer != nil {
        radio.failed("wpa_supplicant does not search for groups: \(reply.text)", .searching)
      }
    }
  }

  private func isWanted(_ device: FoundDevice) -> Bool {
    guard device.isGroupOwner else { return false }
    if let peer = options.peer { return device.address == peer }
    return DeviceName.has(device.name, prefix: options.deviceNamePrefix)
  }

  private func found(_ device: FoundDevice) {
    guard let index = failedOwners.firstIndex(of: device.address) else { return join(device) }
    if let lastResort, let other = failedOwners.firstIndex(of: lastResort.address), other < index { return }
    lastResort = device
  }

  private func searchEnded() {
    if let lastResort { join(lastResort) } else { rest() }
  }

  /// Begins the pause before the next search, which leaves the radio to other traffic. The pause has a random part, so
  /// that two clients do not search at the same times.
  private func rest() {
    phase = .resting
    radio.snapshot.state = .searching
    var pause = backoff.take()
    if radio.loop.now < eagerUntil { pause = min(pause, Self.eagerPauseMax) }
    timer?.set(after: TimeSpan(nanoseconds: pause.nanoseconds + chance() % (pause.nanoseconds / 2 + 1)))
  }

  private func timedOut() {
    switch phase {
    case .resting: search()
    case .searching:
      radio.supplicant?.send("P2P_STOP_FIND")
      searchEnded()
    case .joining:
      let name = owner?.name ?? "the group owner"
      failed("\(name) did not accept this node within \(Self.joinTime.milliseconds / 1000) s")
    case .member: break
    }
  }

  // MARK: - Joining

  private func join(_ device: FoundDevice) {
    phase = .joining
    lastResort = nil
    owner = device
    radio.snapshot.state = .joining
    radio.snapshot.owner = device.address
    timer?.set(after: Self.joinTime)
    radio.supplicant?.send(to: radio.deviceInterface, "BSS \(device.transmitter.text)") { [self] reply in
      if phase == .joining { join(device, on: reply.value("freq")) }
    }
  }

  /// Joins on the owner's frequency. If that frequency is unknown, wpa_supplicant searches all channels again.
  private func join(_ device: FoundDevice, on frequency: String?) {
    let hint = frequency.map { " freq=\($0)" } ?? ""
    radio.supplicant?.send("P2P_CONNECT \(device.address.text) pbc join\(hint)") { [self] reply in
      if !reply.isOK, phase == .joining { failed("wpa_supplicant does not join \(device.name): \(reply.text)") }
    }
  }

  private func failed(_ reason: String) {
    radio.report(fault: reason)
    if phase == .joining { radio.supplicant?.send("P2P_CANCEL") }
    if let owner {
      failedOwners.removeAll { $0 == owner.address }
      if failedOwners.count == Self.failedOwnersMax { failedOwners.removeFirst() }
      failedOwners.append(owner.address)
    }
    owner = nil
    radio.snapshot.owner = nil
    rest()
  }

  private func joined(_ group: StartedGroup) {
    phase = .member
    failedOwners.removeAll { $0 == owner?.address }
    self.group = group
    timer?.cancel()
    backoff.reset()
    searches = 0
    radio.snapshot.state = .member
    radio.snapshot.ssid = group.ssid
    radio.snapshot.frequency = group.frequency
    takeAddress(group)
    radio.groupCame(group.interface)
    radio.report("member of \(group.ssid) on \(group.interface), \(group.frequency) MHz")
    // If the owner assigned no IPv4 address, the interface has only an IPv6 link-local address. Discovery on the IP
    // network then finds the owner.
    guard group.address != 0, group.ownerAddress != 0, options.port != 0 else { return }
    let candidate = Candidate(
      bearer: .wifiDirect, address: .ip(IPEndpoint(ipv4: group.ownerAddress, port: options.port)),
      hint: DeviceName.hint(of: owner?.name ?? ""))
    reported = candidate
    radio.delegate.bearerFound(candidate)
  }

  private func takeAddress(_ group: StartedGroup) {
    guard group.address != 0 else { return }
    do {
      let prefixLength = group.mask == 0 ? WiFiDirectOptions.prefixLength : UInt8(group.mask.nonzeroBitCount)
      try addInterfaceAddress(if_nametoindex(group.interface), ipv4: group.address, prefixLength: prefixLength)
    } catch {
      radio.report(fault: "\(group.interface) has no IPv4 address: \(error.text). The program needs CAP_NET_ADMIN.")
    }
  }

  private func left(_ reason: String) {
    forgetGroup()
    radio.report("left the group: \(reason)")
    eagerUntil = radio.loop.now + Self.eagerTime
    rest()
  }

  private func forgetGroup() {
    group = nil
    owner = nil
    if let reported { radio.delegate.bearerLost(reported) }
    reported = nil
    radio.groupWent()
  }
}

private func chance() -> UInt64 {
  var random: UInt64 = 0
  _ = getrandom(&random, 8, 0)
  return random
}
