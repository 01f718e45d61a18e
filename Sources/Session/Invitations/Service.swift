import Frame
import Primitives

/// A service of an application. Other applications find the service and invite its application into sessions.
public struct Service: Equatable, Sendable {
  /// Identifies the service on its node; see `MemberAddress.endpoint`.
  public var endpoint: UInt32
  /// The type of the service; see `isServiceType`.
  public var type: [UInt8]
  /// The discovery info: `key=value` pairs, see `isInfoPair`.
  public var info: [[UInt8]]

  public init(endpoint: UInt32, type: [UInt8], info: [[UInt8]] = []) {
    self.endpoint = endpoint
    self.type = type
    self.info = info
  }

  /// The size of the service in an advertisement, in bytes.
  public var byteCount: Int { 4 + 1 + type.count + 1 + 2 + info.reduce(0) { $0 + 1 + $1.count } }

  init(_ view: borrowing ServiceView) {
    endpoint = view.endpoint
    type = [UInt8](copying: view.type)
    var pairs: [[UInt8]] = []
    view.info.forEach { pairs.append([UInt8](copying: $0)) }
    info = pairs
  }

  /// The services in the body of an advertisement; empty if the body is not valid.
  public static func all(in body: [UInt8]) -> [Service] {
    guard let view = try? ServicesView(body.span.bytes) else { return [] }
    var services: [Service] = []
    view.forEach { services.append(Service($0)) }
    return services
  }

  /// The body of an advertisement, in the format of `ServicesView`; nil if the services are not valid or do not fit.
  public static func advertisementBody(_ services: [Service]) -> [UInt8]? {
    guard services.count <= Limits.servicesMax else { return nil }
    var body = [UInt8(services.count)]
    for service in services.inOrder({ $0.endpoint < $1.endpoint }) {
      guard service.type.count <= Limits.serviceTypeBytesMax, service.info.count <= Limits.infoPairsMax,
        service.info.allSatisfy({ $0.count <= Limits.infoPairBytesMax })
      else { return nil }
      body.append(bigEndian: service.endpoint)
      body.append(UInt8(service.type.count))
      body += service.type
      body.append(UInt8(service.info.count))
      body.append(bigEndian: UInt16(service.info.reduce(0) { $0 + 1 + $1.count }))
      for pair in service.info {
        body.append(UInt8(pair.count))
        body += pair
      }
    }
    guard body.count <= Advertisement.bodyBytesMax, (try? ServicesView(body.span.bytes)) != nil else { return nil }
    return body
  }
}

/// Local and remote services.
extension Sessions {
  /// The body of this node's services advertisement. `advertise` and `withdraw` change it.
  public var servicesAdvertisement: [UInt8] { Service.advertisementBody(services) ?? [0] }

  /// Offers a service, or changes the discovery info of an offered one. Throws `.invalid` if the service is not valid.
  /// Throws `.full` if there are 16 services already, or if all services together do not fit one advertisement.
  public func advertise(_ service: Service) throws(SessionError) {
    guard Service.advertisementBody([service]) != nil else { throw .invalid }
    let all = services.filter { $0.endpoint != service.endpoint } + [service]
    guard Service.advertisementBody(all) != nil else { throw .full }
    services = all
  }

  /// Withdraws a service. Invitations to the service that wait for the application are answered with `.noService`.
  public func withdraw(_ endpoint: UInt32, now: Instant) {
    services.removeAll { $0.endpoint == endpoint }
    for index in incoming.indices where incoming[index].to == endpoint && incoming[index].phase == .asked {
      end(&incoming[index], .noService, answering: .noService, now)
    }
  }

  /// Sets the services of a reachable node. `body` is the body of its services advertisement, in the format of
  /// `ServicesView`; nil if the node has none or is unreachable.
  public func peerServices(_ node: NodeID, _ body: [UInt8]?) {
    let known = sightings.firstIndex { $0.node == node }
    let former = known.map { Service.all(in: sightings[$0].body) } ?? []
    let now = body.map { Service.all(in: $0) } ?? []
    if let known { sightings.remove(at: known) }
    if let body, !now.isEmpty { sightings.append((node, body)) }
    for service in former where !now.contains(where: { $0.endpoint == service.endpoint }) {
      tell(.serviceLost(MemberAddress(node: node, endpoint: service.endpoint)))
    }
    for service in now {
      let address = MemberAddress(node: node, endpoint: service.endpoint)
      guard let known = former.first(where: { $0.endpoint == service.endpoint }) else {
        tell(.serviceFound(address, service))
        continue
      }
      if known != service { tell(.serviceChanged(address, service)) }
    }
  }

  /// Reports the services of a node as found again. After a restart the node may offer the same services before its
  /// absence was noticed. Sessions with auto-join must then add the services once more.
  public func tellServices(of node: NodeID) {
    for service in services(of: node) {
      tell(.serviceFound(MemberAddress(node: node, endpoint: service.endpoint), service))
    }
  }

  /// The services of a reachable node, or of this node.
  public func services(of node: NodeID) -> [Service] {
    if node == local { return services }
    return sightings.first { $0.node == node }.map { Service.all(in: $0.body) } ?? []
  }

  /// All services of reachable nodes.
  public var servicesInReach: [(address: MemberAddress, service: Service)] {
    sightings.flatMap { sighting in
      Service.all(in: sighting.body).map { (MemberAddress(node: sighting.node, endpoint: $0.endpoint), $0) }
    }
  }
}
