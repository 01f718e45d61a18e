import Frame
import Journal
import Node
import Primitives
import TestSupport

/// A machine of the network: it outlives the nodes that run on it one after the other.
struct Machine {
  let identity: Identity
  let cryptography: StandInCryptography
  let relays: Bool
  /// Nil between a crash and the next start.
  var node: Node?
  /// Counts the starts.
  var life = 0
  var epoch: UInt64
  /// When the node's next deadline is planned.
  var timerAt = Instant.never
  /// The stream behind each link slot.
  var streams = [Int?](repeating: nil, count: Limits.linksMax)
  /// The peers that the node said are found.
  var found: Set<Int> = []
  /// Bytes of messages that its applications have taken.
  var bytesRead = 0
  /// The application takes no messages before.
  var readsFrom = Instant.zero

  init(_ number: Int, seed: UInt64, relays: Bool, epoch: UInt64) {
    identity = Identity(seed &* 1000 &+ UInt64(number))
    cryptography = StandInCryptography(identity)
    self.relays = relays
    self.epoch = epoch
  }

  mutating func start(_ number: Int, now: Instant) {
    life += 1
    streams = [Int?](repeating: nil, count: Limits.linksMax)
    found = []
    readsFrom = .zero
    timerAt = .never
    let settings = NodeSettings(
      id: identity.id, epoch: epoch, point: identity.point, name: DisplayName("machine \(number) life \(life)"),
      serviceType: [UInt8]("sim".utf8), info: [[UInt8]("n=\(number)".utf8)], relays: relays, bypass: false)
    node = Node(settings, cryptography, journal: .none, now: now)
  }
}
