import LocalAPI
import Primitives
import Session
import SessionSupport
import Testing
import TestSupport

/// A client that decides on the admission of members, and the certificates that it receives for its decision.
@Suite struct QuestionTests {
  let house = House(2)
  let judge: Application
  let guest: Application

  init() {
    judge = Application(house, 0)
    guest = Application(house, 1)
  }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  /// Makes the guest a member of the judge's session. Returns the session's number at each of the two clients.
  private func join() -> (judge: UInt32, guest: UInt32) {
    let session = judge.ask(.open(type: bytes("chat"), SessionRules(), decidesOnMembers: true))
    _ = judge.ask(.window(session: session, limit: .max))
    _ = guest.ask(.advertise(type: bytes("chat"), info: []))
    let theirs = guest.open("chat")
    _ = judge.ask(.invite(session: session, guest.address("chat"), milliseconds: 0, context: []))
    _ = guest.ask(.answer(invitation: guest.invitation(), into: theirs, text: []))
    house.run(seconds: 1)
    return (session, theirs)
  }

  private func prove(_ chain: [[UInt8]]) {
    house.boxes[0].chain = chain
    house.boxes[0].sessions.askAgain(about: house.boxes[1].sessions.local)
    house.settle()
  }

  @Test func `a client is asked once, after the member's node has proved its key`() {
    house.boxes[0].chain = nil
    let (session, _) = join()
    #expect(judge.read(144) == [])
    prove([[1, 2], [3]])
    let asked = judge.read(144)
    #expect(asked.count == 1 && asked.first?.word(1) == session)
    #expect(asked.first?.suffix(8) == [2, 0, 2, 1, 2, 0, 1, 3])
    prove([[1, 2], [3]])
    #expect(judge.read(144) == [])
  }

  @Test func `a client receives the beginning of a chain that is too long`() {
    house.boxes[0].chain = nil
    _ = join()
    let most = LocalLimits.certificatesBytesMax
    prove([[UInt8](repeating: 7, count: 1_000), [UInt8](repeating: 8, count: most - 1_004), [9]])
    let asked = judge.read(144)
    #expect(asked.first.map { $0[31 + 2] } == 2)
    #expect(asked.first?.count == 31 + 2 + 1 + most)
  }

  @Test func `a client is not asked about a member that has left`() throws {
    house.boxes[0].chain = nil
    let (_, theirs) = join()
    _ = guest.ask(.leave(session: theirs, text: []))
    house.run(seconds: 1)
    prove([[1]])
    #expect(judge.read(144) == [])
  }
}
