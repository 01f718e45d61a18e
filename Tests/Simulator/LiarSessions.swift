import Node
import Primitives
import Session
import SessionSupport
import TestSupport

/// The sessions of applications during an attack that claims slots in sessions, or the work of the victim's node.
struct ClaimedSessions {
  /// The sessions of the first victim's application by endpoint, and the sessions of the hostile nodes by machine.
  var ofVictim: [UInt32: SessionHandle] = [:]
  var ofMachines: [Int: SessionHandle] = [:]
  /// The newcomer's session, and its pending invitation to the victim.
  var ofNewcomer: SessionHandle?
  var invitation: InvitationHandle?
  /// The version of the tickets in the last table that the hostile relay sent. A ticket is a member's signed admission.
  var version: UInt32 = 0
}

/// Attacks on sessions: member tables that are costly to verify, and invitations that stay unanswered.
extension Simulation {
  /// The endpoint of the victim's application that the hostile relay attacks, and a second endpoint of that
  /// application.
  private static let claimedEndpoint: UInt32 = 1
  private static let otherEndpoint: UInt32 = 2
  private static let rules = SessionRules(onlySealed: false, membersMax: SessionLimits.membersMax)
  /// The number of invented members that have left the hostile session. Each of these members has three signatures, so
  /// a table has 31 kB.
  private static let membersInvented: UInt64 = 100

  /// Lets the first victim's application offer two services, each with an open session. Each hostile node opens a
  /// session, too.
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

  /// Invites the first victim's application for an hour. Returns false if the inviter's node allows no further
  /// invitation.
  @discardableResult
  private func invite(_ endpoint: UInt32, from machine: Int) -> Bool {
    guard let victim = claim.victims.first, let session = claim.sessions.ofMachines[machine] else { return false }
    let invitation = try? machines[machine].node?.sessions.invite(
      address(victim, endpoint), into: session, timeout: SessionLimits.invitationTimeMax, now: now)
    touched(machine)
    return invitation != nil
  }

  /// Lets each hostile node send the victim's application as many invitations as the hostile node's own limit allows.
  func keepInvitations() {
    for machine in claim.machines { while invite(Self.claimedEndpoint, from: machine) {} }
  }

  // MARK: The newcomer

  /// Whether the newcomer is connected with the victim's application in a session. If the newcomer is not connected, it
  /// invites that application.
  func isInSession(_ newcomer: Int, beside lie: Lie) -> Bool {
    answerInvitations(newcomer, lie)
    guard let victim = claim.victims.first, let node = machines[newcomer].node else { return true }
    if claim.sessions.ofNewcomer == nil {
      claim.sessions.ofNewcomer = try? node.sessions.open(1, Self.rules, now: now)
    }
    guard let session = claim.sessions.ofNewcomer else { return false }
    // During the attack `tables` the victim's session for the claimed endpoint is the session of the hostile relay.
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

  /// Lets the victim's application accept all invitations, except that those of the hostile nodes stay open in the
  /// attack `invitations`.
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

  /// Sends a table of the hostile session. Every invented member has joined and left once more since the last table.
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

  /// The record of an invented member that was admitted by a ticket with this version and has left.
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
