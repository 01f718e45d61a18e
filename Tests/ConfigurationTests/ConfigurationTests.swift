import Bearer
import CSystem
import Configuration
import Primitives
import Testing

private func parse(_ text: String) throws -> Configuration {
  try Configuration.parse(Array(text.utf8), file: "box.conf")
}

/// The error with which `text` is refused, or nil if the text is accepted.
private func refusal(_ text: String) -> String? {
  do throws(ConfigurationError) {
    _ = try Configuration.parse(Array(text.utf8), file: "box.conf")
    return nil
  } catch { return error.text }
}

@Test(arguments: ["[wifi-direct]", "[mesh]"]) func `a rejected passphrase is not shown`(section: String) throws {
  let text = try #require(refusal("\(section)\npassphrase = hölzernes Bein"))
  #expect(
    text
      == "box.conf:2: \(section) passphrase: this value is not accepted; expected 8 to 63 printable ASCII characters")
}

@Test func `a file with a comment alone yields the defaults`() throws {
  let configuration = try parse("# the defaults")
  #expect(configuration.ip.port == 41820 && configuration.ip.isEnabled && configuration.ip.peers.isEmpty)
  #expect(configuration.node.serviceType == "causeway" && configuration.node.isRelay)
  #expect(configuration.controlSocketPath == "/run/causeway/control.sock")
  #expect(configuration.localSocketPath == "/run/causeway/api.sock" && configuration.applications.isEnabled)
  #expect(configuration.journalPath == "/run/causeway/journal")
  #expect(configuration.journal.sizeKiB == 256 && configuration.journal.level == .info)
}

@Test func `every key is stored`() throws {
  let c = try parse(
    """
    # comment
    ; comment
    [node]
    display-name = Küche ; oben
    service-type = my-chat
    discovery-info = room=kitchen, board=pi 4
    discovery-info = empty=
    state-directory = /s/
    runtime-directory = /r
    relay = no
    peers-max = 8
    [applications]
    enabled = no
    group = chat-users
    service-groups = chat:1001, photos:0
    [ip]
    enabled = no
    interfaces = eth0,wlan0
    port = 1
    peers = 10.0.0.2:41820, [2001:db8::2]:9
    peers = [fe80::1%eth1]:65535
    loopback = yes
    [bluetooth]
    enabled = no
    adapter = hci3
    psm = 0xff
    classic = yes
    [wifi-direct]
    enabled = no
    mode = client
    interface = wlp3s0
    control-socket = /c
    frequency = 2437
    wps = off
    ssid = DIRECT-x
    passphrase = a;b#c d%e
    device-name-prefix = P
    [discovery]
    dns-sd = embedded
    [journal]
    size = 16
    level = debug
    """)
  #expect(c.node.displayName == "Küche ; oben" && c.node.serviceType == "my-chat")
  #expect(c.node.discoveryInfo.map { "\($0.key)=\($0.value)" } == ["room=kitchen", "board=pi 4", "empty="])
  #expect(c.node.stateDirectory == "/s" && c.node.runtimeDirectory == "/r")
  #expect(!c.node.isRelay && c.node.peersMax == 8)
  #expect(!c.ip.isEnabled && c.ip.interfaces == ["eth0", "wlan0"] && c.ip.port == 1 && c.ip.usesLoopback)
  #expect(c.ip.peers.map(\.interface) == ["", "", "eth1"] && c.ip.peers.map(\.endpoint.port) == [41820, 9, 65535])
  #expect(!c.bluetooth.isEnabled && c.bluetooth.psm == 0xFF && c.bluetooth.isClassic)
  #expect(c.bluetooth.adapters == [.index(3)])
  #expect(!c.wifiDirect.isEnabled && c.wifiDirect.mode == .client && c.wifiDirect.interface == "wlp3s0")
  #expect(!c.applications.isEnabled && c.applications.group == "chat-users")
  #expect(
    c.applications.serviceGroups == [ServiceGroup(type: "chat", group: 1001), ServiceGroup(type: "photos", group: 0)])
  #expect(c.wifiDirect.controlSocket == "/c" && c.wifiDirect.frequency == 2437 && c.wifiDirect.wps == .never)
  #expect(c.wifiDirect.ssid == "DIRECT-x" && c.wifiDirect.passphrase == "a;b#c d%e")
  #expect(c.wifiDirect.deviceNamePrefix == "P")
  #expect(c.discovery.dnsSD == .embedded && c.journal.sizeKiB == 16 && c.journal.level == .debug)
}

