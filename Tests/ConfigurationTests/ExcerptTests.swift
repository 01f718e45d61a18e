import Testing

@testable import Configuration

private let file = """
  # passphrase = an old secret
  [node]
  display-name = casa mia
  stray line
  [wifi-direct]
  passphrase = correct horse = 1
  ssid: DIRECT-xy-home
  mode = client   \r
  unknown = hello
  [nonsense]
  """

private func excerpt(_ keeps: Bool = false) -> (text: String, secrets: [String]) {
  let excerpt = ConfigurationExcerpt(of: Array(file.utf8), keepsIdentities: keeps)
  return (
    String(decoding: excerpt.text, as: UTF8.self), excerpt.secrets.map { String(decoding: $0, as: UTF8.self) }
  )
}

@Test func `an excerpt contains the keys and no secrets`() {
  #expect(
    excerpt().text == """
      [node]
      display-name = ***
      ; line 4 is not understood, and left out
      [wifi-direct]
      passphrase = ***
      ssid = ***
      mode = client
      ; line 9 is not understood, and left out
      ; line 10 is not understood, and left out

      """)
}

@Test func `personal values are kept on request`() {
  #expect(excerpt(true).text.contains("display-name = casa mia\n") && excerpt(true).text.contains("passphrase = ***\n"))
}

@Test func `an excerpt lists the secrets, so that other texts can be redacted`() {
  #expect(excerpt().secrets == ["an old secret", "correct horse = 1"])
}

@Test func `an invalid value is omitted unless it is too short to be a passphrase`() {
  let file =
    "[mesh]\nfrequency = 24377\nforwarding = correcthorse\n[wifi-direct] # a comment\nmode = ap\nssid = passport\n"
  let excerpt = ConfigurationExcerpt(of: Array(file.utf8), keepsIdentities: true)
  #expect(
    String(decoding: excerpt.text, as: UTF8.self) == """
      [mesh]
      frequency = 24377
      ; line 3 is not understood, and left out
      [wifi-direct]
      mode = ap
      ; line 6 may hold a secret, and is left out

      """)
}
