import Bearer
import Primitives
import Reactor

/// Bluetooth over one adapter or several, as one bearer. Each adapter has a `BluetoothBearer`; a peer that several of them
/// hear is one candidate, and is dialled over one of them.
public final class BluetoothRadios {
  /// Who speaks in reports: one name for each of `AdapterChoice.countMax`.
  private static let sources: [BluetoothBearer.Sources] = [
    ("bluetooth", "bluetooth-classic", "bluetooth-nap"), ("bluetooth-2", "bluetooth-classic-2", "bluetooth-nap-2"),
    ("bluetooth-3", "bluetooth-classic-3", "bluetooth-nap-3"),
    ("bluetooth-4", "bluetooth-classic-4", "bluetooth-nap-4"),
  ]

  /// Clients that ask for service records at once, of all adapters.
  public static let recordClientsMax = AdapterChoice.countMax * SDPConnections.countMax
  /// Peers that join a network at once, of all adapters.
  public static let networkPeersMax = AdapterChoice.countMax * NetworkAccessPoint.peersMax

  /// Peers that all adapters hear, of both kinds, and the bytes for each.
  public static let heardMax = 2 * AdapterChoice.countMax * CandidateTable.entriesMax
  public static let heardBytes = CandidateTable.entryBytes + SharedCandidates.entryBytes

  /// The adapters that work have so many places for links in all; at least those of one.
  public var placesChanged: ((Int) -> Void)?

  private var bearers: [BluetoothBearer] = []
  private var candidates = SharedCandidates()
  private var delegate: (any BearerDelegate)?
  private var places = 0

  /// `adapters`: 1 to `AdapterChoice.countMax`. `settings.problem` must be nil; its adapter is not looked at.
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

  /// As `BluetoothBearer.dial`, over the adapter that has a connection to the peer, or the one with most free places of those that
  /// hear it.
  public func dial(_ candidate: Candidate, token: UInt32) {
    var best = 0
    for number in bearers.indices where worth(number, candidate) > worth(best, candidate) { best = number }
    bearers[best].dial(candidate, token: token)
  }

  /// As `BluetoothBearer.hangUp`.
  public func hangUp(_ endpoint: BluetoothEndpoint) {
    for bearer in bearers { bearer.hangUp(endpoint) }
  }

  /// As `BluetoothBearer.answerAgain`.
  public func answerAgain(_ endpoint: BluetoothEndpoint, wasDialled: Bool) {
    for bearer in bearers { bearer.answerAgain(endpoint, wasDialled: wasDialled) }
  }

  /// As `BluetoothBearer.passed`.
  public func passed(_ peer: RemoteAddress, _ byteCount: UInt64) {
    for bearer in bearers { bearer.passed(peer, byteCount) }
  }

  /// As `BluetoothBearer.passedOverWiFi`.
  public func passedOverWiFi(_ byteCount: UInt64) {
    for bearer in bearers { bearer.passedOverWiFi(byteCount) }
  }

  /// As `BluetoothBearer.wifiEnded`.
  public func wifiEnded() {
    for bearer in bearers { bearer.wifiEnded() }
  }

  /// As `BluetoothBearer.proved`.
  public func proved(_ peer: RemoteAddress) {
    for bearer in bearers { bearer.proved(peer) }
  }

  public func stop() {
    delegate = nil
    placesChanged = nil
    for bearer in bearers { bearer.stop() }
  }

  /// One for each adapter, in the order of the configuration.
  public var snapshots: [BluetoothSnapshot] { bearers.map { $0.snapshot } }

  /// Tells of the bridge that peers may join over Bluetooth classic, once for each adapter that works.
  public func tellNetworks(_ tell: (NetworkSnapshot) -> Void) {
    for bearer in bearers {
      if let snapshot = bearer.classic?.network?.snapshot { tell(snapshot) }
    }
  }

  /// Whether a peer with this address has a port of that bridge now.
  public func hasJoinedNetwork(_ peer: UInt64) -> Bool {
    bearers.contains { $0.classic?.network?.hasJoined(peer) ?? false }
  }

  // MARK: The adapters' events

  private func worth(_ number: Int, _ candidate: Candidate) -> Int {
    let bearer = bearers[number]
    if let peer = WireAddress(candidate.address), bearer.isLinked(peer) { return .max }
    return candidates.hears(candidate.address, number) ? bearer.placesFree : .min
  }

  private func countPlaces() {
    let working = bearers.filter { $0.isUp }
    let places = working.isEmpty ? bearers[0].places : working.reduce(0) { $0 + $1.places }
    if places == self.places { return }
    self.places = places
    placesChanged?(places)
  }

  /// What one adapter tells.
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
      radios.countPlaces()
      radios.delegate?.bearerReport(source, text, isFault: isFault)
    }
  }
}