@Test(arguments: [("no", false, true), ("yes", true, true), ("only", true, false)])
func `Bluetooth classic is used beside LE, or alone`(_ word: String, _ isClassic: Bool, _ isLowEnergy: Bool)
  throws
{
  let used = try parse("[bluetooth]\nclassic = \(word)\n").bluetooth
  #expect(used.isClassic == isClassic && used.isLowEnergy == isLowEnergy)
}

@Test func `an error names the file, the line, the key and the accepted values`() {
  #expect(
    refusal("[ip]\n\nport = 99999\n")
      == "box.conf:3: [ip] port: “99999” is not accepted; expected a number from 1 to 65535")
}

@Test func `the error of an unknown key lists the known keys`() {
  #expect(
    refusal("[discovery]\nmdns = x")
      == "box.conf:2: [discovery] has no key “mdns”; expected dns-sd")
}

@Test func `a mesh is off by default and keeps its values`() throws {
  #expect(try !parse("#").mesh.isEnabled)
  let mesh = try parse(
    "[mesh]\nenabled = yes\ninterface = wlp1\nssid = back bone\npassphrase = eight \"88\nfrequency = 5180\nforwarding = no"
  ).mesh
  #expect(mesh.isEnabled && mesh.interface == "wlp1" && mesh.ssid == "back bone" && mesh.passphrase == "eight \"88")
  #expect(mesh.frequency == 5180 && !mesh.isForwarding)
}

@Test func `a mesh without SSID, passphrase or IP is refused`() {
  #expect(
    refusal("[mesh]\nenabled = yes\npassphrase = eightchars")
      == "box.conf: [mesh] has no ssid: set it, the same on all boxes")
  #expect(
    refusal("[mesh]\nenabled = yes\nssid = x") == "box.conf: [mesh] has no passphrase: set it, the same on all boxes")
  #expect(
    refusal("[mesh]\nenabled = yes\nssid = x\npassphrase = eightchars\n[ip]\nenabled = no")
      == "box.conf: [mesh] needs IP: set [ip] enabled = yes")
  #expect(refusal("[mesh]\nenabled = no\nssid = x") == nil)
}

@Test func `IP over Bluetooth is off by default, and needs a bridge and Bluetooth classic`() throws {
  #expect(try parse("[bluetooth]\nclassic = yes").bluetooth.networkBridge == "")
  #expect(try parse("[bluetooth]\nclassic = yes\nnap = br0").bluetooth.networkBridge == "br0")
  let off = try parse("[bluetooth]\nnap = br0")
  #expect(off.bluetooth.networkBridge == "" && off.warnings.first?.hasPrefix("[bluetooth] classic = no") == true)
  #expect(refusal("[bluetooth]\nnap = a/b") != nil && refusal("[bluetooth]\nnap = sixteen-letters-") != nil)
}

@Test func `IP over Bluetooth may join the Wi-Fi group if the box owns the group`() throws {
  let group = "[bluetooth]\nclassic = yes\nnap = group"
  #expect(try parse(group).bluetooth.joinsGroup && parse(group).warnings == [])
  #expect(try !parse("[bluetooth]\nclassic = yes\nnap = groups").bluetooth.joinsGroup)
  for missing in ["enabled = no", "mode = client"] {
    let off = try parse("\(group)\n[wifi-direct]\n\(missing)")
    #expect(
      off.bluetooth.networkBridge == "" && off.warnings.first?.hasPrefix("[bluetooth] nap = group is off") == true)
  }
}

@Test func `encryption is required by default`() throws {
  #expect(try Configuration.parse(Array("[node]\n".utf8), file: "box.conf").peer.encryption == .required)
  for (word, expected) in [("required", EncryptionPreference.required), ("optional", .optional), ("none", .none)] {
    let configuration = try Configuration.parse(Array("[peer]\nencryption = \(word)\n".utf8), file: "box.conf")
    #expect(configuration.peer.encryption == expected)
  }
  #expect(
    refusal("[peer]\nencryption = maybe")
      == "box.conf:2: [peer] encryption: “maybe” is not accepted; expected required, optional or none")
}

