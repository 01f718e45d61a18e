import Testing

@testable import Configuration

/// The message about `text`: the error of a refused text, or the warnings about an accepted text.
private func said(_ text: String) -> String {
  do throws(ConfigurationError) {
    return try Configuration.parse(Array(text.utf8), file: "box.conf").warnings.joined(separator: "\n")
  } catch { return error.text }
}

/// Whether `text` contains six consecutive bytes of a secret. Bytes are compared, because a search by characters is
/// slow in a build that is not optimised.
private func shows(_ text: String, _ secret: String) -> Bool {
  let text = Array(text.utf8), secret = Array(secret.utf8)
  for start in 0...(secret.count - 6) {
    var index = 0
    while index + 6 <= text.count {
      if text[index] == secret[start] && text[index..<index + 6] == secret[start..<start + 6] { return true }
      index += 1
    }
  }
  return false
}

/// Configurations with one mistyped line that was meant to set the passphrase.
private func slips(_ section: String, _ secret: String) -> [String] {
  let lines = [
    "passphrase \(secret)", "passphrase =\n\(secret)", "passphrase =\n  \(secret)",
    "frequency = 2437 passphrase = \(secret)", "frequency = 2437; passphrase = \(secret)",
    "frequency = 2437, passphrase = \(secret)", "ssid = attic the long name of a network passphrase = \(secret)",
    "passprase = \(secret)", "Passphrase = \(secret)", "psk = \(secret)", "password: \(secret)",
    "passphrase = “\(secret)”", "passphrase = \(secret)\npassphrase = \(secret)", "passphrase -> \(secret)",
    "passphrase \(secret):", "interface = wlan0 passphrase=\(secret)", "enabled = yes passphrase=\(secret)",
    "passphrase = ü\(secret)", "passphrase = \(String(repeating: secret, count: 8))", "\(secret) = passphrase",
    "\(secret): passphrase",
    // Lines of which some do not name the passphrase.
    "ssid = attic passphrase = \(secret)", "ssid = attic PASSPHRASE: \(secret)", "frequency = \(secret)",
    "interface = wlan0 \(secret)", "enabled = \(secret)", "\(secret)", "\(secret) = yes", "enabled yes \(secret) = x",
    "frequency = 2437 key=\(secret)", "frequency = 2437 SECRET \(secret)",
  ]
  return lines.map { "[\(section)]\n\($0)\n" } + [
    "[\(section) passphrase = \(secret)]\n", "[\(section) passphrase = \(secret)\n",
    "[\(section)] passphrase = \(secret)\n", "passphrase \(secret) = \(secret)\n",
    "[node]\n\(section).passphrase.\(secret) = x\n",
    "[node]\ndisplay-name = a\n[\(section)]\nmode=client\npassphrase = \(secret)\n",
    "[\(section) \(secret)]\n", "[\(secret)]\n", "[\(secret)\n", "\(secret) = x\n", "[\(secret) horse]\n",
    "[horse \(secret)]\n", "[horse] \(secret)\n",
    "[node]\ndisplay-name = attic passphrase = \(secret)\n", "[node]\ndiscovery-info = passphrase=\(secret)\n",
    "[node]\n\(secret) = passphrase\n", "[ip]\nport = psk=\(secret)\n",
  ]
}

/// All keys of a section with a passphrase as their value. Lines that the key accepts are left out.
private func rejected(_ section: String, _ secret: String) -> [String] {
  var texts: [String] = []
  for key in configurationKeys where "\(key.section)" == section && !key.isSecret {
    var unused = Configuration()
    if !key.set(&unused, ByteString(secret)) { texts.append("[\(section)]\n\(key.name) = \(secret)\n") }
  }
  return texts
}

struct SecretSlipTests {
  private static let passphrases = [
    "korrekt=pferd", "Zt9kQw2pXy7L", "correcthorse", "correcthorsebattery", "korrekt pferd",
  ]
  private static var sections: [String] {
    var names: [String] = []
    for key in configurationKeys where !names.contains("\(key.section)") { names.append("\(key.section)") }
    return names
  }

