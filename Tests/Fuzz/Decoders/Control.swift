import ControlSocket
import FuzzSupport
import Primitives
import Status
import Text

/// Decodes any bytes as a packet of the control socket, in either direction. A decoded packet must encode to a packet
/// that can be decoded again. The encoding must not grow each time, although invalid UTF-8 in texts is repaired.
func fuzzControl(_ input: UnsafeRawBufferPointer) {
  let packet = Array(input)
  if let request = try? ControlRequest(packet) {
    switch request {
    case .status, .watch, .probe, .way, .reload, .applications, .join, .explain:
      expect(request.encoded() == packet, "a request is written otherwise than it was read")
    case .trust, .capture: expect((try? ControlRequest(request.encoded())) != nil, "what was written cannot be read")
    }
  }
  guard let event = try? ControlEvent(packet) else { return }
  let once = event.encoded()
  expect(once.count <= ControlProtocol.eventBytesMax || packet.count > ControlProtocol.eventBytesMax, "it grew")
  guard let again = try? ControlEvent(once) else { fatalError("what was written cannot be read") }
  expect(again.encoded().count <= once.count + 3, "it grows each time")
  book(event)
}

/// Checks the list of peers that a command keeps, with names that other nodes chose.
private func book(_ event: ControlEvent) {
  switch event {
  case .peerPresent(let peer):
    var book = PeerBook()
    expect(book.present(peer), "known before it was told")
    expect(!book.present(peer), "unknown after it was told")
    _ = book.match(peer.name)
    if case .one(let id) = book.match(peer.id.text) {
      expect(id == peer.id, "another one is found by the id")
    }
    expect(book.lost(peer.id) != nil && book.peers.isEmpty, "lost and still there")
  case .answer, .statusPiece, .ready, .peerLost, .completed, .way, .frames, .closing: break
  }
}
