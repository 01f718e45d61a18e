import Primitives
import TestSupport
import SessionSupport
import Testing

@testable import Session
@testable import SessionStories

/// Station 0, which has one service, is invited by other stations. Each station is reached over its own link unless a
/// test changes that.
private final class Invited {
  let hall: Hall
  private var lastNumber: UInt32 = 0
  private(set) var asked: [Invitation] = []
  private(set) var ended: [InvitationHandle: InvitationOutcome] = [:]

  init(_ inviters: Int) {
    hall = Hall(inviters + 1)
    hall.settle()
    for station in 1...inviters { reach(station, ingress: UInt64(station)) }
  }

  var sessions: Sessions { hall.stations[0].sessions }

  func reach(_ station: Int, ingress: UInt64, isPinned: Bool = false) {
    sessions.note(hall.stations[station].id, ingress: ingress, isPinned: isPinned)
  }

  /// Lets `station` invite station 0. The invitation is valid for an hour.
  func invite(_ station: Int) throws {
    lastNumber += 1
    let message = hall.invitation(from: station, lastNumber, seconds: 3_600)
    try sessions.receive(
      SessionKind.invite.rawValue, message.bytes.span.bytes, from: hall.stations[station].id, now: hall.now)
    while sessions.nextOutput(now: hall.now, canSend: { _, _, _ in true }) != nil {}
    while let event = sessions.nextEvent() {
      if case .invited(let invitation) = event { asked.append(invitation) }
      if case .invitationEnded(let handle, let outcome) = event { ended[handle] = outcome }
    }
  }

  func wait(seconds: UInt64) {
    hall.now = hall.now + .seconds(seconds)
    sessions.handleTimeouts(now: hall.now)
  }

  /// The invitations from `station` that the application was notified of and that have not ended.
  func standing(_ station: Int) -> [Invitation] {
    asked.filter { $0.from.node == hall.stations[station].id && ended[$0.handle] == nil }
  }

  var standing: Int { asked.count { ended[$0.handle] == nil } }
}

@Suite struct SharedSlotsTests {
  @Test func `nine keys behind one link that invite for an hour do not keep others from the application`() throws {
    let invited = Invited(12)
    for station in 1...9 { invited.reach(station, ingress: 1) }
    for _ in 0..<4 { for station in 1...9 { try invited.invite(station) } }
    #expect(invited.standing == 24)
    for station in 10...12 {
      try invited.invite(station)
      #expect(invited.standing(station).count == 1, "station \(station)")
    }
    #expect(invited.standing == 24)
    #expect(Set(invited.ended.values.map { "\($0)" }) == ["busy"])
  }

  @Test func `an inviter's newest invitation evicts its oldest one at most four times per second`() throws {
    let invited = Invited(1)
    for _ in 0..<100 { try invited.invite(1) }
    #expect(invited.asked.count == 4)
    invited.wait(seconds: 1)
    try invited.invite(1)
    #expect(invited.asked.count == 5 && invited.standing(1).map { $0.handle } == invited.asked[1...].map { $0.handle })
  }

  @Test func `an inviter that is declined at once reaches the application at most four times per second`() throws {
    let invited = Invited(1)
    for _ in 0..<100 {
      try invited.invite(1)
      for invitation in invited.standing(1) {
        try? invited.sessions.decline(invitation.handle, now: invited.hall.now)
      }
    }
    #expect(invited.asked.count == 4)
    invited.wait(seconds: 1)
    try invited.invite(1)
    #expect(invited.asked.count == 5)
  }

  @Test func `a quarter of the slots is reserved from strangers, and half of it for pinned nodes`() throws {
    let invited = Invited(40)
    for station in 1...30 { try invited.invite(station) }
    #expect(invited.standing == 24)
    for station in 31...34 {
      invited.sessions.nodes.memberConnected(on: invited.hall.stations[station].id)
      try invited.invite(station)
    }
    #expect(invited.standing == 28)
    for station in 35...38 {
      invited.reach(station, ingress: UInt64(station), isPinned: true)
      try invited.invite(station)
    }
    #expect(invited.standing == 32)
    // All slots are taken, so an invitation of a pinned node evicts an invitation of a stranger.
    invited.reach(39, ingress: 39, isPinned: true)
    try invited.invite(39)
    #expect(invited.standing == 32 && invited.standing(39).count == 1)
    #expect((31...38).allSatisfy { invited.standing($0).count == 1 })
  }

