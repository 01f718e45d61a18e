import Node
import Primitives
import Session
import SessionSupport
import TestSupport

/// The sessions of applications beside a hostile relay that claims their places or the work of their node.
struct ClaimedSessions {
  /// The sessions of the first victim's application by endpoint, and those of the hostile nodes by machine.
  var ofVictim: [UInt32: SessionHandle] = [:]
  var ofMachines: [Int: SessionHandle] = [:]
  /// The session of the newcomer, and its standing invitation.
  var ofNewcomer: SessionHandle?
  var invitation: InvitationHandle?
  /// The version of the tickets in the last table of the hostile relay.
  var version: UInt32 = 0
}

/// Claims with session tables that are costly to verify, and with invitations that stay.
extension Simulation {
  /// The endpoint that the hostile relay claims, and another endpoint of the same application.
  private static let claimedEndpoint: UInt32 = 1
  private static let otherEndpoint: UInt32 = 2
  private static let rules = SessionRules(onlySealed: false, membersMax: SessionLimits.membersMax)
  /// The number of members of the hostile session that have left. With three signatures each, a table has 31 kB.
  private static let membersInvented: UInt64 = 100

  /// Lets the victim's application offer two services with an open session for each. The hostile nodes open sessions,
  /// too.
  func openSessions(_ lie: Lie, _ liar: Int) {
    guard let victim = claim.victims.first, let node = machines[victim].node else { return }
    for endpoint in [Self.claimedEndpoint, Self.otherEndpoint] {
      try? node.advertise(Service(endpoint: endpoint, type: Array("claimed".utf8)), now: now)
      claim.sessions.ofVictim[endpoint] = try? node.sessions.open(endpoint, Self.rules, now: now)
    }
    touched(victim)
    for machine in claim.machines {
      claim.sessions.ofMachines[machine] = try? machines[machine].node?.sessions.open(1, Self.rules, now: now)
    }
    if lie == .tables { invite(Self.claimedEndpoint, from: liar) }
  }

  private func address(_ machine: Int, _ endpoint: UInt32) -> MemberAddress {
    MemberAddress(node: machines[machine].key.id, endpoint: endpoint)
  }

  /// Sends an invitation of an hour. Returns false if the inviter's node accepts no more of them.
  @discardableResult
  private func invite(_ endpoint: UInt32, from machine: Int) -> Bool {
    guard let victim = claim.victims.first, let session = claim.sessions.ofMachines[machine] else { return false }
    let invitation = try? machines[machine].node?.sessions.invite(
      address(victim, endpoint), into: session, timeout: SessionLimits.invitationTimeMax, now: now)
    touched(machine)
    return invitation != nil
  }

  /// Lets each hostile node have as many invitations at the victim as its own node allows.
  func keepInvitations() {
    for machine in claim.machines { while invite(Self.claimedEndpoint, from: machine) {} }
  }

  // MARK: The newcomer

  /// Returns whether the newcomer is connected in a session with the victim's application. If not, the newcomer invites
  /// it.
  func isInSession(_ newcomer: Int, beside lie: Lie) -> Bool {
    answerInvitations(newcomer, lie)
    guard let victim = claim.victims.first, let node = machines[newcomer].node else { return true }
    if claim.sessions.ofNewcomer == nil {
      claim.sessions.ofNewcomer = try? node.sessions.open(1, Self.rules, now: now)
    }
    guard let session = claim.sessions.ofNewcomer else { return false }
    // The victim's session for the claimed endpoint belongs to the hostile relay.
    let address = address(victim, lie == .tables ? Self.otherEndpoint : Self.claimedEndpoint)
    if node.sessions.members(of: session).contains(where: { $0.address == address && $0.state == .connected }) {
      return true
    }
    if claim.sessions.invitation == nil {
      claim.sessions.invitation = try? node.sessions.invite(address, into: session, now: now)
      touched(newcomer)
    }
    return false
  }

  /// Lets the victim's application accept all invitations except those that must stay.
  private func answerInvitations(_ newcomer: Int, _ lie: Lie) {
    let events = sessionEvents
    sessionEvents = []
    for (machine, life, event) in events where life == machines[machine].life {
      switch event {
      case .invited(let invitation) where machine == claim.victims.first:
        let isOfLiar = claim.machines.contains(number(of: invitation.from.node))
        guard !isOfLiar || lie == .tables, let session = claim.sessions.ofVictim[invitation.to] else { continue }
        try? machines[machine].node?.sessions.accept(invitation.handle, into: session, now: now)
        touched(machine)
      case .invitationEnded(let handle, _) where machine == newcomer && handle == claim.sessions.invitation:
        claim.sessions.invitation = nil
      case .serviceFound, .serviceChanged, .serviceLost, .invited, .invitationEnded, .identified, .member,
        .decisionWanted, .message, .datagram, .sent, .room, .stream, .ended:
        break
      }
    }
  }

  // MARK: Tables

  /// Sends a table of the hostile session. Since the last table all of its members have joined and left once more.
  func sendTable(_ liar: Int) {
    answerInvitations(-1, .tables)
    guard let victim = claim.victims.first, let node = machines[liar].node,
      let session = claim.sessions.ofMachines[liar],
      let origin = node.sessions.table(of: session)?.entries.origins.first,
      let member = node.sessions.members(of: session).first(where: { $0.state == .connected })
    else { return }
    claim.sessions.version += 1
    let records = (0..<Self.membersInvented).map { number in
      record(of: Identity(1 << 41 | number), in: origin.id, admittedBy: liar, claim.sessions.version)
    }
    let entries = TableEntries(
      origins: [origin], merges: [], records: records.sorted { $0.address < $1.address })
    let table = TableMessage(
      session: origin.id, from: 1, to: member.address.endpoint, asks: false,
      digest: TableDigest(InlineArray(repeating: 0)), entries: entries)
    _ = try? node.send(
      kind: SessionKind.table.rawValue, table.bytes.span.bytes, to: machines[victim].key.id, lane: .interactive,
      now: now)
    touched(liar)
  }

  /// The record of a member that has accepted a ticket with this version and has left.
  private func record(
    of identity: Identity, in session: SessionID, admittedBy liar: Int, _ version: UInt32
  ) -> MemberRecord {
    let founder = address(liar, 1), member = MemberAddress(node: identity.id, endpoint: 1)
    let reason = Departure.Reason.wanted
    var subject: [UInt8] = []
    subject.append(bigEndian: session.high)
    subject.append(bigEndian: session.low)
    subject.append(member.node)
    subject.append(bigEndian: member.endpoint)
    subject.append(bigEndian: version)
    var grant = subject + [1]
    grant.append(founder.node)
    grant.append(bigEndian: founder.endpoint)
    func signed(_ word: String, _ text: [UInt8], _ sign: (RawSpan) -> InlineArray<64, UInt8>) -> Signature {
      let bytes = Array(word.utf8) + text
      return Signature(sign(bytes.span.bytes))
    }
    let point = identity.point
    return MemberRecord(
      session: session, address: member, point: PublicPoint(InlineArray { point[$0] }),
      ticket: Ticket(
        version: version, depth: 1, admitter: founder,
        admission: signed("causeway-admits-1", grant) { machines[liar].key.sign($0) },
        acceptance: signed("causeway-accepts-1", grant) { identity.sign($0) }),
      departure: Departure(
        isEjection: false, reason: reason, text: [],
        signature: signed("causeway-leaves-1", subject + [reason.rawValue]) { identity.sign($0) }))
  }
}
