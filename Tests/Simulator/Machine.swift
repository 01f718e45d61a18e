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
  /// The number of signatures made, to measure the cost of an event.
  var signCount: Int { get }
  /// The number of signatures verified.
  var verifyCount: Int { get }
}

/// Makes the keys of a network. Machine `number` of the simulation with `seed` always has the same key.
public typealias KeyMaker = (_ seed: UInt64, _ number: Int) -> any SimulatedKey

extension StandInCryptography: SimulatedKey {
  public var id: NodeID { identity.id }
  public var point: [UInt8] { identity.point }
}

/// A machine of the network. It outlives the nodes that run on it one after the other.
struct Machine {
  let key: any SimulatedKey
  let relays: Bool
  let encryption: EncryptionPreference
  let asksApplication: Bool
  let bluetoothPlaces: Int
  let sessionLifetime: SessionLifetime
  /// The machine whose name and key this machine uses: itself, or another machine for a clone.
  let number: Int
  /// Nil between a crash and the next start.
  var node: Node?
  /// The number of the current start, counted over all machines, and so unique in a run.
  var life = 0
  var epoch: UInt64
  /// The planned time of the node's next deadline.
  var timerAt = Instant.never
  /// The maximum number of events that a wake-up of the firmware's event loop handles.
  static let wakeEventsMax: UInt64 = 64
  /// The number of events since the node's last drain, and the maximum for the current wake-up.
  var eventsSinceDrain = 0
  var wakeEvents = 1
  /// The time of the last deadline that the node handled, if it has not been drained since.
  var timedOutAt = Instant.zero
  /// Messages that the application was notified of and has not read.
  var waiting: [(peer: NodeID, lane: Lane)] = []
  /// The stream behind each link slot.
  var streams = [Int?](repeating: nil, count: Limits.linksMax)
  /// The peers that the node reported as found.
  var found: Set<Int> = []
  /// The peers whose certificates the application was asked about, and the peers that it has accepted.
  var asked: Set<Int> = []
  var accepted: Set<Int> = []
  /// The bytes of messages that the applications have read.
  var bytesRead = 0
  /// The application reads no messages before this time.
  var readsFrom = Instant.zero
  /// The machine does nothing before this time.
  var frozenUntil = Instant.zero
  /// Whether the machine stays off.
  var isOut = false
  var mischief = Mischief()
  /// The node's counters at the last check.
  var counted: NodeCounters?
  /// The memory of the journal, for a machine whose alarms matter.
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