@Test func `the error of an unknown section lists the known sections`() {
  #expect(
    refusal("[wifi]\nx = 1")
      == "box.conf:1: unknown section [wifi]; expected "
      + "[node], [peer], [applications], [trust], [ip], [bluetooth], [wifi-direct], [mesh], [discovery], [board], "
      + "[journal]")
}

@Test(arguments: ["[wifi]", "[ip]\nport = 1\n  [ ip]  \n", "[ip]\r\n[IP]\r\n"])
func `an unknown section without keys is refused`(_ text: String) {
  #expect(refusal(text)?.contains("unknown section [") == true)
}

@Test func `a line that is too long is reported and does not shift the numbers of later lines`() {
  let long = String(repeating: "y", count: 4000)
  #expect(refusal("[ip]\n#\(long)\nport = x\n")?.hasPrefix("box.conf:2: longer than 1020 bytes") == true)
  #expect(
    refusal("[ip]\n#\(String(repeating: "y", count: 1019))\r\nport = x\n")?.hasPrefix("box.conf:3: [ip] port") == true)
}

@Test func `a key before any section is refused`() {
  #expect(refusal("port = 1")?.hasPrefix("box.conf:1: “port” precedes the first [section]") == true)
}

@Test func `a line without an entry is refused`() {
  #expect(refusal("[ip]\nport 7\n")?.hasPrefix("box.conf:2: not understood") == true)
  #expect(refusal("[ip\nport = 7\n")?.hasPrefix("box.conf:1: not understood") == true)
  #expect(refusal("[ip]\nport = 7\n\0")?.hasPrefix("box.conf:3: a zero byte") == true)
}

@Test func `a key may occur only once unless it is a list`() {
  #expect(refusal("[ip]\nport = 1\nport = 2") == "box.conf:3: [ip] port: given twice; expected a single line")
}

@Test func `long lines are read completely, and lines that are too long are refused`() throws {
  let value = String(repeating: "x", count: 250)
  #expect(try parse("[node]\ndiscovery-info = k=\(value), l=\(value), m=\(value)\n").node.discoveryInfo.count == 3)
  #expect(refusal("[node]\n#\(String(repeating: "y", count: 2000))\n") != nil)
}

@Test(arguments: [
  "display-name = ", "display-name = a\u{7}b", "display-name = \(String(repeating: "é", count: 32))",
  "display-name = 2b75e26e", "display-name = 0123456789abcdef0123456789ABCDEF",
  "display-name = a\u{85}b", "service-type = -a", "service-type = a--b", "service-type = 123",
  "service-type = A", "service-type = abcdefghijklmnop", "service-type = a-", "discovery-info = novalue",
  "discovery-info = =v", "discovery-info = k=1, k=2", "discovery-info = ké=1",
  "discovery-info = k=\(String(repeating: "x", count: 254))", "state-directory = relative",
  "runtime-directory = /\(String(repeating: "x", count: 80))", "relay = true", "peers-max = 0", "peers-max = 65",
])
func `invalid values of the section node are refused`(_ line: String) {
  #expect(refusal("[node]\n" + line)?.hasPrefix("box.conf:2: ") == true)
}

@Test(arguments: [
  "[ip]\ninterfaces = eth0,", "[ip]\ninterfaces = a/b", "[ip]\ninterfaces = abcdefghijklmnop", "[ip]\nport = 0",
  "[ip]\nport = -1", "[ip]\nport = 0x", "[ip]\nport = 99999999999999999999", "[ip]\npeers = host:1",
  "[ip]\npeers = 10.0.0.1", "[ip]\npeers = 10.0.0.1:0", "[ip]\npeers = ::1:5", "[ip]\npeers = [::1:5",
  "[ip]\npeers = [fe80::1]:5", "[ip]\npeers = 1.2.3.4.5:1", "[ip]\npeers = []:1", "[ip]\npeers = [fe80::1%]:1",
  "[ip]\npeers = [1.2.3.4]:1", "[ip]\npeers = [fe80::1%interfacename-16]:1", "[ip]\npeers = [2001:db8::1]x:1",
  "[ip]\npeers = :1", "[ip]\npeers = 1.2.3.4:99999999999999999999", "[ip]\npeers = [2001:db8::1%eth0]:5",
  "[bluetooth]\nadapter = hci",
  "[bluetooth]\nadapter = hci70000", "[bluetooth]\nadapter = 00:11:22:33:44",
  "[bluetooth]\nadapter = 00:11:22:33:44:5g", "[bluetooth]\nadapter = auto, hci1",
  "[bluetooth]\nadapter = hci1\nadapter = hci1",
  "[bluetooth]\nadapter = hci0, hci1, hci2, hci3, hci4",
  "[bluetooth]\npsm = 0x7f", "[wifi-direct]\nmode = ap", "[wifi-direct]\nfrequency = 100",
  "[mesh]\nenabled = maybe", "[mesh]\ninterface = a/b", "[mesh]\nssid = \(String(repeating: "s", count: 33))",
  "[mesh]\npassphrase = short", "[mesh]\nfrequency = auto", "[mesh]\nforwarding = 1",
  "[wifi-direct]\npassphrase = short", "[wifi-direct]\nssid = \(String(repeating: "s", count: 33))",
  "[discovery]\ndns-sd = on", "[journal]\nsize = 15", "[journal]\nlevel = loud",
])
func `invalid values of other sections are refused`(_ text: String) {
  #expect(refusal(text)?.contains("is not accepted; expected ") == true)
}

