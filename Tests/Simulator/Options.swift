import Frame
import Primitives

/// The parameters of one simulated network. The parameters are determined by the seed, and may be reduced for a
/// regression.
public struct Options: Sendable {
  public enum Shape: String, Sendable {
    case line, ring, star, grid, random
    /// A single broadcast domain with wires between all machines (`hall`), or several domains in a row (`halls`).
    case hall, halls
    /// Up to 16 leaves and relays in Bluetooth LE range of each other, each with few slots for Bluetooth links.
    case room

    /// The shapes that are drawn at random. The seed's number decides about the other shapes.
    static let drawn: [Shape] = [.line, .ring, .star, .grid, .random]
    var isOfHalls: Bool { self == .hall || self == .halls }
  }

  public let seed: UInt64
  public private(set) var shape: Shape
  public private(set) var nodeCount: Int
  /// The faults that may happen in this run.
  public private(set) var faults: [Fault]
  /// The time during which faults and messages happen.
  public private(set) var faultSpan: TimeSpan
  /// The mean time between two faults (`faultPause`), and between two messages in the network (`messagePause`).
  private(set) var faultPause: TimeSpan
  private(set) var messagePause: TimeSpan
  /// Whether half of the messages have up to 60 KB, instead of a tenth.
  private(set) var isBusy: Bool
  /// Whether some machines and wires stay down when the faults end.
  private(set) var healsPartly: Bool
  /// The encryption preferences of the machines.
  public let sealing: Sealing
  /// Whether the applications of every second machine decide on the certificate of each peer.
  let asksApplications: Bool
  /// Whether the session keys between two machines are renewed after 40 records or some seconds.
  let renewsKeys: Bool
  /// The maximum length of one pass of a machine's event loop. The node is drained after a random part of this time,
  /// and handles the events of that time together.
  let wakeSpan: TimeSpan
  /// The attack of a hostile relay at the end of the run. Three of twenty networks have a hostile relay.
  let lie: Lie?
  /// Whether signatures and sealing use mbedTLS instead of the stand-in. The program must be built with mbedTLS.
  public let wantsRealCryptography: Bool

  public enum Sealing: String, Sendable {
    /// All machines require encryption.
    case required
    /// No machine encrypts.
    case none
    /// Each machine has its own preference.
    case mixed
  }

  /// Every n-th seed signs and seals with mbedTLS. The stand-in is used for all other seeds.
  public static let realCryptographyEvery: UInt64 = 50

  /// Whether a seed runs twice, to check that both runs have the same trace. One in twenty seeds runs twice, and one in
  /// ten of the seeds with mbedTLS.
  public static func isRunTwice(_ seed: UInt64) -> Bool { seed % 20 == 7 || seed % (10 * realCryptographyEvery) == 0 }

  /// Every n-th seed has broadcast domains. No seed has both broadcast domains and mbedTLS.
  static let hallsEvery: UInt64 = 5
  /// Every n-th seed has large broadcast domains. A seed with large domains takes as long as fifty others.
  static let largeHallsEvery: UInt64 = 250

  /// The options of a network without faults and without random messages.
  init(quiet seed: UInt64, nodeCount: Int) {
    self.seed = seed
    shape = .random
    self.nodeCount = nodeCount
    faults = []
    faultSpan = .milliseconds(0)
    faultPause = .seconds(1)
    messagePause = .seconds(1)
    isBusy = false
    healsPartly = false
    sealing = .required
    asksApplications = false
    renewsKeys = false
    wakeSpan = .milliseconds(0)
    lie = nil
    wantsRealCryptography = false
  }

  public init(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    self.seed = seed
    shape = Shape.drawn[Int(random.below(UInt64(Shape.drawn.count)))]
    wantsRealCryptography = seed % Self.realCryptographyEvery == 0
    let size = random.below(wantsRealCryptography ? 600 : 1000)
    nodeCount =
      if size < 700 { 2 + Int(random.below(wantsRealCryptography ? 4 : 6)) } else if size < 970 {
        2 + Int(random.below(15))
      } else if size < 994 { 16 + Int(random.below(17)) } else { 32 + Int(random.below(33)) }
    let share: UInt64 = random.chance(perThousand: 500) ? 150 : 400
    faults = Fault.allCases.filter { $0 != .hallLeaves && random.chance(perThousand: $0.isSlow ? share / 5 : share) }
    faultSpan = .seconds(5 + random.below(30))
    faultPause = .milliseconds(300 + random.below(3000))
    messagePause = .milliseconds(20 + random.below(500))
    isBusy = random.chance(perThousand: 200)
    healsPartly = random.chance(perThousand: 300)
    let wish = random.below(10)
    sealing = wish < 5 ? .required : wish < 7 ? .none : .mixed
    asksApplications = random.chance(perThousand: 150)
    renewsKeys = random.chance(perThousand: 200)
    let wakeSpans: [UInt64] = [0, 100, 1_000, 5_000]
    wakeSpan = TimeSpan(nanoseconds: 1_000 * wakeSpans[Int(random.below(4))])
    lie = Lie.of(seed)
    if seed % Self.hallsEvery == Self.hallsEvery - 1 { makeHalls() }
    if seed % Self.roomsEvery == 8 { makeRoom() }
  }

  /// Every n-th seed is a room: leaves and relays in Bluetooth LE range of each other.
  static let roomsEvery: UInt64 = 20

