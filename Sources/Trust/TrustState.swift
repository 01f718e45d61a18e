import Frame
import Primitives
import SecureTransport

/// A name and the key that stands for it.
public struct Pin: Equatable, Sendable {
  public let node: NodeID
  /// The display name's bytes; empty for a key that was pinned without one.
  public let name: [UInt8]
  /// Pinned by the operator rather than at first sight.
  public let isByOperator: Bool
  /// What names are compared by: `nameSkeleton`.
  let skeleton: [UInt8]

  init(node: NodeID, name: [UInt8], isByOperator: Bool) {
    self.node = node
    self.name = name
    self.isByOperator = isByOperator
    skeleton = nameSkeleton(name)
  }

  /// Whether a name is this pin's, or looks like it.
  func holds(_ skeleton: [UInt8]) -> Bool { !name.isEmpty && self.skeleton == skeleton }
}

/// The persistent state besides the key: one file, replaced whole.
struct TrustState: Equatable {
  /// Starts so far.
  var epochCounter: UInt32 = 0
  /// The latest synchronised time, seconds since 1970; 0 for none.
  var keptSeconds: Int64 = 0
  var pins: [Pin] = []
  /// The keys that this node's operator revoked here, ascending, and how often that list was changed.
  var denied: [NodeID] = []
  var deniedSerial: UInt64 = 0
  var deniedSeconds: UInt64 = 0
  /// Deny-lists of other operators, signed, as they came.
  var lists: [[UInt8]] = []

  /// Whether the same nodes are refused and known.
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

  /// Nil for bytes that no version of this program wrote.
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

/// Whether there are places for pins. Pins of the operator alone are no reason to warn.
public enum PinsLeft: Sendable {
  case many
  /// Half of the places are taken, some of them by unverified pins.
  case few
  /// Names of new peers are not protected.
  case none
}

/// How much is kept.
public enum TrustLimits {
  /// Pinned names. Strangers can fill the places with pins of first use, at the rates below. A pin by the operator always
  /// finds a place: the unverified pin that was used longest ago gives way to it. Nothing gives way to a stranger: otherwise
  /// 256 keys would be enough to take over any name.
  public static let pinsMax = 256
  /// From this count on the operator is warned when some of the pins are unverified.
  public static let pinsWarned = pinsMax / 2
  /// New pins of first use from one address. A key beyond it is linked without a pin.
  public static let newPinRate = TokenRate(interval: .seconds(600), burst: 16)
  /// New pins of first use over one bearer, as addresses may be invented: all of Ethernet, Wi-Fi, Wi-Fi Direct and Bluetooth at
  /// once fill half of the table.
  public static let bearerPinRate = TokenRate(interval: .seconds(120), burst: 32)
  /// Stored alarms of one pin. A stranger with many keys can fill the places of one pin, and all shared ones, but not the first
  /// place of another pin.
  public static let alarmsOfPinMax = 4
  /// Stored alarms beyond one for each pin.
  public static let alarmsSharedMax = 16
  /// One alarm of a pin is logged in this time; all are counted.
  public static let alarmLogInterval = TimeSpan.seconds(600)
  /// Keys that the operator settled, for one pin: then the oldest may raise an alarm again.
  public static let settledOfPinMax = 8
  /// Listed refused peers. A new one takes the place of the oldest of the address that has most of them.
  public static let strangersMax = 16
  /// Operators whose deny-lists count here, besides this node itself.
  public static let operatorsMax = 4
}
