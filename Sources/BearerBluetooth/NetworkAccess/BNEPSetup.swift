import Primitives

/// The connection setup of BNEP (Bluetooth Network Encapsulation Protocol 1.0, 2.6.3). In the first SDU of a channel, a
/// peer sends its own role and the role that it requests from this node. The kernel carries the frames that follow.
enum BNEPSetup {
  /// The L2CAP PSM of BNEP (Assigned Numbers, 2.5).
  static let psm: UInt16 = 0x000F
  /// The smallest MTU that both ends must support, in bytes: an Ethernet frame with its headers (2.2).
  static let unitBytesMin: UInt16 = 1691
  /// The maximum length of a setup request without extensions, in bytes: two UUIDs of 16 bytes after 3 bytes.
  static let requestBytesMax = 3 + 2 * 16

  static let networkAccessPoint = DataElement(uuid: 0x1116)
  private static let user = DataElement(uuid: 0x1115)

  private static let control: UInt8 = 0x01
  private static let hasExtension: UInt8 = 0x80
  private static let setupRequest: UInt8 = 0x01
  private static let setupResponse: UInt8 = 0x02

  /// The decision of a network access point about the first SDU of a channel.
  enum Verdict: Equatable {
    case welcome
    case refused(Refusal)
    /// The SDU is not a setup request.
    case malformed
  }

  /// The codes with which a setup response refuses a request (2.6.3.2).
  enum Refusal: UInt16 {
    case destination = 1
    case source = 2
    case uuidSize = 3
    case notAllowed = 4
  }

  /// Decides about `unit`, the first SDU of a channel, which may be truncated beyond `requestBytesMax`. Extensions
  /// after the request are ignored. A peer in the role of a user that requests an access point is accepted (Personal
  /// Area Networking Profile 1.0, 6.4).
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
