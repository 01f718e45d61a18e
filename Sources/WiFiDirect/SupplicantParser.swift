import BearerIP

/// Parses messages from wpa_supplicant: "<3>EVENT …", or "IFNAME=wlan0 <3>EVENT …" on the global socket.
///
/// Device names, SSIDs and passphrases are untrusted. Other fields are therefore searched only after the last untrusted
/// text of a message.
public enum SupplicantParser {
  /// The maximum length of a message in bytes: twice CTRL_IFACE_MAX_LEN (4096) of wpa_supplicant.
  public static let messageBytesMax = 8192

  /// Parses a message. Returns nil if the message is the reply to a command.
  public static func parse(_ message: ArraySlice<UInt8>) -> SupplicantMessage? {
    var text = message
    while let last = text.last, last == 0x0A || last == 0x20 { text.removeLast() }
    var interface = ""
    if let rest = text.after("IFNAME=") {
      guard let blank = rest.firstIndex(of: 0x20) else { return nil }
      interface = string(rest[..<blank])
      text = rest[(blank + 1)...]
    }
    // An event begins with its level: "<", digits, ">". A reply does not.
    guard text.first == UInt8(ascii: "<"), let end = text.prefix(4).firstIndex(of: UInt8(ascii: ">")) else {
      return nil
    }
    return SupplicantMessage(interface: interface, event: event(text[(end + 1)...]))
  }

  private static func event(_ text: ArraySlice<UInt8>) -> SupplicantEvent {
    if let rest = text.after("P2P-DEVICE-FOUND ") { return deviceFound(rest) }
    if let rest = text.after("P2P-GROUP-STARTED ") { return groupStarted(rest) }
    if let rest = text.after("P2P-GROUP-REMOVED ") {
      let reason = rest.field("reason=", behind: rest.startIndex) ?? []
      return .groupRemoved(interface: string(rest.word), reason: string(reason))
    }
    if let rest = text.after("P2P-PROV-DISC-PBC-REQ ") { return pushButtonRequested(rest) }
    if let rest = text.after("WPS-M2D ") {
      let reason = rest.field("config_error=", behind: rest.startIndex) ?? []
      return number(reason) == 12 ? .pushButtonOverlap : .other
    }
    if let rest = text.after("AP-STA-CONNECTED ") ?? text.after("MESH-PEER-CONNECTED ") {
      return station(rest) { .stationConnected($0) }
    }
    if let rest = text.after("AP-STA-DISCONNECTED ") ?? text.after("MESH-PEER-DISCONNECTED ") {
      return station(rest) { .stationDisconnected($0) }
    }
    if let rest = text.after("MESH-SAE-AUTH-FAILURE addr=") { return station(rest) { .meshPeerRefused($0) } }
    if text.after("mesh join error=") != nil { return .meshRefused }
    if let rest = text.after("CTRL-EVENT-AUTH-REJECT ") ?? text.after("CTRL-EVENT-ASSOC-REJECT ") {
      let status = rest.field("status_code=", behind: rest.startIndex) ?? []
      return number(status) == 17 ? .full : .other
    }
    return simpleEvent(string(text.word))
  }

  private static func simpleEvent(_ name: String) -> SupplicantEvent {
    for (known, event) in simpleEvents where sameText(name, known) { return event }
    return .other
  }

  private static var simpleEvents: [(String, SupplicantEvent)] {
    [
      ("P2P-FIND-STOPPED", .findStopped),
      ("P2P-GROUP-FORMATION-FAILURE", .formationFailed),
      ("P2P-GO-NEG-FAILURE", .formationFailed),
      ("P2P-PROV-DISC-FAILURE", .formationFailed),
      ("WPS-PBC-DISABLE", .pushButtonEnded),
      ("WPS-TIMEOUT", .pushButtonEnded),
      ("WPS-OVERLAP-DETECTED", .pushButtonOverlap),
      ("CTRL-EVENT-CONNECTED", .connected),
      ("CTRL-EVENT-DISCONNECTED", .disconnected),
      ("CTRL-EVENT-TERMINATING", .terminating),
    ]
  }

  private static func station(
    _ text: ArraySlice<UInt8>, _ make: (MACAddress) -> SupplicantEvent
  ) -> SupplicantEvent {
    guard let address = MACAddress(parsing: text.word) else { return .other }
    return make(address)
  }

  /// Parses "42:… p2p_dev_addr=42:… pri_dev_type=… name='Node2' …". The name is untrusted, and the address stands
  /// before the name.
  private static func pushButtonRequested(_ text: ArraySlice<UInt8>) -> SupplicantEvent {
    guard let address = text.field("p2p_dev_addr=", behind: text.startIndex) else { return .other }
    return station(address) { .pushButtonRequested($0) }
  }

