import Primitives

/// Chooses the nodes with which this node links over Bluetooth LE. A radio supports few connections, and not all nodes
/// are in range of each other. A relay forwards for others; a leaf is a node that does not.
///
/// - A leaf without a relay dials the relay in range that it ranks first, and keeps that relay. This leaf links with a
///   further relay, or with a leaf, only if no route leads to that node.
/// - Leaves without any relay in range link with each other after a delay, because a relay may appear.
/// - A relay links with every relay. A relay dials a leaf only if the leaf did not dial the relay and no route leads to
///   the leaf.
///
/// Bluetooth classic is a fallback. A node found by an inquiry is dialled when no route has led to it for a short time.
/// The node that dialled closes the classic link when LE links the two nodes.
///
/// docs/protocol.md, "Who links with whom".
extension Connector {
  /// How long a leaf that has a relay, or has one in range, waits for a route to another leaf before dialling that
  /// leaf.
  static let leafDeferral = TimeSpan.seconds(30)
  /// How long a leaf without a relay in range waits for a relay before dialling leaves. A relay does not advertise
  /// while it has no free connection, for example when many nodes start together.
  static let relayDeferral = TimeSpan.seconds(10)

  mutating func chooseOverBluetooth(_ now: Instant, _ standing: (_ hint: UInt64, _ bearer: BearerKind) -> Standing) {
    var selection = LinkSelection(local: localHint, relays: relays)
    var hasRelay = false
    for candidate in candidates where candidate.isHeard && candidate.relays {
      if standing(candidate.hint, candidate.bearer) != .none {
        hasRelay = true
      } else if candidate.failures < Self.failuresMax {
        selection.add(candidate.hint)
      }
    }
    let hearsRelay = hasRelay || selection.hasRelay
    for index in candidates.indices where candidates[index].isHeard {
      let (hint, isRelay) = (candidates[index].hint, candidates[index].relays)
      let standing = standing(hint, candidates[index].bearer)
      if case .called(let call) = standing { candidates[index].call = call } else { candidates[index].call = .news }
      switch standing {
      case .parked: setWanted(index, false, isMutual: false, now)
      case .called: want(index, isMutual: false, now)
      case .linked:
        // A link between leaves is no longer wanted, and is closed, when this leaf has a relay.
        candidates[index].isSpare = false
        setWanted(index, relays || isRelay || !hasRelay, isMutual: true, now)
      case .none:
        if relays && isRelay {
          want(index, isMutual: true, now)
        } else if isRelay && !hasRelay && selection.prefers(hint) {
          want(index, isMutual: false, now)
        } else if relays || isRelay {
          wantAsSpare(index, Self.dialDeferral, now)
        } else if hearsRelay {
          wantAsSpare(index, Self.leafDeferral, now)
        } else {
          wantAsSpare(index, hint < localHint ? Self.relayDeferral + Self.dialDeferral : Self.relayDeferral, now)
        }
      }
    }
  }

  mutating func chooseOverClassic(_ now: Instant, _ standing: (_ hint: UInt64, _ bearer: BearerKind) -> Standing) {
    for index in candidates.indices where candidates[index].isClassic {
      let hint = candidates[index].hint
      if standing(hint, .bluetoothClassic) == .linked {
        candidates[index].isSpare = false
        setWanted(index, standing(hint, .bluetoothLE) != .linked, isMutual: false, now)
      } else {
        wantAsSpare(index, hint < localHint ? Self.dialDeferral * 2 : Self.dialDeferral, now)
      }
    }
  }

  private mutating func want(_ index: Int, isMutual: Bool, _ now: Instant) {
    if candidates[index].isSpare {
      candidates[index].isSpare = false
      candidates[index].isWanted = false
      if candidates[index].failures == 0, case .waiting = candidates[index].phase {
        candidates[index].phase = .waiting(now)
      }
    }
    setWanted(index, true, isMutual: isMutual, now)
  }

  private mutating func wantAsSpare(_ index: Int, _ deferral: TimeSpan, _ now: Instant) {
    if !candidates[index].isSpare || !candidates[index].isWanted {
      candidates[index].wantedAt = now
      candidates[index].wasReached = false
      candidates[index].isSpare = true
      candidates[index].isWanted = true
    }
    candidates[index].spareDeferral = deferral
    // The pause after a failure still applies.
    guard candidates[index].failures == 0, case .waiting(let start) = candidates[index].phase else { return }
    candidates[index].phase = .waiting(max(candidates[index].wantedAt + deferral, min(start, now + deferral)))
  }
}
