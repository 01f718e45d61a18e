import JSON
import Primitives
import Text

/// The data with which a phone joins the box's Wi-Fi group as an ordinary station, and verifies the box.
public struct JoinInvitation: Equatable, Sendable {
  /// The box's display name.
  public var name: String
  /// The box's node id: the fingerprint of its key.
  public var id: String
  /// The network name of the Wi-Fi group: at most 32 bytes.
  public var ssid: String
  /// The WPA2 passphrase of the group: 8 to 63 printable ASCII characters.
  public var passphrase: String
  /// The box's IPv4 address in the group.
  public var address: String
  /// The frequency of the group's channel in MHz.
  public var frequency: UInt64

  public init(name: String, id: String, ssid: String, passphrase: String, address: String, frequency: UInt64) {
    self.name = name
    self.id = id
    self.ssid = ssid
    self.passphrase = passphrase
    self.address = address
    self.frequency = frequency
  }

  /// The text of a QR code that phone cameras understand (Wi-Fi Alliance, WPA3 Specification, 7). Special characters
  /// are escaped in the older way that phones expect (ZXing, “Barcode contents”).
  ///
  /// The fingerprint is in a private field `CW` at the end, which other readers ignore. ZXing searches the complete
  /// text for the names of fields. The name `CW` therefore contains no standard name, such as `S` or `P`.
  public func uri(withFingerprint: Bool) -> [UInt8] {
    var text = Array("WIFI:T:WPA;S:".utf8)
    escape(ssid, into: &text)
    text += ";P:".utf8
    escape(passphrase, into: &text)
    if withFingerprint { text += ";CW:\(id)".utf8 }
    text += ";;".utf8
    return text
  }

  /// The answer to the request 'J' of the control socket, as JSON (RFC 8259). The answer contains the passphrase.
  public func toJSON() -> [UInt8] {
    let object = JSONObject()
    object.set("name", name)
    object.set("id", id)
    object.set("ssid", ssid)
    object.set("passphrase", passphrase)
    object.set("address", address)
    object.set("frequency", frequency)
    object.set("uri", String(decoding: uri(withFingerprint: true), as: UTF8.self))
    return object.text()
  }

  /// Parses the output of `toJSON`.
  public init(_ json: [UInt8]) throws(AccessError) {
    guard let root = JSONView(parsing: json) else { throw .notUnderstood }
    defer { root.release() }
    self.init(
      name: root["name"].string, id: root["id"].string, ssid: root["ssid"].string,
      passphrase: root["passphrase"].string,
      address: root["address"].string, frequency: root["frequency"].number)
  }
}

private func escape(_ value: String, into text: inout [UInt8]) {
  for byte in value.utf8 {
    switch byte {
    case UInt8(ascii: "\\"), UInt8(ascii: ";"), UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "\""):
      text += [UInt8(ascii: "\\"), byte]
    default: text.append(byte)
    }
  }
}
