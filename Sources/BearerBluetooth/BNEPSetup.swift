import Primitives

/// How a peer says which role it has and which one it wants, in the first unit of a channel: the setup of BNEP (Bluetooth
/// Network Encapsulation Protocol 1.0, 2.6.3). The kernel carries what follows.
enum BNEPSetup {
  /// That of L2CAP (Assigned Numbers, 2.5).
  static let psm: UInt16 = 0x000F
  /// The smallest MTU that both ends must have: an Ethernet frame with its headers (2.2).
  static let unitBytesMin: UInt16 = 1691
  /// The longest request that has no extensions: two UUIDs of 16 bytes.
  static let requestBytesMax = 3 + 2 * 16

  static let networkAccessPoint = DataElement(uuid: 0x1116)
  private static let user = DataElement(uuid: 0x1115)

  private static let control: UInt8 = 0x01
  private static let hasExtension: UInt8 = 0x80
  private static let setupRequest: UInt8 = 0x01
  private static let setupResponse: UInt8 = 0x02

  /// What a network access point makes of a unit.
  enum Verdict: Equatable {
    case welcome
    case refused(Refusal)
    /// It is no request.
    case malformed
  }

  /// The codes of a response (2.6.3.2).
  enum Refusal: UInt16 {
    case destination = 1
    case source = 2
    case uuidSize = 3
    case notAllowed = 4
  }

  /// Looks at the first unit of a channel, of which more than `requestBytesMax` need not be there. Extensions behind the request are
  /// not looked at. Welcome is a user that wants an access point (Personal Area Networking Profile 1.0, 6.4).
  static func verdict(on unit: [UInt8]) -> Verdict {
    guard unit.count >= 3, unit[0] & ~hasExtension == control, unit[1] == setupRequest else { return .malformed }
    let size = Int(unit[2]), end = 3 + 2 * size
    guard size == 2 || size == 4 || size == 16 else { return .refused(.uuidSize) }
    guard unit[0] == control ? unit.count == end : unit.count > end else { return .malformed }
    if !matches(unit[3..<(3 + size)], networkAccessPoint) { return .refused(.destination) }
    return matches(unit[(3 + size)..<end], user) ? .welcome : .refused(.source)
  }

  static func response(_ refusal: Refusal) -> [UInt8] {
    [control, setupResponse, 0, UInt8(truncatingIfNeeded: refusal.rawValue)]
  }

  private static func matches(_ uuid: ArraySlice<UInt8>, _ wanted: DataElement) -> Bool {
    DataElement(type: DataElement.uuid, value: Array(uuid)).longUUID == wanted.longUUID
  }
}
