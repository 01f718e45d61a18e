import Bearer
import Primitives

extension BluetoothEndpoint {
  /// `AA:BB:CC:DD:EE:FF`, the usual notation, also of BlueZ.
  public var text: String {
    var out = ""
    for index in 0..<6 {
      if index > 0 { out += ":" }
      out += hexByte(UInt8(truncatingIfNeeded: address >> UInt64((5 - index) * 8)))
    }
    return out
  }

  /// The six bytes in wire order: least significant first.
  var wireBytes: [UInt8] { (0..<6).map { UInt8(truncatingIfNeeded: address >> UInt64($0 * 8)) } }

  /// The address type in the kernel's interfaces of management and L2CAP: 1 for LE public, 2 for LE random.
  var wireType: UInt8 { isRandom ? 2 : 1 }
}

/// A device address with its type in the kernel's management interface: 0 for BR/EDR, 1 for LE public, 2 for LE random.
struct WireAddress: Equatable {
  var address: UInt64
  var type: UInt8

  init(address: UInt64, type: UInt8) {
    self.address = address
    self.type = type
  }

  init(_ endpoint: BluetoothEndpoint) { self.init(address: endpoint.address, type: endpoint.wireType) }

  init(classic address: UInt64) { self.init(address: address, type: 0) }

  /// Returns nil for an IP address.
  init?(_ remote: RemoteAddress) {
    switch remote {
    case .ip: return nil
    case .bluetooth(let endpoint): self.init(endpoint)
    case .bluetoothClassic(let address): self.init(classic: address)
    }
  }

  var isClassic: Bool { type == 0 }

  var bearer: BearerKind { isClassic ? .bluetoothClassic : .bluetoothLE }

  var remote: RemoteAddress {
    isClassic ? .bluetoothClassic(address) : .bluetooth(BluetoothEndpoint(address: address, isRandom: type == 2))
  }

  /// The LE address; nil for a BR/EDR device.
  var endpoint: BluetoothEndpoint? {
    type == 1 || type == 2 ? BluetoothEndpoint(address: address, isRandom: type == 2) : nil
  }
}

extension ByteReader {
  /// Six address bytes, least significant first.
  mutating func address() throws(TruncationError) -> UInt64 {
    let low = try u32le()
    return UInt64(try u16le()) << 32 | UInt64(low)
  }

  /// Six address bytes and the type byte.
  mutating func typedAddress() throws(TruncationError) -> WireAddress {
    WireAddress(address: try address(), type: try u8())
  }
}

private func hexByte(_ value: UInt8) -> String {
  let digits: StaticString = "0123456789ABCDEF"
  return digits.withUTF8Buffer {
    String(UnicodeScalar($0[Int(value >> 4)])) + String(UnicodeScalar($0[Int(value & 15)]))
  }
}
