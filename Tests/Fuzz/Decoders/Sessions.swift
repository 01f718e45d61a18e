import FuzzSupport
import Primitives
import SealSupport
import Session
import SessionSupport
import TestSupport

/// Decodes any bytes as each message of a session. A legal message must encode to the same bytes. The bytes are then a
/// script for a member: each event is a kind, a length and a message, or a local event.
func fuzzSessions(_ input: UnsafeRawBufferPointer) {
  let key = StandInCryptography(Identity(1))
  if let kind = input.first.flatMap({ SessionKind(rawValue: $0) }) {
    readSessionMessage(kind, UnsafeRawBufferPointer(rebasing: input.dropFirst()), key)
  }
  hearSessions(Script(input), key)
}

private func readSessionMessage(_ kind: SessionKind, _ input: UnsafeRawBufferPointer, _ key: StandInCryptography) {
  let bytes = input.bytes
  let written: [UInt8]?
  switch kind {
  case .invite: written = (try? InviteMessage(bytes))?.bytes
  case .answer: written = (try? AnswerMessage(bytes, key))?.bytes
  case .welcome: written = (try? WelcomeMessage(bytes, key))?.bytes
  case .end: written = (try? EndMessage(bytes))?.bytes
  case .meet: written = (try? MeetMessage(bytes))?.bytes
  case .table: written = (try? TableMessage(bytes, key))?.bytes
  case .message: written = (try? ApplicationMessage.number(bytes)) == nil ? nil : Array(input)
  case .window: written = (try? WindowMessage(bytes))?.bytes
  case .streamOpen: written = (try? OpenMessage(bytes))?.bytes
  case .streamBytes: written = (try? StreamBytes.address(bytes)) == nil ? nil : Array(input)
  case .streamEnd: written = (try? StreamEndMessage(bytes))?.bytes
  case .need: written = (try? NeedMessage(bytes))?.bytes
  }
  if let written { expect(written == Array(input), "a message is written otherwise than it was read") }
}

/// Runs a node that has a session and an invitation, while another node sends it arbitrary messages.
private func hearSessions(_ script: consuming Script, _ key: StandInCryptography) {
  var now = Instant.zero + .seconds(1)
  let point = key.identity.point
  let sessions = Sessions(
    local: key.identity.id, point: PublicPoint(InlineArray { point[$0] }), key, seed: 1)
  let stranger = Identity(2).id
  try? sessions.advertise(Service(endpoint: 1, type: Array("fuzz".utf8)))
  sessions.peerFound(stranger, epoch: 1, now: now)
  guard let session = try? sessions.open(1, SessionRules(), now: now) else { return }
  _ = try? sessions.invite(MemberAddress(node: stranger, endpoint: 1), into: session, now: now)
  func drain() {
    var count = 0
    while true {
      while let output = sessions.nextOutput(now: now, canSend: { _, _, _ in true }) {
        count += 1
        expect(count < 1_000, "outputs without end")
        sessions.completed(output.tag, isDelivered: output.tag % 8 != 0, now: now)
      }
      guard let event = sessions.nextEvent() else { return }
      if case .invited(let invitation) = event {
        try? sessions.accept(invitation.handle, into: session, now: now)
      }
    }
  }
  drain()
  while !script.isOver {
    let what = script.u8()
    if let kind = SessionKind(rawValue: what) {
      let bytes = Array(script.bytes(Int(script.u16())))
      try? sessions.receive(kind.rawValue, bytes.span.bytes, from: stranger, now: now)
    } else if what % 4 == 0 {
      now = now + .seconds(UInt64(script.u8()))
      sessions.handleTimeouts(now: now)
    } else if what % 4 == 1 {
      sessions.peerFound(stranger, epoch: UInt64(what), now: now)
    } else if what % 4 == 2 {
      sessions.peerLost(stranger)
    }
    drain()
  }
}