  /// Parses "46:… p2p_dev_addr=42:… pri_dev_type=… name='Node1' config_methods=0x80 dev_capab=0x27 group_capab=0x89
  /// new=0".
  private static func deviceFound(_ text: ArraySlice<UInt8>) -> SupplicantEvent {
    guard let transmitter = MACAddress(parsing: text.word), let nameStart = text.first("name='"),
      let nameEnd = text.last("' config_methods="), nameStart <= nameEnd,
      let address = text[..<nameStart].field("p2p_dev_addr=", behind: text.startIndex),
      let device = MACAddress(parsing: address),
      let capability = text.field("group_capab=0x", behind: nameEnd), let lastDigit = capability.last,
      let bits = hexadecimalDigit(lastDigit)
    else { return .other }
    let name = string(text[nameStart..<nameEnd])
    return .deviceFound(
      FoundDevice(address: device, transmitter: transmitter, name: name, isGroupOwner: bits & 1 != 0))
  }

  /// Parses "p2p-wlan0-0 GO ssid="…" freq=2462 passphrase="…" go_dev_addr=42:…", or for a client
  /// "p2p-wlan1-0 client ssid="…" freq=2462 psk=… go_dev_addr=42:… ip_addr=… ip_mask=… go_ip_addr=…".
  private static func groupStarted(_ text: ArraySlice<UInt8>) -> SupplicantEvent {
    let interface = text.word
    let role = text[interface.endIndex...].dropFirst().word
    guard !interface.isEmpty, interface.count < 16, interface.allSatisfy({ $0 < 0x80 }),
      let ssidStart = text.first("ssid=\""),
      let (ssid, ssidEnd) = unescaped(text, from: ssidStart), let ownerStart = text.last("go_dev_addr="),
      ownerStart > ssidEnd
    else { return .other }
    var group = StartedGroup(
      interface: string(interface), isOwner: role.elementsEqual("GO".utf8), ssid: string(ssid[...]), frequency: 0,
      passphrase: "", address: 0, mask: 0, ownerAddress: 0)
    guard group.isOwner || role.elementsEqual("client".utf8) else { return .other }
    if let frequency = text.field("freq=", behind: ssidEnd) { group.frequency = number(frequency) }
    if let start = text[ssidEnd...].first("passphrase=\""), let end = text.last("\" go_dev_addr="), start <= end {
      group.passphrase = string(text[start..<end])
    }
    func address(_ name: StaticString) -> UInt32 {
      text.field(name, behind: ownerStart).flatMap { parseIPv4($0) } ?? 0
    }
    group.address = address(" ip_addr=")
    group.mask = address(" ip_mask=")
    group.ownerAddress = address(" go_ip_addr=")
    return .groupStarted(group)
  }

  /// Decodes the output of wpa_supplicant's printf_encode up to the closing quote. Also returns the position after the
  /// quote.
  private static func unescaped(_ text: ArraySlice<UInt8>, from start: Int) -> ([UInt8], Int)? {
    var bytes: [UInt8] = []
    var at = start
    while at < text.endIndex {
      let byte = text[at]
      at += 1
      if byte == UInt8(ascii: "\"") { return (bytes, at) }
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      guard at < text.endIndex else { return nil }
      let escape = text[at]
      at += 1
      switch escape {
      case UInt8(ascii: "n"): bytes.append(0x0A)
      case UInt8(ascii: "r"): bytes.append(0x0D)
      case UInt8(ascii: "t"): bytes.append(0x09)
      case UInt8(ascii: "e"): bytes.append(0x1B)
      case UInt8(ascii: "x"):
        guard at + 1 < text.endIndex, let high = hexadecimalDigit(text[at]), let low = hexadecimalDigit(text[at + 1])
        else { return nil }
        bytes.append(high << 4 | low)
        at += 2
      default: bytes.append(escape)
      }
    }
    return nil
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> UInt32 {
    var value: UInt32 = 0
    for digit in digits.prefix(6) {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return 0 }
      value = value * 10 + UInt32(digit - UInt8(ascii: "0"))
    }
    return value
  }
}

func string(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

extension ArraySlice<UInt8> {
  /// The rest after `prefix`, or nil if the text does not start with it.
  func after(_ prefix: StaticString) -> ArraySlice<UInt8>? {
    isText(prefix, at: startIndex) ? self[(startIndex + prefix.utf8CodeUnitCount)...] : nil
  }

  /// The bytes up to the first blank.
  var word: ArraySlice<UInt8> { prefix { $0 != 0x20 } }

  /// The word that follows the first occurrence of `name` at or after the index `behind`; nil if there is none.
  func field(_ name: StaticString, behind: Int) -> ArraySlice<UInt8>? {
    self[behind...].first(name).map { self[$0...].word }
  }

  /// The index after the first occurrence of `text`; nil if there is none.
  func first(_ text: StaticString) -> Int? {
    for index in indices where isText(text, at: index) { return index + text.utf8CodeUnitCount }
    return nil
  }

  /// The index at which the last occurrence of `text` begins; nil if there is none.
  func last(_ text: StaticString) -> Int? {
    for index in indices.reversed() where isText(text, at: index) { return index }
    return nil
  }

  private func isText(_ text: StaticString, at index: Int) -> Bool {
    let count = text.utf8CodeUnitCount
    guard index + count <= endIndex else { return false }
    for offset in 0..<count where self[index + offset] != text.utf8Start[offset] { return false }
    return true
  }
}