@Test func `addresses are parsed into their bytes`() throws {
  let c = try parse("[ip]\npeers = 10.1.2.3:5, [fe80::1:2%eth0]:6\n[bluetooth]\nadapter = 00:1a:7D:da:71:13")
  #expect(c.ip.peers[0].endpoint.low == 0xFFFF_0A01_0203 && c.ip.peers[0].endpoint.high == 0)
  #expect(c.ip.peers[0].endpoint.port == 5 && c.ip.peers[0].interface == "")
  #expect(c.ip.peers[1].endpoint.high == 0xFE80_0000_0000_0000 && c.ip.peers[1].endpoint.low == 0x1_0002)
  #expect(c.ip.peers[1].interface == "eth0" && c.ip.peers[1].endpoint.port == 6)
  #expect(c.bluetooth.adapters == [.address(0x001A_7DDA_7113)])
}

@Test func `much discovery info causes a warning, and too much is refused`() throws {
  let value = String(repeating: "x", count: 220)
  func lines(_ count: Int) -> String { (0..<count).map { "discovery-info = k\($0)=\(value)\n" }.joined() }
  #expect(try parse("[node]\n" + lines(1)).warnings.isEmpty)
  #expect(try parse("[node]\n" + lines(2)).warnings.count == 1)
  #expect(refusal("[node]\n" + lines(6))?.hasPrefix("box.conf:7: [node] discovery-info") == true)
}

@Test func `several adapters are given on one line or on several`() throws {
  #expect(
    try parse("[bluetooth]\nadapter = hci1, 00:1a:7d:da:71:13\nadapter = hci0").bluetooth.adapters == [
      .index(1), .address(0x001A_7DDA_7113), .index(0),
    ])
  #expect(try parse("#").bluetooth.adapters == [.automatic])
}

@Test func `Wi-Fi Direct is off without IP links, and a warning reports it`() throws {
  let off = try parse("[ip]\nenabled = no\n")
  #expect(!off.wifiDirect.isEnabled && off.warnings.first?.hasPrefix("[ip] enabled = no") == true)
  #expect(try parse("[ip]\nenabled = no\n[wifi-direct]\nenabled = no\n").warnings.isEmpty)
}

@Test func `a missing file is an error only if its path was given`() throws {
  #expect(throws: ConfigurationError.self) { try Configuration.load(path: "/nonexistent/box.conf") }
  if access(Configuration.defaultPath, F_OK) != 0 {
    #expect(try !Configuration.load(path: nil).node.displayName.isEmpty)
  }
}

@Test func `a missing default file next to a file with a wrong name is an error`() throws {
  var template = Array("/tmp/causeway-test-XXXXXX".utf8CString)
  let path = try #require(mkdtemp(&template).map { String(cString: $0) })
  defer { _ = system("rm -rf \(path)") }
  let file = path + "/causeway.conf"
  for name in ["anchors", ".causeway.conf.swp", "causeway.pem"] { try #require(mkdir("\(path)/\(name)", 0o700) == 0) }
  #expect(try Configuration.read(file, mayBeAbsent: true) == nil)
  for name in ["causeway.conf.txt", "CAUSEWAY.CONF", "causeway", "Causeway.txt", "box.conf", "causeway.conf~"] {
    try #require(mkdir("\(path)/\(name)", 0o700) == 0)
    let error = #expect(throws: ConfigurationError.self) { try Configuration.read(file, mayBeAbsent: true) }
    #expect(
      error?.text == "there is “\(path)/\(name)” and no \(file); "
        + "rename the file, or remove it to use the defaults, which accept every node")
    try #require(rmdir("\(path)/\(name)") == 0)
  }
}

