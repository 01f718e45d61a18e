import Primitives

/// The services of local applications, and those of reachable nodes.
struct Services {
  /// The difference between two reports of a node's services.
  enum Change {
    case lost(endpoint: UInt32)
    case found(Service)
    case changed(Service)
  }

  /// The services that other nodes can invite into sessions.
  private(set) var own: [Service] = []
  /// The services of reachable nodes, as advertised.
  private var remote: [(node: NodeID, body: [UInt8])] = []

  func isOffered(_ endpoint: UInt32) -> Bool { own.contains { $0.endpoint == endpoint } }

  /// Offers a service, or changes the discovery info of an offered one. Throws `.invalid` if the service is not valid,
  /// and `.full` if it does not fit the advertisement.
  mutating func offer(_ service: Service) throws(SessionError) {
    guard Service.advertisementBody([service]) != nil else { throw .invalid }
    let all = own.filter { $0.endpoint != service.endpoint } + [service]
    guard Service.advertisementBody(all) != nil else { throw .full }
    own = all
  }

  mutating func withdraw(_ endpoint: UInt32) { own.removeAll { $0.endpoint == endpoint } }

  /// Sets the services of a node. `body` is nil if the node has no services or is unreachable. Returns the lost
  /// services first.
  mutating func set(_ body: [UInt8]?, of node: NodeID) -> [Change] {
    let known = remote.firstIndex { $0.node == node }
    let former = known.map { Service.all(in: remote[$0].body) } ?? []
    let now = body.map { Service.all(in: $0) } ?? []
    if let known { remote.remove(at: known) }
    if let body, !now.isEmpty { remote.append((node, body)) }
    var changes: [Change] = []
    for service in former where !now.contains(where: { $0.endpoint == service.endpoint }) {
      changes.append(.lost(endpoint: service.endpoint))
    }
    for service in now {
      guard let known = former.first(where: { $0.endpoint == service.endpoint }) else {
        changes.append(.found(service))
        continue
      }
      if known != service { changes.append(.changed(service)) }
    }
    return changes
  }

  /// The services of a reachable node.
  func services(of node: NodeID) -> [Service] {
    remote.first { $0.node == node }.map { Service.all(in: $0.body) } ?? []
  }

  /// All services of reachable nodes.
  var all: [(address: MemberAddress, service: Service)] {
    remote.flatMap { node, body in
      Service.all(in: body).map { (MemberAddress(node: node, endpoint: $0.endpoint), $0) }
    }
  }
}

extension Sessions {
  /// The body of this node's services advertisement. `advertise` and `withdraw` change this body.
  public var servicesAdvertisement: [UInt8] { Service.advertisementBody(services.own) ?? [0] }

  /// Offers a service, or changes the discovery info of an offered one. Throws `.invalid` if the service is not valid.
  /// Throws `.full` if there are 16 services already, or if all services together do not fit one advertisement.
  public func advertise(_ service: Service) throws(SessionError) { try services.offer(service) }

  /// Withdraws a service. Invitations to the service that wait for the application are answered with `.noService`.
  public func withdraw(_ endpoint: UInt32, now: Instant) {
    services.withdraw(endpoint)
    endIncoming(.noService, answering: .noService, now) { $0.to == endpoint && $0.phase == .asked }
  }

  /// Sets the services of a reachable node. `body` is the body of its services advertisement, in the format of
  /// `ServicesView`; nil if the node has none or is unreachable.
  public func peerServices(_ node: NodeID, _ body: [UInt8]?) {
    for change in services.set(body, of: node) {
      switch change {
      case .lost(let endpoint): emit(.serviceLost(MemberAddress(node: node, endpoint: endpoint)))
      case .found(let service): emit(.serviceFound(MemberAddress(node: node, endpoint: service.endpoint), service))
      case .changed(let service):
        emit(.serviceChanged(MemberAddress(node: node, endpoint: service.endpoint), service))
      }
    }
  }

  /// Reports the services of a node as found again. After a restart the node may offer the same services before its
  /// absence was noticed. Sessions with auto-join must then add the services once more.
  public func reportServices(of node: NodeID) {
    for service in services(of: node) {
      emit(.serviceFound(MemberAddress(node: node, endpoint: service.endpoint), service))
    }
  }

  /// The services of a reachable node, or of this node.
  public func services(of node: NodeID) -> [Service] {
    node == local ? services.own : services.services(of: node)
  }
}
