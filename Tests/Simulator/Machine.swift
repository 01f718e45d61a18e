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

/// A machine of the network. Nodes run on the machine in sequence; the machine remains when a node stops. Each run of a
/// node is an incarnation, here called life.
struct Machine {
  let key: any SimulatedKey
  let relays: Bool
  let encryption: EncryptionPreference
  let asksApplication: Bool
  let bluetoothSlots: Int
  let sessionLifetime: SessionLifetime
  /// The number of the machine whose name and key this machine uses. This number is the machine's own number, unless
  /// the machine is a clone.
  let number: Int
  /// The running node, or nil between a crash and the next start.
  var node: Node?
  /// The number of the machine's last start. Starts are counted over all machines, so this number is unique in a run.
  var life = 0
  var epoch: UInt64
  /// The time of the planned event for the node's next deadline.
  var timerAt = Instant.never
  /// The maximum number of events that the firmware's event loop handles in one pass.
  static let wakeEventsMax: UInt64 = 64
  /// The number of events since the node's last drain, and the number after which the node is drained next.
  var eventsSinceDrain = 0
  var wakeEvents = 1
  /// The time of the last deadline that the node handled since its last drain, or zero if there was none or another
  /// event followed.
  var timedOutAt = Instant.zero
  /// The messages that the application was notified of and has not read.
  var waiting: [(peer: NodeID, lane: Lane)] = []
  /// The number of the stream of each link slot, or nil for a free slot.
  var streams = [Int?](repeating: nil, count: Limits.linksMax)
  /// The peers that the node reported as found.
  var found: Set<Int> = []
  /// The peers about whose certificates the application was asked (`asked`), and the peers whose certificates were
  /// accepted (`accepted`).
  var asked: Set<Int> = []
  var accepted: Set<Int> = []
  /// The total bytes of the messages that the application has read.
  var bytesRead = 0
  /// The application reads no messages before this time.
  var readsFrom = Instant.zero
  /// The machine handles no events before this time.
  var frozenUntil = Instant.zero
  /// Whether the machine stays off for the rest of the run.
  var isOut = false
  var mischief = Mischief()
  /// The node's counters after its previous drain.
  var counted: NodeCounters?
  /// The memory of the node's journal. The memory is nil if the run does not check this machine's alarms.
  private let journalMemory: Borrowed?
  private(set) var journal = Journal.none

  init(
    _ number: Int, key: any SimulatedKey, relays: Bool, encryption: EncryptionPreference, _ options: Options,
    epoch: UInt64, bluetoothSlots: Int? = nil, journalMemory: Borrowed?
  ) {
    self.number = number
    self.bluetoothSlots = bluetoothSlots ?? Limits.linksMax
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
    settings.bluetoothSlots = bluetoothSlots
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

  /// Whether the node's journal has the alarm that the key is used twice.
  var hasRaisedAlarm: Bool {
    guard let memory = journalMemory, let reader = try? JournalReader(UnsafeRawBufferPointer(memory.bytes)) else {
      return false
    }
    return (reader.oldest..<reader.newest + 1).contains {
      reader.record($0)?.event == Event.identityDuplicated.rawValue
    }
  }
}
