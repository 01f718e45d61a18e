import Channel
import Frame
import Journal
import Mesh
import Primitives
import Seal

/// The place that a newcomer gets in a table.
enum Place {
  /// A free place.
  case free
  /// The place of another association, which is evicted.
  case taken(from: Association)
  /// No place: nothing can be evicted, and the newcomer is refused.
  case none
}

/// Places for handshakes and associations, shared by the links over which the peers are reached.
///
/// Ids cost nothing, so a place is charged to a link, whose neighbour has proved its key. This is the link of the frame
/// that opened the association, or the first link of the route if this node needs it. The charge moves to the link of
/// the last frame that could be decrypted. After the link has closed it moves to that of the next route.
extension Associations {
  /// A channel that was unused for this time and has nothing undelivered can be evicted by any newcomer.
  static let idleTime = TimeSpan.seconds(10)
  /// So can one whose peer has not proved its key after this time, even if messages wait for it.
  static let unprovenTime = TimeSpan.seconds(5)

  /// The place for a handshake with `peer`, charged to the link of `holder`.
  ///
  /// Unknown peers share the unreserved places, proven peers all places, and each link gets at most as much as is free
  /// afterwards. A peer that the operator pinned takes any free place. In a full table the first choice for eviction,
  /// of any standing, is a handshake without a route. Next come overdue ones, and those of the link with the most
  /// places if it would still have as many as the newcomer's.
  ///
  /// There are two exceptions. A handshake of a pinned peer is evicted for others only if it is overdue. Known peers
  /// that hold no more than the reserve are evicted for unknown ones only if they are overdue.
  func handshakePlace(for peer: NodeID, _ holder: Int, _ standing: (Association?) -> Standing, now: Instant) -> Place {
    var share = FairShare(capacity: SealLimits.handshakesMax)
    var known = 0
    for association in all where association.peer != peer && association.handshakeProgressAt != nil {
      share.take(1, by: association.holder)
      if standing(association) > .stranger { known += 1 }
    }
    let own = share.held(by: holder) + 1
    let rank = standing(nil)
    switch rank {
    case .stranger: if own + SealLimits.handshakesReserved <= share.free { return .free }
    case .proven: if own <= share.free { return .free }
    case .pinned: if share.free > 0 { return .free }
    }
    let isBeyondReserve = rank > .stranger || known > SealLimits.handshakesReserved
    var found: (association: Association, order: Order)?
    for association in all where association.peer != peer {
      guard let seal = association.protection.seal, let progressAt = seal.progressAt else { continue }
      let held = share.held(by: association.holder)
      let other = standing(association)
      let isCut = association.route == nil
      let mayYield: Bool
      switch other {
      case .stranger: mayYield = held > own || rank == .pinned
      case .proven: mayYield = held > own && isBeyondReserve || rank == .pinned
      case .pinned: mayYield = held > own && rank == .pinned
      }
      guard mayYield || isCut || seal.isHandshakeOverdue(now: now) else { continue }
      let order = Order(group: isCut ? 0 : 1, held: held, rank: other.rawValue, usedAt: progressAt)
      if found == nil || order < found!.order { found = (association, order) }
    }
    return found.map { .taken(from: $0.association) } ?? .none
  }

  /// The place for an association with `peer`, charged to the link of `holder`.
  ///
  /// In a full table an association of the largest holder is evicted while that holder has more than the newcomer's
  /// link would have. Otherwise it is one that is idle or whose peer proves nothing. A holder's channels of lower
  /// standing go first, among them those that carry nothing, and then the one unused for longest. A pinned peer with
  /// undelivered messages goes last. An association with unread messages stays, but messages held here for their turn
  /// or their link's budget do not protect one of the largest holder.
  ///
  /// `isClaimed` means that only a forgeable frame names the newcomer. A channel in use is then evicted only if its
  /// link holds more than half of the places.
  func place(
    for peer: NodeID, _ holder: Int, isClaimed: Bool = false, _ standing: (Association?) -> Standing, now: Instant
  ) -> Place {
    if all.count < Limits.channelsMax { return .free }
    var share = FairShare(capacity: Limits.channelsMax)
    for association in all { share.take(1, by: association.holder) }
    let own = share.held(by: holder) + 1
    let newcomer = standing(nil)
    var found: (association: Association, order: Order)?
    for association in all {
      let rank = standing(association)
      let held = share.held(by: association.holder)
      let isUnread = association.hasUnreadMessages
      if isUnread && (held <= own || association.awaitsApplication) { continue }
      let isInUse = !association.isEvictable && !association.isUseless(now)
      if isClaimed && isInUse && 2 * held <= Limits.channelsMax { continue }
      let isCarrying = association.channel.hasUnfinishedSends
      let group: Int
      if association.isEvictable {
        group = 0
      } else if held > own {
        group = 1
      } else if held < own && association.holder != holder {
        continue
      } else if (rank < .pinned || newcomer == .pinned) && association.isUseless(now) {
        group = 2
      } else if rank < newcomer && newcomer == .pinned {
        group = 3
      } else {
        continue
      }
      let order = Order(
        isLast: rank == .pinned && isCarrying || isUnread, group: group, held: held,
        rank: 2 * rank.rawValue + (isCarrying ? 1 : 0), usedAt: association.usedAt)
      if found == nil || order < found!.order { found = (association, order) }
    }
    return found.map { .taken(from: $0.association) } ?? .none
  }

