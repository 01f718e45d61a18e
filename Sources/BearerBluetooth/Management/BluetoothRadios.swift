import Bearer
import Primitives
import Reactor

/// Bluetooth over one or several adapters, as one bearer. Each adapter has a `BluetoothBearer`. A peer in range of
/// several adapters is one candidate, and is dialled over one of the adapters.
public final class BluetoothRadios {
  /// The source names in reports, for each of `AdapterChoice.countMax` adapters.
  private static let sources: [BluetoothBearer.Sources] = [
    ("bluetooth", "bluetooth-classic", "bluetooth-nap"), ("bluetooth-2", "bluetooth-classic-2", "bluetooth-nap-2"),
    ("bluetooth-3", "bluetooth-classic-3", "bluetooth-nap-3"),
    ("bluetooth-4", "bluetooth-classic-4", "bluetooth-nap-4"),
  ]

  /// The maximum number of clients that read service records at once, over all adapters.
  public static let recordClientsMax = AdapterChoice.countMax * SDPConnections.countMax
  /// The maximum number of peers that have joined a bridge over Bluetooth classic, over all adapters.
  public static let networkPeersMax = AdapterChoice.countMax * NetworkAccessPoint.peersMax

  /// The maximum number of known peers of all adapters, over LE and classic. `heardBytes` is the memory for each peer
  /// in bytes.
  public static let heardMax = 2 * AdapterChoice.countMax * HeardPeers.entriesMax
  public static let heardBytes = HeardPeers.entryBytes + SharedCandidates.entryBytes

  /// Called when the number of LE link slots of all working adapters changes. While no adapter works, the number is
  /// that of a single adapter.
  public var slotsChanged: ((Int) -> Void)?

  /// Whether a stream with a peer is open. A dial to a peer with an open stream fails, because the peer has dialled
  /// first.
  public var hasStream: (RemoteAddress) -> Bool = { _ in false } {
    didSet { for bearer in bearers { bearer.hasStream = hasStream } }
  }

  private var bearers: [BluetoothBearer] = []
  private var candidates = SharedCandidates()
  private var delegate: (any BearerDelegate)?
  private var slots = 0

  /// `adapters`: 1 to `AdapterChoice.countMax`. `settings.problem` must be nil; the adapter in `settings` is ignored.
  public init(
    _ loop: EventLoop, _ settings: BluetoothSettings, adapters: [AdapterChoice], hint: UInt64,
    _ delegate: any BearerDelegate
  ) {
    self.delegate = delegate
    for (number, adapter) in adapters.prefix(AdapterChoice.countMax).enumerated() {
      var settings = settings
      settings.adapter = adapter
      bearers.append(BluetoothBearer(loop, settings, hint: hint, sources: Self.sources[number], Listener(self, number)))
    }
  }

  public func start() {
    for bearer in bearers { bearer.start() }
  }

  /// Dials a candidate, as `BluetoothBearer.dial`. The dial uses the adapter that has a connection to the peer. If no
  /// adapter has a connection, the dial uses the adapter with the most free slots among those that have found the peer.
  public func dial(_ candidate: Candidate, token: UInt32) {
    var best = 0
    for number in bearers.indices where worth(number, candidate) > worth(best, candidate) { best = number }
    bearers[best].dial(candidate, token: token)
  }

  /// Ends a connection, as `BluetoothBearer.hangUp`.
  public func hangUp(_ endpoint: BluetoothEndpoint) {
    for bearer in bearers { bearer.hangUp(endpoint) }
  }

  /// Opens an attribute channel to a peer whose stream was lost, as `BluetoothBearer.answerAgain`.
  public func answerAgain(_ endpoint: BluetoothEndpoint, wasDialled: Bool) {
    for bearer in bearers { bearer.answerAgain(endpoint, wasDialled: wasDialled) }
  }

  /// Records that traffic passed (see `BluetoothBearer.passed`).
  public func passed(_ peer: RemoteAddress, _ byteCount: UInt64) {
    for bearer in bearers { bearer.passed(peer, byteCount) }
  }

  /// Notes traffic over Wi-Fi, as `BluetoothBearer.passedOverWiFi`.
  public func passedOverWiFi(_ byteCount: UInt64) {
    for bearer in bearers { bearer.passedOverWiFi(byteCount) }
  }

  /// Notes the end of a Wi-Fi link, as `BluetoothBearer.wifiEnded`.
  public func wifiEnded() {
    for bearer in bearers { bearer.wifiEnded() }
  }

  /// Notes that a node has proved its key, as `BluetoothBearer.proved`.
  public func proved(_ peer: RemoteAddress) {
    for bearer in bearers { bearer.proved(peer) }
  }

  public func stop() {
    delegate = nil
    slotsChanged = nil
    for bearer in bearers { bearer.stop() }
  }

  /// The state of each adapter, in the order of the configuration.
  public var snapshots: [BluetoothSnapshot] { bearers.map { $0.snapshot } }

  /// Calls `tell` for each working adapter, with the state of the bridge that peers can join over Bluetooth classic.
  public func forEachNetwork(_ tell: (NetworkSnapshot) -> Void) {
    for bearer in bearers {
      if let snapshot = bearer.classic?.network?.snapshot { tell(snapshot) }
    }
  }

  /// Whether a peer with this address has joined the bridge now, over any adapter.
  public func hasJoinedNetwork(_ peer: UInt64) -> Bool {
    bearers.contains { $0.classic?.network?.hasJoined(peer) ?? false }
  }

  // MARK: The adapters' events

  private func worth(_ number: Int, _ candidate: Candidate) -> Int {
    let bearer = bearers[number]
    if let peer = WireAddress(candidate.address), bearer.isLinked(peer) { return .max }
    return candidates.isInRange(candidate.address, number) ? bearer.slotsFree : .min
  }

  private func countSlots() {
    let working = bearers.filter { $0.isUp }
    let slots = working.isEmpty ? bearers[0].slots : working.reduce(0) { $0 + $1.slots }
    if slots == self.slots { return }
    self.slots = slots
    slotsChanged?(slots)
  }

  /// Receives the events of one adapter.
  private final class Listener: BearerDelegate {
    private let radios: BluetoothRadios
    private let number: Int

    init(_ radios: BluetoothRadios, _ number: Int) {
      self.radios = radios
      self.number = number
    }

    func bearerOpened(_ stream: StreamHandoff) { radios.delegate?.bearerOpened(stream) }

    func bearerDialFailed(token: UInt32, reason: String) {
      radios.delegate?.bearerDialFailed(token: token, reason: reason)
    }

    func bearerFound(_ candidate: Candidate) {
      let change = radios.candidates.found(candidate, by: number)
      if let lost = change.lost { radios.delegate?.bearerLost(lost) }
      if let found = change.found { radios.delegate?.bearerFound(found) }
    }

    func bearerLost(_ candidate: Candidate) {
      if let lost = radios.candidates.lost(candidate, by: number) { radios.delegate?.bearerLost(lost) }
    }

    func bearerReport(_ source: StaticString, _ text: String, isFault: Bool) {
      radios.countSlots()
      radios.delegate?.bearerReport(source, text, isFault: isFault)
    }
  }
}
