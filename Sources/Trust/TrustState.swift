import Frame
import Primitives
import SecureTransport

/// A pin: a display name and the key to which it belongs.
public struct Pin: Equatable, Sendable {
  public let node: NodeID
  /// The display name in UTF-8; empty for a key that was pinned without a name.
  public let name: [UInt8]
  /// Whether the operator set the pin, rather than trust on first use.
  public let isByOperator: Bool
  /// The form by which names are compared (`nameSkeleton`).
  let skeleton: [UInt8]

  init(node: NodeID, name: [UInt8], isByOperator: Bool) {
    self.node = node
    self.name = name
    self.isByOperator = isByOperator
    skeleton = nameSkeleton(name)
  }

  /// Whether a name with this skeleton is this pin's name or looks like it.
  func holds(_ skeleton: [UInt8]) -> Bool { !name.isEmpty && self.skeleton == skeleton }
}

/// The persistent state apart from the key: one file, replaced as a whole.
struct TrustState: Equatable {
  /// The counter in the upper half of the node's epoch; each start raises it (`TrustStore.nextEpoch`).
  var epochCounter: UInt32 = 0
  /// The latest saved synchronised time in seconds since 1970; 0 for none.
  var keptSeconds: Int64 = 0
  var pins: [Pin] = []
  /// The keys that this node's operator revoked, ascending, and the number of changes of that list.
  var denied: [NodeID] = []
  var deniedSerial: UInt64 = 0
  var deniedSeconds: UInt64 = 0
  /// Signed deny-lists of other operators, as received.
  var lists: [[UInt8]] = []

  /// Whether both states refuse the same nodes and pin the same keys.
  func decidesLike(_ other: TrustState) -> Bool {
    pins == other.pins && denied == other.denied && deniedSerial == other.deniedSerial && lists == other.lists
  }

  static let bytesMax = 65_536
  private static let magic: UInt32 = 0x4357_5331

  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: Self.magic)
    bytes.append(bigEndian: epochCounter)
    bytes.append(bigEndian: keptSeconds)
    bytes.append(bigEndian: UInt16(pins.count))
    for pin in pins {
      bytes.append(pin.node)
      bytes.append(pin.isByOperator ? 1 : 0)
      bytes.append(UInt8(truncatingIfNeeded: pin.name.count))
      bytes += pin.name
    }
    bytes.append(bigEndian: deniedSerial)
    bytes.append(bigEndian: deniedSeconds)
    bytes.append(bigEndian: UInt16(denied.count))
    for node in denied { bytes.append(node) }
    bytes.append(UInt8(lists.count))
    for list in lists {
      bytes.append(bigEndian: UInt16(truncatingIfNeeded: list.count))
      bytes += list
    }
    return bytes
  }

  init() {}

  /// Returns nil if no version of this program wrote these bytes.
  init?(_ bytes: [UInt8]) {
    guard let state = try? TrustState(checked: bytes) else { return nil }
    self = state
  }

  private init(checked bytes: [UInt8]) throws(Damage) {
    var reader = ByteReader(bytes.span.bytes, orThrow: Damage())
    if try reader.u32() != Self.magic { throw Damage() }
    epochCounter = try reader.u32()
    keptSeconds = Int64(bitPattern: try reader.u64())
    for _ in 0..<(try Self.checked(Int(try reader.u16()), max: TrustLimits.pinsMax)) {
      let node = try reader.nodeID(), isByOperator = try reader.u8() == 1
      pins.append(Pin(node: node, name: try reader.array(Int(try reader.u8())), isByOperator: isByOperator))
    }
    deniedSerial = try reader.u64()
    deniedSeconds = try reader.u64()
    for _ in 0..<(try Self.checked(Int(try reader.u16()), max: Limits.deniedMax)) { denied.append(try reader.nodeID()) }
    for _ in 0..<(try Self.checked(Int(try reader.u8()), max: TrustLimits.operatorsMax)) {
      lists.append(try reader.array(Int(try reader.u16())))
    }
    if reader.remaining != 0 { throw Damage() }
  }

  private struct Damage: Error {}

  private static func checked(_ count: Int, max: Int) throws(Damage) -> Int {
    if count > max { throw Damage() }
    return count
  }
}

/// How many places for pins are free. Pins by the operator alone cause no warning.
public enum PinsLeft: Sendable {
  case many
  /// At least half of the places are taken, some of them by unverified pins.
  case few
  /// All places are taken, so names of new peers are not protected.
  case none
}

/// Limits on stored trust.
public enum TrustLimits {
  /// The maximum number of pins. Strangers can fill the places with pins of first use, at the rates below. A pin by the
  /// operator evicts the unverified pin that was used longest ago. Strangers evict no pin; otherwise 256 keys would be
  /// enough to take over any name.
  public static let pinsMax = 256
  /// The number of pins from which the operator is warned if some are unverified.
  public static let pinsWarned = pinsMax / 2
  /// The rate of new pins of first use from one address. A key that exceeds it gets a link without a pin.
  public static let newPinRate = TokenRate(interval: .seconds(600), burst: 16)
  /// The rate of new pins of first use over one bearer, because addresses may be invented. Ethernet, Wi-Fi, Wi-Fi
  /// Direct and Bluetooth together can burst to fill half of the table.
  public static let bearerPinRate = TokenRate(interval: .seconds(120), burst: 32)
  /// The maximum number of stored alarms per pin. A stranger with many keys can fill the places of one pin and all
  /// shared places, but not the first place of another pin.
  public static let alarmsOfPinMax = 4
  /// The number of places for alarms beyond the first one of each pin.
  public static let alarmsSharedMax = 16
  /// The interval in which at most one alarm per pin is logged; all are counted.
  public static let alarmLogInterval = TimeSpan.seconds(600)
  /// The maximum number of settled keys per pin. Beyond it the oldest key may raise an alarm again.
  public static let settledOfPinMax = 8
  /// The maximum number of listed refused peers. A new one evicts the oldest entry of the address with the most
  /// entries.
  public static let strangersMax = 16
  /// The maximum number of operators whose deny-lists are accepted, besides this node.
  public static let operatorsMax = 4
}
