import ControlSocket
import Primitives
import Testing
import Text

private let attic = JoinInvitation(
  name: "attic", id: aliceID.text, ssid: "DIRECT-cw-attic", passphrase: "correct horse", address: "192.168.49.1",
  frequency: 2437)

@Suite(.serialized) struct JoinInvitationTests {
  let box: Box
  init() throws { box = try Box() }

  @Test func `the operator is told how to join`() throws {
    #expect(ControlRequest.join.encoded() == [0x4A])
    box.node.invitation = attic
    let client = try ControlClient(path: box.socketPath)
    client.send(.join)
    guard case .statusPiece(let piece) = box.event(client) else { Issue.record("no answer"); return }
    #expect(try JoinInvitation(piece) == attic)
  }

  @Test func `without a group the answer says so`() throws {
    let client = try ControlClient(path: box.socketPath)
    client.send(.join)
    guard case .answer(false, "no group") = box.event(client) else { Issue.record("no answer"); return }
  }
}

@Test func `the code has network passphrase and fingerprint`() {
  #expect(
    attic.uri(withFingerprint: true)
      == Array("WIFI:T:WPA;S:DIRECT-cw-attic;P:correct horse;CW:a11ce000000000010000000000000001;;".utf8))
  #expect(attic.uri(withFingerprint: false) == Array("WIFI:T:WPA;S:DIRECT-cw-attic;P:correct horse;;".utf8))
}

@Test func `characters that separate fields are escaped`() {
  var invitation = attic
  invitation.ssid = #"DIRECT-a;b:c,"ö""#
  invitation.passphrase = #"\;;\ S:x T:y"#
  #expect(
    invitation.uri(withFingerprint: false)
      == Array(#"WIFI:T:WPA;S:DIRECT-a\;b\:c\,\"ö\";P:\\\;\;\\ S\:x T\:y;;"#.utf8))
}

@Test func `what is no JSON is no invitation`() {
  #expect(throws: AccessError.self) { try JoinInvitation(Array("[]".utf8)) }
}