  @Test(arguments: sections, passphrases)
  func `an error shows no part of a misplaced passphrase`(_ section: String, _ secret: String) {
    for text in slips(section, secret) + rejected(section, secret) {
      #expect(!shows(said(text), secret), "\(text): \(said(text))")
    }
  }

  @Test(arguments: sections, passphrases)
  func `a support bundle shows no part of a misplaced passphrase`(_ section: String, _ secret: String) {
    for text in slips(section, secret) + rejected(section, secret) {
      let excerpt = ConfigurationExcerpt(of: Array(text.utf8), keepsIdentities: true)
      let shown = String(decoding: excerpt.text, as: UTF8.self)
      #expect(!shows(shown, secret), "\(text): \(shown)")
    }
  }

  @Test(arguments: [
    "[mesh]\nssid = attic passphrase = eightchars", "[wifi-direct]\ndevice-name-prefix = a Passphrase:eightchars",
    "[node]\ndisplay-name = attic passphrase=eightchars", "[node]\ndiscovery-info = passphrase=eightchars",
  ])
  func `a passphrase within the value of another key is refused`(_ text: String) {
    #expect(said(text) == "box.conf:2: a secret key within the value of another key; give each a line of its own")
  }

  @Test(arguments: [
    "[mesh]\npassphrase = a passphrase = with: signs", "[node]\ndisplay-name = the passphrase is inside",
    "[mesh]\n# ssid = attic passphrase = eightchars",
  ])
  func `the word passphrase is accepted in a value, a passphrase and a comment`(_ text: String) {
    #expect(said(text) == "")
  }

  @Test func `the error of a mistyped key suggests the nearest key`() {
    #expect(
      said("[bluetooth]\nadaptor = hci0")
        == "box.conf:2: [bluetooth] has no key “adaptor” (did you mean “adapter”?); "
        + "expected enabled, adapter, psm, classic, nap")
    #expect(
      said("[mesh]\nfrequenzy = 1").hasPrefix("box.conf:2: [mesh] has no key “frequenzy” (did you mean “frequency”?)"))
    #expect(said("[mesh]\npassprase = x").hasPrefix("box.conf:2: [mesh] has no such key (did you mean “passphrase”?)"))
    #expect(said("[mesh]\nnothing = x").hasPrefix("box.conf:2: [mesh] has no such key; expected "))
    #expect(said("[ip]\nnothing = x").hasPrefix("box.conf:2: [ip] has no such key; expected "))
    #expect(said("[ip]\nfrequency = 1").hasPrefix("box.conf:2: [ip] has no key “frequency”; expected enabled, "))
    #expect(said("[ip]\nmtu = 9").hasPrefix("box.conf:2: [ip] has no key “mtu”; expected enabled, "))
    #expect(said("nothing = 1").hasPrefix("box.conf:1: a key precedes the first [section]; expected "))
  }

  @Test func `a rejected value is shown if it cannot be a passphrase`() {
    for (section, key) in [("ip", "port"), ("mesh", "frequency"), ("journal", "size")] {
      #expect(said("[\(section)]\n\(key) = 1234567").contains("“1234567” is not accepted"))
      #expect(
        said("[\(section)]\n\(key) = 12345678").hasPrefix(
          "box.conf:2: [\(section)] \(key): this value is not accepted; "))
      #expect(said("[\(section)]\n\(key) = 1 2").contains("this value is not accepted"))
      #expect(said("[\(section)]\n\(key) = key=abc").contains("this value is not accepted"))
    }
  }

  @Test func `an unknown section name is shown up to its first space`() {
    #expect(said("[mehs]\n").contains("unknown section [mehs]; expected [node], "))
    #expect(said("[ip 4]\n").contains("unknown section [ip …]; expected [node], "))
    #expect(said("[somewhere]\n").contains("unknown section […]; expected [node], "))
    #expect(said("[wlan]\n").contains("unknown section [wlan]; expected [node], "))
    #expect(said("[wlan0 wlan1]\n").contains("unknown section […]; expected [node], "))
  }
}
