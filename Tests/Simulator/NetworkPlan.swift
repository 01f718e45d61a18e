import Primitives

/// The machines of a network and the wires between them.
public struct NetworkPlan {
  /// A wire between two machines, which are given by their numbers.
  public struct Wire {
    public var ends: (Int, Int)
    public var model: WireModel
    /// Whether discovery gives each end the id of the other end before a dial.
    public var announcesID: Bool
    /// Whether the wire is down at first. The fault `handOver` brings a latent wire up and takes it down.
    public var isLatent = false
    /// The number of the wire's broadcast domain, or 0 if it is in none.
    public var domain: UInt32

    public init(_ one: Int, _ other: Int, _ model: WireModel, announcesID: Bool = true, domain: UInt32 = 0) {
      ends = (one, other)
      self.model = model
      self.announcesID = announcesID
      self.domain = domain
    }
  }

  /// For each machine, whether it forwards frames for others.
  public var relays: [Bool]
  public var wires: [Wire]
  /// The maximum number of simultaneous Bluetooth links of each machine, or nil for no limit but that of link slots.
  public var bluetoothSlots: Int?

  public init(relays: [Bool], wires: [Wire]) {
    self.relays = relays
    self.wires = wires
  }

  /// A line of relays. Wire n has model n and connects relay n with relay n + 1.
  public static func line(_ models: [WireModel]) -> NetworkPlan {
    NetworkPlan(
      relays: [Bool](repeating: true, count: models.count + 1),
      wires: models.indices.map { Wire($0, $0 + 1, models[$0]) })
  }

  /// All machines in one broadcast domain, called a hall.
  public static func hall(relays: [Bool], _ model: WireModel = .ethernet) -> NetworkPlan {
    var plan = NetworkPlan(relays: relays, wires: [])
    plan.addHall(Array(relays.indices), model, domain: 1)
    return plan
  }

  /// Adds a wire between each two members of a domain, and from each member to each of `guests`.
  private mutating func addHall(_ members: [Int], guests: [Int] = [], _ model: WireModel, domain: UInt32) {
    for (index, one) in members.enumerated() {
      for other in members[..<index] + guests { wires.append(Wire(other, one, model, domain: domain)) }
    }
  }

  /// Adds a Bluetooth LE wire between each two members, so that all members discover each other.
  mutating func addRoom(_ members: [Int]) {
    for (index, one) in members.enumerated() {
      for other in members[..<index] { wires.append(Wire(other, one, .bluetoothLE)) }
    }
  }

  /// Adds `count` broadcast domains in a row. A shared machine connects two neighbouring domains, or a chain of wires
  /// with up to three relays. In half of the domains delays grow with load.
  private mutating func addHalls(_ count: Int, _ random: inout SeededRandom) {
    func any<Element>(_ all: [Element]) -> Element { all[Int(random.below(UInt64(all.count)))] }
    func model() -> WireModel {
      any([WireModel.ethernet, .wifi]).jittery.delayed(byLoad: random.chance(perThousand: 500) ? 5 : 0)
    }
    var last: [Int] = []
    for hall in 0..<count {
      var members = Array(relays.count * hall / count..<relays.count * (hall + 1) / count)
      var guests: [Int] = []
      if !last.isEmpty {
        let box = any(last)
        relays[box] = true
        if random.chance(perThousand: 500) {
          guests = [box]
        } else {
          let between = members.prefix(min(Int(random.below(4)), members.count - 1))
          members.removeFirst(between.count)
          var end = box
          for next in between + [any(members)] {
            relays[next] = true
            wires.append(Wire(end, next, any(WireModel.all).jittery))
            end = next
          }
        }
      }
      addHall(members, guests: guests, model(), domain: UInt32(hall + 1))
      last = members
    }
  }

  /// The random network of a seed. `random` must be a generator for this seed.
  static func random(_ options: Options, _ random: inout SeededRandom) -> NetworkPlan {
    let count = options.nodeCount
    var plan = NetworkPlan(relays: (0..<count).map { _ in random.chance(perThousand: 800) }, wires: [])
    func wire(_ one: Int, _ other: Int) {
      var model = WireModel.all[Int(random.below(UInt64(WireModel.all.count)))].jittery
      if random.chance(perThousand: 150) {
        model.framePayloadBytesMax =
          Limits.framePayloadBytesFloor
          + Int(random.below(UInt64(Limits.framePayloadBytesMax - Limits.framePayloadBytesFloor)))
      }
      plan.wires.append(Wire(one, other, model, announcesID: random.chance(perThousand: 700)))
    }
    switch options.shape {
    case .line: for number in 1..<count { wire(number - 1, number) }
    case .ring: for number in 0..<count where count > 2 || number == 0 { wire(number, (number + 1) % count) }
    case .star:
      // A node has `Limits.linksMax` links. While both ends dial, a node needs two links for each neighbour, so a star
      // has a centre for every `linksMax / 2` machines.
      let arms = Limits.linksMax / 2
      for number in 1..<count { wire((number - 1) / arms, number) }
    case .grid:
      let width = (1...count).first { $0 * $0 >= count } ?? 1
      for number in 0..<count {
        if number % width > 0 { wire(number - 1, number) }
        if number >= width { wire(number - width, number) }
      }
    case .random:
      for number in 1..<count { wire(Int(random.below(UInt64(number))), number) }
      for _ in 0..<random.below(UInt64(count)) {
        let one = Int(random.below(UInt64(count)))
        let other = Int(random.below(UInt64(count)))
        if one != other { wire(one, other) }
      }
    case .hall: plan.addHalls(1, &random)
    case .halls: plan.addHalls(2 + Int(random.below(UInt64(min(count / 4, 8)))), &random)
    case .room:
      let boxes = 2 + Int(random.below(2))
      for number in 0..<count { plan.relays[number] = number < boxes }
      plan.addRoom(Array(0..<count))
      plan.bluetoothSlots = boxes + 3 + Int(random.below(4))
      return plan
    }
    // Some pairs of machines have a second wire, with another bearer or another address.
    let second: UInt64 = !options.shape.isOfHalls ? 200 : count > 32 ? 2 : 20
    for single in plan.wires where random.chance(perThousand: second) {
      wire(single.ends.0, single.ends.1)
      plan.wires[plan.wires.count - 1].isLatent = options.faults.contains(.handOver) && random.chance(perThousand: 800)
    }
    return plan
  }
}