@Test func `a default file that cannot be reached is an error`() throws {
  var template = Array("/tmp/causeway-test-XXXXXX".utf8CString)
  let path = try #require(mkdtemp(&template).map { String(cString: $0) })
  defer { _ = system("rm -rf \(path)") }
  func isAbsent(_ file: String) throws -> Bool { try Configuration.read(file, mayBeAbsent: true) == nil }
  #expect(try isAbsent(path + "/box.conf"))
  #expect(try isAbsent(path + "/causeway/box.conf"))
  for (link, file) in [("box.conf", "box.conf"), ("causeway", "causeway/box.conf"), ("far", "far/causeway/box.conf")] {
    try #require(symlink("/nonexistent/data", path + "/" + link) == 0)
    let error = #expect(throws: ConfigurationError.self, "\(file)") { try isAbsent(path + "/" + file) }
    #expect(error?.text.contains("\(path)/\(link) is a dangling link") == true, "\(error?.text ?? "")")
  }
  try #require(symlink("loop", path + "/loop") == 0)
  #expect(throws: ConfigurationError.self) { try isAbsent(path + "/loop") }
  #expect(throws: ConfigurationError.self) { try isAbsent(path + "/loop/box.conf") }
}

@Test func `the shipped file contains every key, and its examples are accepted`() throws {
  let path = #filePath.replacing("Tests/ConfigurationTests/ConfigurationTests.swift", with: "config/causeway.conf")
  #expect(try Configuration.load(path: path).warnings.isEmpty)
  let file = try #require(fopen(path, "r"))
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 65536)
  let count = fread(&bytes, 1, bytes.count, file)
  let text = String(decoding: bytes[..<count], as: UTF8.self)
  let uncommented = text.split(separator: "\n").map { line in
    line.hasPrefix("#") && !line.hasPrefix("# ") && line.contains(" = ") ? String(line.dropFirst()) : String(line)
  }
  let c = try parse(uncommented.joined(separator: "\n"))
  #expect(c.node.displayName == "living room" && c.wifiDirect.passphrase == "correct horse battery")
  let keys = uncommented.filter { !$0.hasPrefix("#") && $0.contains(" = ") }.map { String($0.prefix { $0 != " " }) }
  for word in refusedKeyLists() { #expect(keys.contains(word), "\(word) is missing in config/causeway.conf") }
}

@Test func `a status LED is a name of the LED class`() throws {
  #expect(try parse("[board]\nstatus-led = board:green:usr0").board.statusLED == "board:green:usr0")
  for name in ["..", "../ACT", "two words", String(repeating: "x", count: 64)] {
    #expect(refusal("[board]\nstatus-led = \(name)")?.contains("/sys/class/leds") == true)
  }
}

/// All key names that the errors about an unknown section and an unknown key list.
private func refusedKeyLists() -> [String] {
  expected(by: "[no-such-section]").flatMap { expected(by: "\($0)\nno-such-key = 1") }
}

private func expected(by text: String) -> [String] {
  (refusal(text) ?? "").split(separator: "expected ")[1].split(separator: ", ").map(String.init)
}

@Test(arguments: [
  ("[trust] policy = ca\n[node]\n", 1), ("[node]\n[trust]policy = ca", 2), ("[trust]]\n", 1), ("[trust] [ip]\n", 1),
  ("[ip]\r\n[trust] x\r\n", 2),
])
func `text after a section name is refused with its line`(text: String, line: Int) {
  #expect(refusal(text)?.hasPrefix("box.conf:\(line): text behind [") == true, "\(refusal(text) ?? "accepted")")
}

@Test func `a comment may follow a section name`() throws {
  #expect(try parse("[trust]  # who gets in\npolicy = ca").trust.policy == .authority)
  #expect(try parse("[trust];\npolicy = ca").trust.policy == .authority)
}

