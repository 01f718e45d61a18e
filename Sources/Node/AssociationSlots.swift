import Channel
import Frame
import Journal
import Mesh
import Primitives
import Seal

/// The slot that a newcomer gets in the table of handshakes or of associations.
enum SlotChoice {
  /// A free slot.
  case free
  /// The slot of another association, which is evicted or loses its handshake.
  case taken(from: Association)
  /// No slot. Nothing can be evicted, and the newcomer is refused.
  case none
}

/// The slots for handshakes and associations. The links over which the peers are reached share the slots.
///
/// Ids cost nothing, so a slot is charged to a link, whose neighbour has proved its key. The charged link is the link
/// whose frame opened the association or, if this node opened the association, the first link of the route. When a
/// frame of the peer can be decrypted, the charge moves to the link of that frame. When the charged link closes, the
/// charge of its slots moves to the first link of the next route.
extension Associations {
  /// Any newcomer may evict a channel that was unused for this time and has nothing undelivered.
  static let idleTime = TimeSpan.seconds(10)
  /// Any newcomer may evict a channel that was unused for this time and whose peer has not proved its key. Messages
  /// that wait for the peer do not prevent the eviction.
  static let unprovenTime = TimeSpan.seconds(5)

  /// Chooses the slot for a handshake with `peer`, charged to `holder`: the slot of a link, or `FairShare.ownHolder`.
  /// `standing` returns the admission class of an association's peer or, for nil, of the newcomer.
  ///
  /// Strangers share the unreserved slots, proven peers share all slots. With the new slot, the charged link may hold
  /// at most as many slots as are free for that class. A peer that the operator pinned gets any free slot, and can
  /// evict the handshake of any peer that the operator did not pin.
  ///
  /// If the newcomer gets no free slot, a handshake is evicted. A handshake without a route is evicted first, whatever
  /// its class. The second choice are overdue handshakes, and handshakes of a link that would still hold as many slots
  /// as the newcomer's link. Among these handshakes, the link with the most slots loses a slot.
  ///
  /// There are two exceptions. A handshake of a pinned peer is evicted for peers of other classes only if it is overdue
  /// or has no route. While known peers hold no more than the reserve, the same applies to their handshakes when the
  /// newcomer is a stranger.
  func chooseHandshakeSlot(
    for peer: NodeID, _ holder: Int, _ standing: (Association?) -> Standing, now: Instant
  ) -> SlotChoice {
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

  /// Chooses the slot for an association with `peer`, charged to `holder`. `holder` and `standing` are as for
  /// `chooseHandshakeSlot`.
  ///
  /// In a full table an association is evicted, by the first of these rules that applies to an association:
  /// - The eviction of the association does no harm (`isEvictable`).
  /// - The association's link would still hold at least as many slots as the newcomer's link.
  /// - The association is idle or its peer proves no key (`isUseless`). The association's link is the newcomer's, or
  ///   holds as many slots as the newcomer's link would hold. A pinned peer's association is evicted by this rule only
  ///   for another pinned peer.
  /// - The operator pinned the newcomer and not the association's peer. The condition on the link is the same as for an
  ///   idle association.
  ///
  /// Among the candidates of one rule, the link with the most slots loses a slot. Associations of that link with a
  /// lower admission class are evicted first, then those without undelivered messages, then the one unused for longest.
  ///
  /// An association of a pinned peer with undelivered messages is evicted last, as is one with unread messages. An
  /// association stays if the application was notified of a message and has not read it. Unread messages that this node
  /// holds back protect an association too, unless its link holds more slots than the newcomer's link would hold.
  ///
  /// `isClaimed` means that only a forgeable frame names the newcomer. For a newcomer in a forgeable frame, a channel
  /// in use is evicted only if its link holds more than half of all slots.
  func chooseAssociationSlot(
    for peer: NodeID, _ holder: Int, isClaimed: Bool = false, _ standing: (Association?) -> Standing, now: Instant
  ) -> SlotChoice {
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

  /// The order of eviction. The association with the lowest value is evicted.
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
  /// The slot of the link to which the association and its handshake are charged, or `FairShare.ownHolder`.
  var holder: Int { ingress ?? FairShare.ownHolder }

  /// When the association's handshake last made progress, or nil without a handshake.
  var handshakeProgressAt: Instant? { protection.seal?.progressAt }

  /// Whether the association was unused for `idleTime` and has nothing undelivered. Also true if the association was
  /// unused for `unprovenTime` and its peer has not proved its key.
  fileprivate func isUseless(_ now: Instant) -> Bool {
    if !channel.hasUnfinishedSends { return usedAt + Associations.idleTime <= now }
    guard let seal = protection.seal, !seal.isOpen else { return false }
    return usedAt + Associations.unprovenTime <= now
  }
}

extension Node {
  /// The admission class of a peer. `isSealed` is whether the peer's frames are encrypted.
  func standing(of peer: NodeID, isSealed: Bool) -> Standing {
    if !isSealed { return .stranger }
    if trust?.isPinnedByOperator(peer) ?? false { return .pinned }
    return provenPeers.contains(peer) ? .proven : .stranger
  }

  private func standing(of association: Association) -> Standing {
    standing(of: association.peer, isSealed: association.protection.seal != nil)
  }

  /// Takes a slot for a handshake with `peer`, charged to `holder`, and evicts another handshake if needed. Returns
  /// false if there is no slot.
  func takeHandshakeSlot(for peer: NodeID, _ holder: Int, _ now: Instant) -> Bool {
    let newcomer = standing(of: peer, isSealed: true)
    switch associations.chooseHandshakeSlot(for: peer, holder, { $0.map { standing(of: $0) } ?? newcomer }, now: now) {
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

  /// Takes a slot for an association with `peer`, charged to `holder`, and evicts another association if needed.
  /// Returns false if there is no slot.
  func takeAssociationSlot(for peer: NodeID, _ holder: Int, isSealed: Bool, isClaimed: Bool, _ now: Instant) -> Bool {
    let newcomer = standing(of: peer, isSealed: isSealed)
    let choice = associations.chooseAssociationSlot(
      for: peer, holder, isClaimed: isClaimed, { $0.map { standing(of: $0) } ?? newcomer }, now: now)
    switch choice {
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

  /// Whether an encrypted session with a peer that has none would find slots for its association and its handshake now.
  func hasSlots(for peer: NodeID, _ now: Instant) -> Bool {
    let holder = mesh.route(to: peer).map { Int($0.link) } ?? FairShare.ownHolder
    let newcomer = standing(of: peer, isSealed: true)
    if associations.association(with: peer) == nil,
      case .none = associations.chooseAssociationSlot(
        for: peer, holder, { $0.map { standing(of: $0) } ?? newcomer }, now: now)
    {
      return false
    }
    if case .none = associations.chooseHandshakeSlot(
      for: peer, holder, { $0.map { standing(of: $0) } ?? newcomer }, now: now)
    {
      return false
    }
    return true
  }
}
