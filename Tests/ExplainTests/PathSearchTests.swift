import Frame
import Primitives
import Testing

@testable import Explain

// Relays 0 to 17 form a ring: cheap links from each relay to the next, and one dear link between relays 17 and 0.

private func id(_ number: Int) -> NodeID { NodeID(high: UInt64(number) + 1, low: 7) }

private func ring() -> PathSearch {
  let nodes = (0...17).map { number in
    var node = NodeFacts(id: id(number), name: "relay")
    node.relays = true
    node.neighbours = [(number + 17) % 18, (number + 1) % 18].map { other in
      let isDear = Set([number, other]) == [0, 17]
      return Neighbour(
        node: id(other), cost: isDear ? 8000 : 10, payloadBytesMax: 16_640, bearer: isDear ? .bluetoothLE : .ethernet)
    }
    return node
  }
  return PathSearch(nodes, ends: [])
}

struct PathSearchTests {
  @Test func `the cheapest path is found up to the hop limit of a frame`() {
    #expect(ring().path(from: id(0), to: id(16))?.map(\.node) == (1...16).map { id($0) })
  }

  @Test func `a node beyond the hop limit of the cheapest path is found over the fewest links`() {
    #expect(ring().path(from: id(0), to: id(17))?.map(\.bearer) == [.bluetoothLE])
  }

  @Test func `a relay on a path with the fewest links uses its own cheapest path`() {
    // From relay 0 the cheapest path to the pendant node has 17 links. Relay 17 is on the path with the fewest links,
    // and has a cheap path to it.
    var nodes = (0...17).map { number in
      var node = NodeFacts(id: id(number), name: "relay")
      node.relays = true
      return node
    }
    func link(_ one: Int, _ other: Int, cost: UInt16) {
      nodes[one].neighbours.append(Neighbour(node: id(other), cost: cost, payloadBytesMax: 16_640, bearer: .ethernet))
      nodes[other].neighbours.append(Neighbour(node: id(one), cost: cost, payloadBytesMax: 16_640, bearer: .ethernet))
    }
    for number in 0..<17 { link(number, number + 1, cost: 10) }
    link(0, 14, cost: 9000)
    link(14, 17, cost: 9000)
    #expect(PathSearch(nodes, ends: []).path(from: id(0), to: id(17))?.map(\.node) == [14, 15, 16, 17].map { id($0) })
  }

  @Test func `a node beyond sixteen links has no path`() {
    let nodes = (0...17).map { number in
      var node = NodeFacts(id: id(number), name: "relay")
      node.relays = true
      node.neighbours = [number - 1, number + 1].filter { (0...17).contains($0) }.map {
        Neighbour(node: id($0), cost: 10, payloadBytesMax: 16_640, bearer: .ethernet)
      }
      return node
    }
    let search = PathSearch(nodes, ends: [])
    #expect(search.path(from: id(0), to: id(16))?.count == 16 && search.path(from: id(0), to: id(17)) == nil)
  }
}