@Test(arguments: [
  ("[trust]\rpolicy = ca\r", 1), ("# comment\r[trust]\rpolicy = ca\r", 1), ("[trust]\n# a\rpolicy = ca\n", 2),
  ("[trust]\r\r\npolicy = ca", 1), ("[trust]\npolicy = ca\r\r\n", 2),
])
func `a carriage return alone does not end a line`(text: String, line: Int) {
  #expect(refusal(text)?.hasPrefix("box.conf:\(line): a carriage return within a line") == true)
}

@Test(arguments: ["\u{B}", "\u{C}", "\u{1B}", "\u{7F}", "\u{85}", "\u{2028}", "\u{2029}"])
func `other characters that some programs treat as line ends are refused`(separator: String) {
  #expect(refusal("[trust]\n# off:\(separator)policy = ca\n")?.hasPrefix("box.conf:2: ") == true)
}

@Test(arguments: ["", "\n", "\u{FEFF}", " \t\r\n\n"]) func `an empty file is refused`(text: String) {
  #expect(refusal(text)?.hasPrefix("box.conf: empty; was it cut?") == true)
  for some in ["#", ";", "[trust]"] { #expect(refusal(text + some) == nil, "\(some)") }
}

@Test(arguments: [[0x85], [0xC0, 0x8A], [0xE9], [0xED, 0xA0, 0x80], [0xC3]] as [[UInt8]])
func `a line that is not UTF-8 is refused`(bytes: [UInt8]) {
  for file in [
    Array("[trust]\n# x".utf8) + bytes + Array("policy = ca".utf8) + bytes + [0x0A],
    Array("[trust]\npolicy = ca # ".utf8) + bytes + Array("\n[ip]\n".utf8),
    Array("[trust]\n#".utf8) + bytes,
  ] {
    let error = #expect(throws: ConfigurationError.self) { try Configuration.parse(file, file: "box.conf") }
    #expect(error?.text.hasPrefix("box.conf:2: not UTF-8") == true, "\(error?.text ?? "")")
  }
}

@Test func `a byte order mark is allowed only at the start of a file`() throws {
  #expect(try parse("\u{FEFF}[trust]\npolicy = ca").trust.policy == .authority)
  #expect(refusal("[ip]\n\u{FEFF}[trust]\npolicy = ca")?.hasPrefix("box.conf:2: ") == true)
  for mark in [[0xFF, 0xFE], [0xFE, 0xFF], []] as [[UInt8]] {
    var file = mark
    for byte in "[trust]\npolicy = ca\n".utf8 { file += mark.first == 0xFE ? [0, byte] : [byte, 0] }
    #expect(throws: ConfigurationError.self) { try Configuration.parse(file, file: "box.conf") }
  }
}

@Test func `more list entries than the limit are refused`() throws {
  let names = (0..<33).map { "eth\($0)" }, peers = (0..<33).map { "10.0.0.2:\(1000 + $0)" }
  for (key, values) in [("interfaces", names), ("peers", peers)] {
    #expect(refusal("[ip]\n\(key) = \(values.prefix(32).joined(separator: ","))") == nil)
    #expect(refusal("[ip]\n\(key) = \(values.joined(separator: ","))")?.contains("at most 32") == true)
  }
}

@Test func `the last line needs no line end`() throws {
  for end in ["", "\n", "\r\n", "\r"] { #expect(try parse("[trust]\npolicy = ca" + end).trust.policy == .authority) }
}

/// Every line in the section `[trust]` is either read, or refused with its line number.
@Test func `no line is skipped`() {
  let lines = [
    "policy = ca", "policy: ca", " policy = ca", "policy ca", "policy", "=", "= ca", "policy =", "policy = ca # x",
    "[trust",
    "trust]", "[]", "[ trust ]", "[trust] ", "[TRUST]", "!policy = ca", "policy = ca;", "polícy = ca", "-- policy = ca",
    "\"policy\" = ca", "policy == ca", "policy = \"ca\"", "policy = ca,", "// policy = ca", "include = x", "@include x",
  ]
  for line in lines {
    let configuration = try? parse("[trust]\n\(line)\n")
    let isRead = configuration?.trust.policy == .authority || line == "[trust] "
    if !isRead { #expect(refusal("[trust]\n\(line)\n")?.hasPrefix("box.conf:2: ") == true, "\(line)") }
  }
}
