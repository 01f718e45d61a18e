import Frame
import Primitives

/// How one simulated network is made; all of it follows from the seed.
struct Options {
  enum Shape: CaseIterable { case line, ring, star, grid, random }

  /// What may go wrong in a run; each seed switches some of it on.
  enum Fault: CaseIterable {
    /// All streams of a wire break, and both ends are told.
    case cut
    /// A wire delivers nothing for a while and then everything.
    case stall
    /// A wire is gone for a while and nobody is told; its streams never come back.
    case darkness
    /// Every wire between two halves of the network is gone for a while.
    case partition
    /// A machine loses power or its process dies, and starts again with a later epoch.
    case crash
    /// A second wire between two machines comes into reach and goes again.
    case handOver
    /// Discovery no longer sees the other end of a wire, and then does.
    case discoveryFlap
    /// The application of a machine takes no messages for a while.
    case slowReader
  }

  let seed: UInt64
  let shape: Shape
  let nodeCount: Int
  let faults: [Fault]
  /// How long faults happen.
  let faultSpan: TimeSpan
  /// Mean time between two faults, and between two messages of the whole network.
  let faultPause: TimeSpan
  let messagePause: TimeSpan

  /// Nothing happens by itself.
  init(quiet seed: UInt64, nodeCount: Int) {
    self.seed = seed
    shape = .random
    self.nodeCount = nodeCount
    faults = []
    faultSpan = .milliseconds(0)
    faultPause = .seconds(1)
    messagePause = .seconds(1)
  }

  init(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    self.seed = seed
    shape = Shape.allCases[Int(random.below(UInt64(Shape.allCases.count)))]
    nodeCount = 2 + Int(random.below(random.chance(perThousand: 200) ? 15 : 6))
    faults = Fault.allCases.filter { _ in random.chance(perThousand: 500) }
    faultSpan = .seconds(5 + random.below(30))
    faultPause = .milliseconds(300 + random.below(3000))
    messagePause = .milliseconds(20 + random.below(500))
  }
}
