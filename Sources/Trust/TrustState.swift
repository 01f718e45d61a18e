import Frame
import Primitives
import SecureTransport

/// A pin: a display name and the key to which it belongs.
public struct Pin: Equatable, Sendable {
  public let node: NodeID
  /// The display name in UTF-8, or empty for a key that was pinned without a name.
  public let name: [UInt8]
  /// Whether the operator set the pin. If false, trust on first use set the pin.
  public let isByOperator: Bool
  /// The form of the name in which names are compared (`nameSkeleton`).
  let skeleton: [UInt8]

  init(node: NodeID, name: [UInt8], isByOperator: Bool) {
    self.node = node
    self.name = name
    self.isByOperator = isByOperator
    skeleton = nameSkeleton(name)
  }

  /// Whether a name with this skeleton is the name of this pin or looks like that name.
  func holds(_ skeleton: [UInt8]) -> Bool { !name.isEmpty && self.skeleton == skeleton }
}

/// The persistent state except the node's key. The state is one file, which each write replaces completely.
struct TrustState: Equatable {
  /// The counter in the upper half of the node's epoch. Each start raises the counter (`TrustStore.nextEpoch`).
  var epochCounter: UInt32 = 0
  /// The latest saved synchronised time in seconds since 1970, or 0 if no time was saved.
  var keptSeconds: Int64 = 0
  var pins: [Pin] = []
  /// The deny-list of this node: the ids of the keys that its operator revoked, in ascending order. `deniedSerial` is
  /// the number of changes of the list, and `deniedSeconds` the time of the last change, in seconds since 1970.
  var denied: [NodeID] = []
  var deniedSerial: UInt64 = 0
  var deniedSeconds: UInt64 = 0
  /// The signed deny-lists of other operators, as received.
  var lists: [[UInt8]] = []

  /// Whether this state and `other` revoke the same keys and have the same pins.
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

  /// Decodes the bytes of a state file. Returns nil if no version of this program can have written the bytes.
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

/// How many slots for pins are free. If all pins are by the operator, the value is `many`, so there is no warning.
public enum PinsLeft: Sendable {
  case many
  /// At least half of the slots are occupied, some of them by unverified pins.
  case few
  /// All slots are occupied, some of them by unverified pins, so the names of new peers are not protected.
  case none
}

/// The limits on pins, alarms, refused peers and operators.
public enum TrustLimits {
  /// The maximum number of pins. Strangers can fill the table with pins of first use, at a limited rate. When the table
  /// is full, a pin by the operator evicts the unverified pin that was used longest ago. Strangers evict no pin;
  /// otherwise 256 keys would be enough to take over any name.
  public static let pinsMax = 256
  /// When the table has this number of pins and some of them are unverified, the operator is warned.
  public static let pinsWarned = pinsMax / 2
  /// The maximum rate of new pins of first use from one address. A key that exceeds the rate gets a link without a pin.
  public static let newPinRate = TokenRate(interval: .seconds(600), burst: 16)
  /// The maximum rate of new pins of first use over one bearer, because addresses may be invented. The bursts of
  /// Ethernet, Wi-Fi, Wi-Fi Direct and Bluetooth together fill half of the table.
  public static let bearerPinRate = TokenRate(interval: .seconds(120), burst: 32)
  /// The maximum number of stored alarms for each pin. A stranger with many keys can fill the slots of one pin and all
  /// shared slots, but not the first slot of another pin.
  public static let alarmsOfPinMax = 4
  /// The number of slots that the pins share for all alarms except the first of each pin.
  public static let alarmsSharedMax = 16
  /// The interval in which at most one alarm of each pin is logged. All alarms are counted.
  public static let alarmLogInterval = TimeSpan.seconds(600)
  /// The maximum number of settled keys for each pin: keys that the operator declared not to be the pinned peer. If a
  /// pin has more settled keys, the oldest of these keys can raise an alarm again.
  public static let settledOfPinMax = 8
  /// The maximum number of refused peers in the list. When the list is full, a new entry replaces the oldest entry of
  /// the address with the most entries.
  public static let strangersMax = 16
  /// The maximum number of operators whose deny-lists are accepted, besides this node.
  public static let operatorsMax = 4
}