  private mutating func makeRoom() {
    var random = SeededRandom(seed: seed ^ 0x4007)
    shape = .room
    nodeCount = 6 + Int(random.below(11))
    // All relays start again after the faults. Without a relay a leaf might have fewer Bluetooth slots than leaves that
    // it must link with.
    healsPartly = false
  }

  /// Changes the options for broadcast domains. The random numbers of broadcast domains come from a separate generator,
  /// so that the networks of other seeds stay the same.
  private mutating func makeHalls() {
    var random = SeededRandom(seed: seed ^ 0x4a11)
    shape = random.chance(perThousand: 500) ? .hall : .halls
    let size = random.below(1000)
    nodeCount =
      if size < 800 { 6 + Int(random.below(8)) } else if size < 970 { 12 + Int(random.below(10)) } else {
        22 + Int(random.below(11))
      }
    if random.chance(perThousand: 400) { faults.append(.hallLeaves) }
    guard seed % Self.largeHallsEvery == Self.largeHallsEvery - 1 else { return }
    nodeCount = 48 + Int(random.below(UInt64(Self.largestHall - 47)))
    faults = faults.filter { !$0.isSlow && $0 != .hallLeaves }.prefix(2) + [.hallLeaves]
    faultSpan = .seconds(8)
    faultPause = .seconds(1)
    messagePause = .seconds(1)
    isBusy = false
  }

  static let largestHall = 128

  /// The options of the same seed with only these faults, at most `nodeCount` machines, and at most `faultSeconds`
  /// seconds of faults.
  public func reduced(faults: [Fault]? = nil, nodeCount: Int? = nil, faultSeconds: UInt64? = nil) -> Options {
    var options = self
    if let faults { options.faults = self.faults.filter(faults.contains) }
    if let nodeCount { options.nodeCount = min(nodeCount, self.nodeCount) }
    if let faultSeconds { options.faultSpan = min(.seconds(faultSeconds), faultSpan) }
    return options
  }
}

/// The faults of the simulator. Each seed enables some faults.
public enum Fault: String, CaseIterable, Sendable {
  // Faults of wires, below the links: streams stay reliable or break.

  /// All streams of a wire end, and both ends of each stream are notified.
  case cut
  /// A wire delivers nothing for a while, and delivers all delayed data after the stall.
  case stall
  /// A wire fails silently for a while. The streams of the wire carry nothing from then on.
  case darkness
  /// A wire fails silently in one direction for a while.
  case oneWay
  /// Every wire between two halves of the network fails for a while.
  case partition
  /// Every wire of one machine fails for a while.
  case isolation
  /// A wire goes down and up several times while its ends complete handshakes.
  case flap
  /// A wire's rate falls to one hundredth for a while.
  case clog
  /// All data of a wire takes up to a second longer for a while.
  case delay
  /// Packets are lost and retransmitted below the link. All data behind a lost packet waits for it.
  case loss
  /// As `loss`, but packets are lost in short bursts, each with half of the packets.
  case bursts
  /// A byte changes in flight, so the receiver's TLS ends the stream.
  case corrupt
  /// A wire gets another limit for the length of frames. Streams that are opened later use the new limit.
  case frameLength
  /// A second wire between two machines comes up or goes down.
  case handOver
  /// Discovery at both ends of a wire loses the other end for a while.
  case discoveryFlap

  // Faults of machines.

  /// A machine loses power or its process dies. The machine starts again with a later epoch.
  case crash
  /// As `crash`, but the machine has lost its stored epoch and starts with an earlier one.
  case epochLost
  /// A machine handles no events for a while and then continues.
  case freeze
  /// A second machine, the clone, runs with the key of another machine for a while.
  case clone
  /// The application of a machine reads no messages for a while.
  case slowReader
  /// The application of a machine reads no messages until all faults are over.
  case noReader
  /// The wall clock of a machine jumps by up to ten years.
  case clockStep

  // Faults of frames, which one overloaded or malicious relay causes.

  case frameLoss
  case frameDouble
  case frameReorder
  /// The relay forwards no frames, and otherwise behaves normally.
  case blackHole
  /// The relay repeats frames that it has sent before.
  case replay
  /// The relay changes advertisements, hop counts, and the ids in frames.
  case alter
  /// The relay sends forged frames in other nodes' names.
  case spoof
  /// The relay advertises links that do not exist, false costs, and a false encryption preference of its own.
  case falseLinks
  /// The relay changes other nodes' encryption preferences in their topologies.
  case downgrade

  /// Half of the machines in a broadcast domain crash at once, and start again together.
  case hallLeaves

  /// Whether the fault leaves advertisements of a later epoch than the current one. Advertisements of a later epoch
  /// must expire, which takes a quarter of an hour.
  var isSlow: Bool { self == .epochLost || self == .clone }

  /// Whether one misbehaving relay applies the fault to frames. All other faults concern wires or machines.
  var isMischief: Bool {
    switch self {
    case .frameLoss, .frameDouble, .frameReorder, .blackHole, .replay, .alter, .spoof, .falseLinks, .downgrade: true
    case .cut, .stall, .darkness, .oneWay, .partition, .isolation, .flap, .clog, .delay, .loss, .bursts, .corrupt,
      .frameLength, .handOver, .discoveryFlap, .crash, .epochLost, .freeze, .clone, .slowReader, .noReader, .clockStep,
      .hallLeaves:
      false
    }
  }
}
