import Frame
import Primitives

/// The parameters of one simulated network. All follow from the seed and from the reductions of a regression.
public struct Options: Sendable {
  public enum Shape: String, Sendable {
    case line, ring, star, grid, random
    /// One broadcast domain, or several in a row.
    case hall, halls
    /// Leaves and a few relays that discover each other over Bluetooth LE, with few places.
    case room

    /// The shapes that are drawn at random; the other ones depend on the seed.
    static let drawn: [Shape] = [.line, .ring, .star, .grid, .random]
    var isOfHalls: Bool { self == .hall || self == .halls }
  }

  public let seed: UInt64
  public private(set) var shape: Shape
  public private(set) var nodeCount: Int
  /// The faults that may happen.
  public private(set) var faults: [Fault]
  /// The time during which faults happen.
  public private(set) var faultSpan: TimeSpan
  /// The mean time between two faults, and between two messages of the whole network.
  private(set) var faultPause: TimeSpan
  private(set) var messagePause: TimeSpan
  /// Whether messages of up to 60 KB are common.
  private(set) var isBusy: Bool
  /// Whether some machines and wires stay down when the others recover.
  private(set) var healsPartly: Bool
  /// The machines' encryption preferences.
  public let sealing: Sealing
  /// Whether applications decide on the certificate of each peer.
  let asksApplications: Bool
  /// Whether keys between two machines are renewed all the time.
  let renewsKeys: Bool
  /// The maximum length of a wake-up. Events that come to a machine within a random part of it are handled together.
  let wakeSpan: TimeSpan
  /// The attack of a hostile relay at the end, in three of twenty networks.
  let lie: Lie?
  /// Whether signatures and sealing use mbedTLS, if the program is built with it.
  public let wantsRealCryptography: Bool

  public enum Sealing: String, Sendable {
    /// All machines require it.
    case required
    /// None does.
    case none
    /// Each machine has its own preference.
    case mixed
  }

  /// Every n-th seed signs and seals with the real library.
  public static let realCryptographyEvery: UInt64 = 50

  /// Whether a seed is run a second time to check that its trace is the same: one in twenty, and some of those with the
  /// real library.
  public static func isRunTwice(_ seed: UInt64) -> Bool { seed % 20 == 7 || seed % (10 * realCryptographyEvery) == 0 }

  /// Every n-th seed uses broadcast domains; none of them uses the real library.
  static let hallsEvery: UInt64 = 5
  /// Every n-th seed uses large broadcast domains. Such a seed takes as long as fifty others.
  static let largeHallsEvery: UInt64 = 250

  /// Options without faults and without random messages.
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

  /// Every n-th seed is a room.
  static let roomsEvery: UInt64 = 20

  private mutating func makeRoom() {
    var random = SeededRandom(seed: seed ^ 0x4007)
    shape = .room
    nodeCount = 6 + Int(random.below(11))
    // A leaf without a relay may have fewer places than leaves to link with.
    healsPartly = false
  }

  /// These options use a generator of their own, so that the networks of all other seeds do not depend on them.
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

  /// The same seed with less: only these faults, at most `nodeCount` machines, and a shorter time with faults.
  public func reduced(faults: [Fault]? = nil, nodeCount: Int? = nil, faultSeconds: UInt64? = nil) -> Options {
    var options = self
    if let faults { options.faults = self.faults.filter(faults.contains) }
    if let nodeCount { options.nodeCount = min(nodeCount, self.nodeCount) }
    if let faultSeconds { options.faultSpan = min(.seconds(faultSeconds), faultSpan) }
    return options
  }
}

/// The faults of a run; each seed enables some of them.
public enum Fault: String, CaseIterable, Sendable {
  // Below the links: streams stay reliable or break.

  /// All streams of a wire end, and both ends are notified.
  case cut
  /// A wire delivers nothing for a while and then everything.
  case stall
  /// A wire fails silently for a while; its streams never recover.
  case darkness
  /// One direction of a wire fails silently for a while.
  case oneWay
  /// Every wire between two halves of the network fails for a while.
  case partition
  /// Every wire of one machine fails for a while.
  case isolation
  /// A wire goes down and up several times while its ends complete handshakes.
  case flap
  /// A wire's rate falls to a hundredth for a while.
  case clog
  /// Bytes take up to a second longer.
  case delay
  /// Packets are lost and retransmitted below the link; all later data waits for them.
  case loss
  /// As `loss`, but half of all packets are lost in short bursts.
  case bursts
  /// A byte changes, which makes TLS end the stream.
  case corrupt
  /// From its next stream on, a wire has another frame length limit.
  case frameLength
  /// A second wire between two machines comes into reach and goes again.
  case handOver
  /// Discovery loses the other end of a wire for a while.
  case discoveryFlap

  // Machines.

  /// A machine loses power or its process dies, and starts again with a later epoch.
  case crash
  /// As `crash`, but the machine has lost its epoch: it starts with an earlier one.
  case epochLost
  /// A machine does nothing for a while and then continues.
  case freeze
  /// A second machine runs with the key of another one for a while.
  case clone
  /// The application of a machine takes no messages for a while.
  case slowReader
  /// The application of a machine takes no messages until all faults are over.
  case noReader
  /// The wall clock of a machine jumps by up to ten years.
  case clockStep

  // Frames: an overloaded or malicious relay.

  case frameLoss
  case frameDouble
  case frameReorder
  /// Forwards nothing, but otherwise behaves normally.
  case blackHole
  /// Sends frames again that it has sent before.
  case replay
  /// Changes advertisements, hop counts, and the ids in frames.
  case alter
  /// Sends forged frames in other nodes' names.
  case spoof
  /// Advertises links that it does not have, false costs, and a false encryption preference.
  case falseLinks
  /// Changes other nodes' encryption preferences in their topologies.
  case downgrade

  /// Half of the machines in a broadcast domain crash at once, and start again at once.
  case hallLeaves

  /// Whether a key was used under a later epoch. That epoch must expire, which takes a quarter of an hour.
  var isSlow: Bool { self == .epochLost || self == .clone }

  /// Whether one relay applies the fault to frames. All other faults concern wires or machines.
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