  @Test func `the oldest invitation is evicted after a second if every link has one`() throws {
    let invited = Invited(26)
    for station in 1...24 { try invited.invite(station) }
    try invited.invite(25)
    #expect(invited.standing(25).isEmpty && invited.standing == 24)
    invited.wait(seconds: 1)
    try invited.invite(26)
    #expect(invited.standing(26).count == 1 && invited.standing(1).isEmpty && invited.standing == 24)
  }

  @Test func `an accepted invitation without a welcome holds its slot for at most ten seconds`() throws {
    let invited = Invited(2)
    for station in 1...2 { invited.reach(station, ingress: 1) }
    let session = try invited.sessions.open(1, SessionRules(), now: invited.hall.now)
    try invited.invite(1)
    try invited.sessions.accept(invited.asked[0].handle, into: session, now: invited.hall.now)
    for _ in 0..<3 { try invited.invite(1) }
    invited.wait(seconds: 5)
    try invited.invite(1)
    #expect(invited.ended[invited.asked[0].handle] == nil && invited.ended[invited.asked[1].handle] == .busy)
    invited.wait(seconds: 5)
    try invited.invite(1)
    #expect(invited.ended[invited.asked[0].handle] == .busy)
  }

  @Test func `a node with many addresses does not prevent questions to other nodes`() throws {
    let hall = Hall(4)
    hall.settle()
    let session = hall.open(0)
    let sessions = hall.stations[0].sessions
    func meet(_ station: Int, _ endpoint: UInt32) throws {
      let message = MeetMessage(
        session: try #require(sessions.id(of: session)), from: endpoint, to: 1, number: 1, echo: 0,
        digest: TableDigest(InlineArray(repeating: 0)), window: 1)
      try sessions.receive(
        SessionKind.meet.rawValue, message.bytes.span.bytes, from: hall.stations[station].id, now: hall.now)
    }
    for station in 1...3 { sessions.note(hall.stations[station].id, ingress: UInt64(station), isPinned: false) }
    for endpoint in 1...40 as ClosedRange<UInt32> { try meet(1, endpoint) }
    for station in 2...3 { try meet(station, 1) }
    hall.now = hall.now + .seconds(1)
    var tables: [NodeID: Int] = [:]
    while let output = sessions.nextOutput(now: hall.now, canSend: { _, _, _ in true }) {
      if output.kind == .table { tables[output.to, default: 0] += 1 }
    }
    #expect((1...3).map { tables[hall.stations[$0].id] ?? 0 } == [10, 1, 1])
  }

  @Test func `two nodes that regard this one as a member do not keep a third from being corrected`() throws {
    let hall = Hall(4)
    hall.settle()
    let sessions = hall.stations[0].sessions
    for (station, ingress) in [(1, 1), (2, 1), (3, 3)] as [(Int, UInt64)] {
      sessions.note(hall.stations[station].id, ingress: ingress, isPinned: false)
      for endpoint in 1...2 as ClosedRange<UInt32> {
        let message = MeetMessage(
          session: SessionID(high: 9, low: 9), from: endpoint, to: 1, number: 1, echo: 0,
          digest: TableDigest(InlineArray(repeating: 0)), window: 1)
        try sessions.receive(
          SessionKind.meet.rawValue, message.bytes.span.bytes, from: hall.stations[station].id, now: hall.now)
      }
    }
    var told: Set<NodeID> = []
    while let output = sessions.nextOutput(now: hall.now, canSend: { _, _, _ in true }) { told.insert(output.to) }
    #expect(told.contains(hall.stations[3].id))
  }

  @Test func `auto-join behind one link leaves slots to nodes behind other links`() throws {
    let hall = Hall(3)
    hall.settle()
    let sessions = hall.stations[0].sessions
    for station in 1...2 { sessions.note(hall.stations[station].id, ingress: UInt64(station), isPinned: false) }
    let session = try sessions.open(2, SessionRules(), now: hall.now)
    func isGathered(_ station: Int, _ endpoint: UInt32) -> Bool {
      let address = MemberAddress(node: hall.stations[station].id, endpoint: endpoint)
      return (try? sessions.gather(address, into: session, now: hall.now)) != nil
    }
    for endpoint in UInt32(1)...544 { #expect(isGathered(1, endpoint), "\(endpoint)") }
    #expect(!isGathered(1, 545))
    #expect(isGathered(2, 1))
    let gathered = try #require(sessions.session(session)?.autoJoin.entries.map { $0.address.node })
    #expect(gathered.count == 544 && gathered.count { $0 == hall.stations[2].id } == 1)
  }
}
