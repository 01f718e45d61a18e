import Frame
import Primitives
import TestSupport

@testable import Mesh

let start = Instant.zero + .seconds(1000)

/// The mesh of one node, with numbered identities. Number 0 is this node, and all other numbers are other nodes.
final class Bench {
  let memory = Borrowed(Mesh.byteCount)
  var mesh: Mesh
  static let identities = (0..<Limits.nodesMax + 44).map { Identity(UInt64($0)) }

  init() { mesh = Mesh(local: Self.identities[0].id, memory.bytes) }

  func id(_ number: Int) -> NodeID { Self.identities[number].id }

  func link(_ slot: Int, to number: Int, _ bearer: BearerKind = .ethernet, payloadBytesMax: Int = 16_640) {
    mesh.setLink(slot, peer: id(number), bearer: bearer, cost: bearer.cost, payloadBytesMax: payloadBytesMax)
  }

  struct Side {
    var number: Int
    var bearer = BearerKind.ethernet
    var payloadBytesMax = 16_640
  }

  /// Receives a topology advertisement in which node `number` lists links to `others`.
  func state(
    _ number: Int, relays: Bool = true, _ others: [Side], epoch: UInt64 = 1, sequence: UInt64 = 1,
    lifetime: UInt16 = 180, age: UInt64 = 0, from slot: Int = 63, at now: Instant = start
  ) {
    let neighbours = others.map {
      Neighbour(
        node: id($0.number), cost: $0.bearer.cost, payloadBytesMax: UInt16($0.payloadBytesMax), bearer: $0.bearer)
    }
    take(
      number, .topology, topologyBody(relays: relays, neighbours), epoch, sequence, lifetime, age: age, from: slot, now)
  }

  func introduce(
    _ number: Int, epoch: UInt64 = 1, sequence: UInt64 = 1, lifetime: UInt16 = 180, at now: Instant = start
  ) {
    take(number, .profile, profileBody(), epoch, sequence, lifetime, now)
  }

  private func take(
    _ number: Int, _ kind: AdvertisementKind, _ body: [UInt8], _ epoch: UInt64, _ sequence: UInt64, _ lifetime: UInt16,
    age: UInt64 = 0, from slot: Int = 63, _ now: Instant
  ) {
    let bytes = advertisement(
      of: Self.identities[number], kind, epoch: epoch, sequence: sequence, lifetimeSeconds: lifetime, body: body)
    guard let view = try? AdvertisementView(bytes.span.bytes) else { preconditionFailure("a bad advertisement") }
    if mesh.assess(id(number), view, age: age, now: now) == .new {
      mesh.install(id(number), view, bytes.span.bytes, age: age, from: slot, now: now)
    }
  }

  func assess(
    _ number: Int, _ kind: AdvertisementKind = .topology, epoch: UInt64, sequence: UInt64, age: UInt64 = 0,
    at now: Instant = start
  ) -> Mesh.Assessment {
    let body = kind == .topology ? topologyBody([]) : profileBody()
    let bytes = advertisement(of: Self.identities[number], kind, epoch: epoch, sequence: sequence, body: body)
    guard let view = try? AdvertisementView(bytes.span.bytes) else { preconditionFailure("a bad advertisement") }
    return mesh.assess(id(number), view, age: age, now: now)
  }

  func route(to number: Int) -> Route? {
    mesh.computeRoutes()
    return mesh.route(to: id(number))
  }

  func bytes(of number: Int, _ kind: AdvertisementKind) -> [UInt8]? {
    guard let index = mesh.index(of: id(number)), let span = mesh.advertisement(of: index, kind) else { return nil }
    return span.array
  }

  /// Receives an advertisement of node `number` over the link at `slot`. This node already has the same advertisement,
  /// or a newer one.
  func receiveKnown(
    _ number: Int, _ body: [UInt8] = topologyBody([]), sequence: UInt64, lifetime: UInt16 = 180, age: UInt64 = 0,
    from slot: Int, at now: Instant = start
  ) {
    let bytes = advertisement(
      of: Self.identities[number], .topology, sequence: sequence, lifetimeSeconds: lifetime, body: body)
    guard let view = try? AdvertisementView(bytes.span.bytes) else { preconditionFailure("a bad advertisement") }
    mesh.neighbour(on: slot, holds: view, bytes.span.bytes, of: id(number), age: age, now: now)
  }

  /// Installs a profile of this node itself.
  func makeOwn(sequence: UInt64) {
    let bytes = advertisement(of: Self.identities[0], .profile, sequence: sequence, body: profileBody())
    guard let view = try? AdvertisementView(bytes.span.bytes) else { preconditionFailure("a bad advertisement") }
    mesh.installOwn(view, bytes.span.bytes)
  }

  /// Removes all advertisements that are still to be sent over the link at `slot`. Returns each as the number of its
  /// node and its kind.
  func told(_ slot: Int) -> [String] {
    var all: [String] = []
    while let (index, kind) = mesh.nextUnsent(slot) {
      let number = Self.identities.firstIndex { $0.id == mesh.node(at: index) } ?? -1
      all.append("\(number) \(kind)")
    }
    return all
  }
}