  /// The order of eviction.
  private struct Order {
    var isLast = false
    var group: Int
    var held: Int
    var rank: Int
    var usedAt: Instant

    static func < (left: Order, right: Order) -> Bool {
      if left.isLast != right.isLast { return right.isLast }
      if left.group != right.group { return left.group < right.group }
      if left.held != right.held { return left.held > right.held }
      if left.rank != right.rank { return left.rank < right.rank }
      return left.usedAt < right.usedAt
    }
  }
}

extension Association {
  /// The link to which its place and its handshake are charged.
  var holder: Int { ingress ?? FairShare.ownHolder }

  /// When its handshake last made progress, or nil without one.
  var handshakeProgressAt: Instant? { protection.seal?.progressAt }

  /// Whether it carries nothing and was unused for long, or its peer does not prove its key.
  fileprivate func isUseless(_ now: Instant) -> Bool {
    if !channel.hasUnfinishedSends { return usedAt + Associations.idleTime <= now }
    guard let seal = protection.seal, !seal.isOpen else { return false }
    return usedAt + Associations.unprovenTime <= now
  }
}

extension Node {
  /// The standing of a peer. `isSealed` is whether its frames are encrypted.
  func standing(of peer: NodeID, isSealed: Bool) -> Standing {
    if !isSealed { return .stranger }
    if trust?.isPinnedByOperator(peer) ?? false { return .pinned }
    return provenPeers.contains(peer) ? .proven : .stranger
  }

  private func standing(of association: Association) -> Standing {
    standing(of: association.peer, isSealed: association.protection.seal != nil)
  }

  /// Takes a place for a handshake with `peer`, charged to the link of `holder`. Returns false if there is none.
  func takeHandshakePlace(for peer: NodeID, _ holder: Int, _ now: Instant) -> Bool {
    let newcomer = standing(of: peer, isSealed: true)
    switch associations.handshakePlace(for: peer, holder, { $0.map { standing(of: $0) } ?? newcomer }, now: now) {
    case .free: return true
    case .none: return false
    case .taken(let other):
      guard let seal = other.protection.seal else { preconditionFailure("a handshake without a seal") }
      let byteCount = seal.displaceHandshake(into: sealScratch, now: now)
      if byteCount > 0 { sendHandshake(byteCount, to: other) }
      isPumpDue = true
      return true
    }
  }

  /// Takes a place for an association with `peer`, charged to the link of `holder`. Returns false if there is none.
  func takePlace(for peer: NodeID, _ holder: Int, isSealed: Bool, isClaimed: Bool, _ now: Instant) -> Bool {
    let newcomer = standing(of: peer, isSealed: isSealed)
    let place = associations.place(
      for: peer, holder, isClaimed: isClaimed, { $0.map { standing(of: $0) } ?? newcomer }, now: now)
    switch place {
    case .free: return true
    case .none:
      journal.record(
        .notice, .channelsFull, at: now, UInt64(associations.all.count), UInt64(Limits.channelsMax), node: peer)
      return false
    case .taken(let other):
      endSession(with: other, .busy, now)
      journal.record(.info, .channelClosed, at: now, node: other.peer)
      associations.remove(other)
      return true
    }
  }

  /// Whether a session with a peer that has none would find a place now.
  func hasPlace(for peer: NodeID, _ now: Instant) -> Bool {
    let holder = mesh.route(to: peer).map { Int($0.link) } ?? FairShare.ownHolder
    let newcomer = standing(of: peer, isSealed: true)
    if associations.association(with: peer) == nil,
      case .none = associations.place(for: peer, holder, { $0.map { standing(of: $0) } ?? newcomer }, now: now)
    {
      return false
    }
    if case .none = associations.handshakePlace(
      for: peer, holder, { $0.map { standing(of: $0) } ?? newcomer }, now: now)
    {
      return false
    }
    return true
  }
}
