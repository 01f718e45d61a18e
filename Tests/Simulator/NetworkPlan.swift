import Primitives

/// The machines of a network and the wires between them.
public struct NetworkPlan {
  /// A wire between two machines, by their numbers.
  public struct Wire {
    public var ends: (Int, Int)
    public var model: WireModel
    /// Discovery tells the id of the other end before anybody dialled.
    public var announcesID: Bool
    /// Out of reach at first: it comes and goes with the fault `handOver`.
    public var isLatent = false

    public init(_ one: Int, _ other: Int, _ model: WireModel, announcesID: Bool = true) {
      ends = (one, other)
      self.model = model
      self.announcesID = announcesID
    }
  }

  /// Whether each machine forwards for others.
  public var relays: [Bool]
  public var wires: [Wire]

  public init(relays: [Bool], wires: [Wire]) {
    self.relays = relays
    self.wires = wires
  }

  /// Machines 0 … n in a row, one wire of each model after the other, all of them relays.
  public static func line(_ models: [WireModel]) -> NetworkPlan {
    NetworkPlan(
      relays: [Bool](repeating: true, count: models.count + 1),
      wires: models.indices.map { Wire($0, $0 + 1, models[$0]) })
  }

  /// The network of a seed.
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
      // A large one has several middles: a node holds `Limits.linksMax` links, and two for a moment where both ends
      // dial.
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
    }
    // Some pairs have a second wire: over another bearer, or under another address.
    for single in plan.wires where random.chance(perThousand: 200) {
      wire(single.ends.0, single.ends.1)
      plan.wires[plan.wires.count - 1].isLatent = options.faults.contains(.handOver) && random.chance(perThousand: 800)
    }
    return plan
  }
}
