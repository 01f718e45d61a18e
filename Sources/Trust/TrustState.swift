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

/// What a box must not forget, besides its key: everything of it is one file, replaced whole.
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

  static let bytesMax = 65_536
  private static let magic: UInt32 = 0x4357_5331

  func encoded() -> [UInt8] {
    var bytes = StateWriter()
    bytes.number(UInt64(Self.magic), 4)
    bytes.number(UInt64(epochCounter), 4)
    bytes.number(UInt64(bitPattern: keptSeconds), 8)
    bytes.number(UInt64(pins.count), 2)
    for pin in pins {
      bytes.node(pin.node)
      bytes.number(pin.isByOperator ? 1 : 0, 1)
      bytes.counted(pin.name, 1)
    }
    bytes.number(deniedSerial, 8)
    bytes.number(deniedSeconds, 8)
    bytes.number(UInt64(denied.count), 2)
    for node in denied { bytes.node(node) }
    bytes.number(UInt64(lists.count), 1)
    for list in lists { bytes.counted(list, 2) }
    return bytes.bytes
  }

  init() {}

  /// Nil for bytes that no version of this program wrote.
  init?(_ bytes: [UInt8]) {
    var reader = StateReader(bytes)
    guard reader.number(4) == UInt64(Self.magic) else { return nil }
    epochCounter = UInt32(truncatingIfNeeded: reader.number(4))
    keptSeconds = Int64(bitPattern: reader.number(8))
    for _ in 0..<reader.count(2, max: TrustLimits.pinsMax) {
      let node = reader.node(), isByOperator = reader.number(1) == 1
      pins.append(Pin(node: node, name: reader.counted(1), isByOperator: isByOperator))
    }
    deniedSerial = reader.number(8)
    deniedSeconds = reader.number(8)
    for _ in 0..<reader.count(2, max: Limits.deniedMax) { denied.append(reader.node()) }
    for _ in 0..<reader.count(1, max: TrustLimits.operatorsMax) { lists.append(reader.counted(2)) }
    if !reader.isDone { return nil }
  }
}

/// How much is kept.
public enum TrustLimits {
  /// Names pinned. A newcomer beyond is refused rather than that an old pin gives way: whoever can make 256 keys could
  /// otherwise take anybody's name.
  public static let pinsMax = 256
  /// Alarms kept, and of these for one pin.
  public static let alarmsMax = 16
  public static let alarmsOfPinMax = 4
  /// Refused strangers listed; the one that was refused longest ago gives way.
  public static let strangersMax = 16
  /// Operators whose deny-lists count here, besides this node itself.
  public static let operatorsMax = 4
}

private struct StateWriter {
  var bytes: [UInt8] = []
  mutating func number(_ value: UInt64, _ byteCount: Int) {
    for index in (0..<byteCount).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(index * 8))) }
  }
  mutating func node(_ node: NodeID) {
    number(node.high, 8)
    number(node.low, 8)
  }
  mutating func counted(_ more: [UInt8], _ byteCount: Int) {
    number(UInt64(more.count), byteCount)
    bytes += more
  }
}

/// Reads what `StateWriter` wrote. Beyond the end everything is zero, and `isDone` is false.
private struct StateReader {
  private let bytes: [UInt8]
  private var offset = 0
  private var isBroken = false
  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isDone: Bool { !isBroken && offset == bytes.count }

  mutating func number(_ byteCount: Int) -> UInt64 {
    var value: UInt64 = 0
    for byte in take(byteCount) { value = value << 8 | UInt64(byte) }
    return value
  }
  mutating func node() -> NodeID {
    let high = number(8)
    return NodeID(high: high, low: number(8))
  }
  mutating func count(_ byteCount: Int, max: Int) -> Int {
    let count = Int(number(byteCount))
    if count > max { isBroken = true }
    return isBroken ? 0 : count
  }
  mutating func counted(_ byteCount: Int) -> [UInt8] { Array(take(Int(number(byteCount)))) }

  private mutating func take(_ count: Int) -> ArraySlice<UInt8> {
    if isBroken || bytes.count - offset < count {
      isBroken = true
      return []
    }
    defer { offset += count }
    return bytes[offset..<offset + count]
  }
}
