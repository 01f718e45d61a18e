import Primitives
import Session
import TestSupport
import SessionSupport
import Testing

@testable import LocalAPI

private let chat = Array("chat".utf8)

/// Invitations to a client that reads them late, or never, or need not read them because the invitations were
/// cancelled.
@Suite struct UnreadInvitationTests {
  private let house = House(2)
  private let inviter: Application
  private let invitee: Application
  private let session: UInt32

  init() {
    inviter = Application(house, 0)
    invitee = Application(house, 1)
    _ = invitee.ask(.advertise(type: chat, info: []))
    _ = invitee.read()
    session = inviter.open("chat")
  }

  private func invite() -> UInt32 {
    inviter.ask(.invite(session: session, invitee.address("chat"), milliseconds: 0, context: [1, 2, 3]))
  }

  @Test func `cancelled invitations use no memory of a client that does not read`() {
    for _ in 0..<100 {
      #expect(inviter.outcome(.cancel(invitation: invite())) == .done)
      _ = inviter.read()
      // A node accepts at most four invitations per second from another node.
      house.run(seconds: 1)
    }
    #expect(house.boxes[1].clients.clients[invitee.clientIndex]?.received.isEmpty == true)
    #expect(invitee.read().isEmpty)
  }

  @Test func `a client receives the end of an invitation before the next invitation`() {
    let first = invite()
    #expect(invitee.next()?.first == 132)
    #expect(inviter.outcome(.cancel(invitation: first)) == .done)
    _ = invite()
    #expect(invitee.read().map { $0[0] } == [133, 132])
  }

  @Test func `an invitation to an auto-joining session is accepted without asking the client`() {
    _ = invitee.ask(.gather(session: invitee.open("chat")))
    let invitation = invite()
    house.run(seconds: 1)
    #expect(invitee.read(132).isEmpty)
    let connected = LocalEvent.invitationEnded(object: invitation, received: 0, .connected)
    #expect(inviter.read().contains(Array(connected.packet.dropFirst(4))))
  }
}
