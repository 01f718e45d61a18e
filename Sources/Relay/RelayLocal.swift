import Channel
import Configuration
import ControlSocket
import Frame
import Journal
import LocalAPI
import Log
import Node
import Primitives
import Reactor
import Session
import Text
import Trust

/// The part of the node that the local API uses for its clients.
final class LocalHost: LocalNode {
  private let node: Node
  private let trust: TrustKeeper
  private let cryptography: any SessionCryptography

  init(_ node: Node, _ trust: TrustKeeper, _ cryptography: any SessionCryptography) {
    self.node = node
    self.trust = trust
    self.cryptography = cryptography
  }

  var sessions: Sessions { node.sessions }

  var name: [UInt8] { node.settings.name.array }

  func peer(_ id: NodeID) -> LocalPeer? {
    if id == node.settings.id { return LocalPeer(name: name, hops: 0, isVerified: true) }
    guard let peer = node.peer(id) else { return nil }
    return LocalPeer(name: peer.name.array, hops: peer.hops, isVerified: trust.isPinned(id))
  }

  func certificates(of id: NodeID) -> [[UInt8]]? { node.certificates(of: id) }

  func endpoint(user: UInt32, type: [UInt8], instance: [UInt8]) -> UInt32 {
    MemberAddress.endpoint(user: user, type: type, instance: instance, cryptography)
  }

  func advertise(_ service: Service, now: Instant) throws(SessionError) { try node.advertise(service, now: now) }

  func withdraw(_ endpoint: UInt32, now: Instant) { node.withdraw(endpoint, now: now) }

  func send(
    _ data: [UInt8], in session: SessionHandle, to member: MemberAddress, lane: Lane, now: Instant
  ) throws(SessionError) -> SessionMessageID {
    try node.sendInSession(data, session, to: [member], lane: lane, now: now)
  }

  func sendUnreliably(
    _ data: [UInt8], in session: SessionHandle, to member: MemberAddress, now: Instant
  ) throws(SessionError) {
    try node.sendUnreliablyInSession(data, session, to: [member], now: now)
  }
}

extension DisplayName {
  fileprivate var array: [UInt8] { (0..<byteCount).map { byte($0) } }
}

extension Relay {
  /// Starts the local API if the configuration enables it.
  func startLocalAPI() throws(StartError) {
    guard configuration.applications.isEnabled else { return }
    let granted = configuration.applications.serviceGroups
    let clients = ClientRecords(
      LocalHost(node, trust, cryptography),
      restrictions: granted.map { LocalRestriction(type: Array($0.type.utf8), group: $0.group) })
    var access = ClientServer.Access.fileGroup
    let group = configuration.applications.group
    if !group.utf8.isEmpty {
      let number = groupID(group)
      access = .members(of: group, number)
      if number == nil {
        journal.report(
          .warning, at: loop.now, "api",
          "there is no group “\(group)”: until a restart only root and the daemon's user may connect")
      }
    }
    do throws(AccessError) {
      local = try ClientServer(
        loop, path: configuration.localSocketPath, journal: journal, clients, access: access,
        groups: granted.map { $0.group })
    } catch {
      throw StartError(error.text)
    }
  }
}
