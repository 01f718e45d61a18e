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

  @Test func `the operator receives the invitation to the Wi-Fi group`() throws {
    #expect(ControlRequest.join.encoded() == [0x4A])
    box.node.invitation = attic
    let client = try ControlClient(path: box.socketPath)
    client.send(.join)
    guard case .statusPiece(let piece) = box.event(client) else { Issue.record("no answer"); return }
    #expect(try JoinInvitation(piece) == attic)
  }

  @Test func `the answer without a group states that there is no group`() throws {
    let client = try ControlClient(path: box.socketPath)
    client.send(.join)
    guard case .answer(false, "no group") = box.event(client) else { Issue.record("no answer"); return }
  }
}

@Test func `the QR code contains network name, passphrase and fingerprint`() {
  #expect(
    attic.uri(withFingerprint: true)
      == Array("WIFI:T:WPA;S:DIRECT-cw-attic;P:correct horse;CW:a11ce000000000010000000000000001;;".utf8))
  #expect(attic.uri(withFingerprint: false) == Array("WIFI:T:WPA;S:DIRECT-cw-attic;P:correct horse;;".utf8))
}

@Test func `separators within fields are escaped`() {
  var invitation = attic
  invitation.ssid = #"DIRECT-a;b:c,"ö""#
  invitation.passphrase = #"\;;\ S:x T:y"#
  #expect(
    invitation.uri(withFingerprint: false)
      == Array(#"WIFI:T:WPA;S:DIRECT-a\;b\:c\,\"ö\";P:\\\;\;\\ S\:x T\:y;;"#.utf8))
}

@Test func `a text that is not a JSON object is refused`() {
  #expect(throws: AccessError.self) { try JoinInvitation(Array("[]".utf8)) }
}
