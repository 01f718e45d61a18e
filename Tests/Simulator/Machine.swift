import Channel
import Frame
import Journal
import Node
import NodeSupport
import Primitives
import Seal
import SealSupport
import TestSupport

/// A node's key in a simulation.
public protocol SimulatedKey: NodeCryptography {
  var id: NodeID { get }
  var point: [UInt8] { get }
  /// Signatures made, to see what an event costs.
  var signCount: Int { get }
  /// Signatures verified, likewise.
  var verifyCount: Int { get }
}

/// Keys for a network: machine `number` of the simulation with `seed` has always the same one.
public typealias KeyMaker = (_ seed: UInt64, _ number: Int) -> any SimulatedKey

extension StandInCryptography: SimulatedKey {
  public var id: NodeID { identity.id }
  public var point: [UInt8] { identity.point }
}

/// A machine of the network: it outlives the nodes that run on it one after the other.
struct Machine {
  let key: any SimulatedKey
  let relays: Bool
  let encryption: EncryptionPreference
  let asksApplication: Bool
  let bluetoothPlaces: Int
  let sessionLifetime: SessionLifetime
  /// The machine whose name and key it has: itself, or for a clone another one.
  let number: Int
  /// Nil between a crash and the next start.
  var node: Node?
  /// The number of this start, counted over all machines: unique in a run.
  var life = 0
  var epoch: UInt64
  /// When the node's next deadline is planned.
  var timerAt = Instant.never
  /// The most events that a wake-up of the firmware's event loop serves.
  static let wakeEventsMax: UInt64 = 64
  /// Events that the node handled since its last drain, and the most that this wake-up handles.
  var eventsSinceDrain = 0
  var wakeEvents = 1
  /// When the node last handled its deadline without being drained since.
  var timedOutAt = Instant.zero
  /// Messages that the application was notified of and has not read.
  var waiting: [(peer: NodeID, lane: Lane)] = []
  /// The stream behind each link slot.
  var streams = [Int?](repeating: nil, count: Limits.linksMax)
  /// The peers that the node reported as found.
  var found: Set<Int> = []
  /// The peers whose certificates the application was asked about, and those that it has accepted.
  var asked: Set<Int> = []
  var accepted: Set<Int> = []
  /// Bytes of messages that its applications have taken.
  var bytesRead = 0
  /// The application reads no messages before this time.
  var readsFrom = Instant.zero
  /// The machine does nothing before this time.
  var frozenUntil = Instant.zero
  /// It stays off.
  var isOut = false
  var mischief = Mischief()
  /// The node's counters at the last check.
  var counted: NodeCounters?
  /// Holds the journal of a machine whose alarms matter.
  private let journalMemory: Borrowed?
  private(set) var journal = Journal.none

  init(
    _ number: Int, key: any SimulatedKey, relays: Bool, encryption: EncryptionPreference, _ options: Options,
    epoch: UInt64, bluetoothPlaces: Int? = nil, journalMemory: Borrowed?
  ) {
    self.number = number
    self.bluetoothPlaces = bluetoothPlaces ?? Limits.linksMax
    self.key = key
    self.relays = relays
    self.encryption = encryption
    asksApplication = options.asksApplications && number % 2 == 0
    var lifetime = SessionLifetime()
    if options.renewsKeys {
      lifetime.recordsMax = 40
      lifetime.age = .seconds(20 + UInt64(number))
    }
    sessionLifetime = lifetime
    self.epoch = epoch
    self.journalMemory = journalMemory
  }

  static let journalBytes = 65_536

  mutating func start(life: Int, now: Instant) {
    self.life = life
    streams = [Int?](repeating: nil, count: Limits.linksMax)
    found = []
    asked = []
    accepted = []
    timerAt = .never
    mischief = Mischief()
    frozenUntil = .zero
    readsFrom = .zero
    counted = nil
    eventsSinceDrain = 0
    wakeEvents = 1
    timedOutAt = .zero
    waiting = []
    var settings = NodeSettings(
      id: key.id, epoch: epoch, point: key.point, name: DisplayName("machine \(number) life \(life)"),
      serviceType: [UInt8]("sim".utf8), info: [[UInt8]("n=\(number)".utf8)], relays: relays, bypass: false,
      encryption: encryption)
    settings.asksApplication = asksApplication
    settings.bluetoothPlaces = bluetoothPlaces
    settings.sessionLifetime = sessionLifetime
    if let journalMemory {
      journal = Journal(journalMemory.bytes, level: .error, wallOffset: 0, boot: MachineBoot(high: 1, low: 1))
    }
    node = Node(settings, key, journal: journal, now: now)
  }

  mutating func stop() {
    node = nil
    timerAt = .never
  }

  /// Whether the node reported that its key is used twice.
  var hasRaisedAlarm: Bool {
    guard let memory = journalMemory, let reader = try? JournalReader(UnsafeRawBufferPointer(memory.bytes)) else {
      return false
    }
    return (reader.oldest..<reader.newest + 1).contains {
      reader.record($0)?.event == Event.identityDuplicated.rawValue
    }
  }
}
