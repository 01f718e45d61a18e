import Primitives
import Status
import Testing
import Text

@Test func `a peer is matched by its exact name or by a prefix of its id`() {
  var book = PeerBook()
  let isNew = [peer(aliceID, "alice"), peer(bobID, "bob"), peer(bobID, "bob", hops: 2)].map { book.present($0) }
  #expect(isNew == [true, true, false])
  guard case .one(aliceID) = book.match("alice"), case .one(bobID) = book.match("B0B0"), case .none = book.match("ali"),
    case .none = book.match("b0b"), case .none = book.match("b0b1"), case .none = book.match("")
  else { Issue.record("wrong match"); return }
  let other = NodeID(high: 0xB0B0_FFFF_0000_0000, low: 0)
  _ = book.present(peer(other, "bob"))
  guard case .several(let ids) = book.match("bob"), ids == [bobID, other], case .several = book.match("b0b0"),
    case .one(other) = book.match("b0b0f")
  else { Issue.record("wrong match"); return }
  let lost = [book.lost(other), book.lost(other)]
  #expect(lost[0]?.name == "bob" && lost[1] == nil)
}

@Test func `a name equal to another peer's id does not match that id`() {
  for stolen in [bobID.text, bobID.shortText, bobID.shortText.uppercased()] {
    var book = PeerBook()
    _ = book.present(peer(aliceID, stolen))
    _ = book.present(peer(bobID, "bob"))
    guard case .one(bobID) = book.match(stolen) else { Issue.record("\(stolen)"); continue }
  }
  // A peer has the text of bob's id as its name. While bob's node is unknown, the id must not match that peer.
  var book = PeerBook()
  _ = book.present(peer(aliceID, bobID.text))
  guard case .none = book.match(bobID.text) else { Issue.record("matched"); return }
}

@Test func `a name equal to a prefix of another id is ambiguous`() {
  var book = PeerBook()
  _ = book.present(peer(aliceID, "b0b0"))
  _ = book.present(peer(bobID, "bob"))
  guard case .several(let ids) = book.match("b0b0"), ids == [aliceID, bobID] else {
    Issue.record("wrong match"); return
  }
}

@Test func `peers with the same name are shown with their ids`() {
  var book = PeerBook()
  _ = book.present(peer(aliceID, "bob"))
  #expect(book.name(aliceID) == "bob")
  _ = book.present(peer(bobID, "bob"))
  #expect(book.name(aliceID) == "bob (a11ce000)" && book.name(bobID) == "bob (b0b00000)")
}
