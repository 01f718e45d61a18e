import Primitives

/// A server of the attribute protocol (ATT) with a fixed table of attributes. The server returns a response to each
/// request. The only state is the MTU (Core Specification 5.4, Vol 3, Part F; table per Part G and Part C, 12).
///
/// handle 1–5: GAP service with device name and appearance, which is mandatory;
/// handle 6–8: the Causeway service with its PSM characteristic.
struct AttributeServer {
  /// The MTU of both nodes before an Exchange MTU request, in bytes (Part G, 5.2.1).
  static let defaultUnitBytes = 23
  /// This node's MTU in bytes: one link-layer packet of 251 bytes without the L2CAP header.
  static let unitBytesMax = 247

  /// The negotiated MTU in bytes.
  private(set) var unitBytes = defaultUnitBytes
  private let attributes: [Attribute]

  /// A server with `psm` as the value of the PSM characteristic.
  init(psm: UInt16) {
    let service: [UInt8] = [0x00, 0x28]
    let characteristic: [UInt8] = [0x03, 0x28]
    let readable: UInt8 = 0x02
    attributes = [
      Attribute(type: service, value: [0x00, 0x18], groupEnd: 5),
      Attribute(type: characteristic, value: [readable, 3, 0, 0x00, 0x2A]),
      Attribute(type: [0x00, 0x2A], value: Array("Causeway".utf8)),
      Attribute(type: characteristic, value: [readable, 5, 0, 0x01, 0x2A]),
      Attribute(type: [0x01, 0x2A], value: [0, 0]),
      Attribute(type: service, value: CausewayService.uuid, groupEnd: 8),
      Attribute(type: characteristic, value: [readable, 8, 0] + CausewayService.psmCharacteristic),
      Attribute(
        type: CausewayService.psmCharacteristic,
        value: [UInt8(truncatingIfNeeded: psm), UInt8(truncatingIfNeeded: psm >> 8)]),
    ]
  }

  /// The answer to one PDU, at most `unitBytes` long; nil for PDUs without an answer: commands, confirmations and
  /// responses.
  mutating func respond(to pdu: [UInt8]) -> [UInt8]? {
    guard let opcode = pdu.first else { return nil }
    let isCommand = opcode & 0x40 != 0
    let isResponse = opcode & 1 == 1
    if isCommand || isResponse || opcode == handleValueConfirmation { return nil }
    do throws(Refusal) {
      var request = ByteReader(pdu.span.bytes, orThrow: Refusal(.invalidPDU))
      _ = try request.u8()
      return try answer(opcode, &request)
    } catch {
      var out: [UInt8] = [0x01, opcode]
      out.append(littleEndian: error.handle)
      return out + [error.code.rawValue]
    }
  }

  private mutating func answer(
    _ opcode: UInt8, _ reader: inout ByteReader<Refusal>
  ) throws(Refusal) -> [UInt8] {
    switch opcode {
    case 0x02: try exchangeUnit(&reader)
    case 0x04: try findInformation(&reader)
    case 0x06: try findByTypeValue(&reader)
    case 0x08: try readByType(&reader)
    case 0x0A: try read(&reader, hasOffset: false)
    case 0x0C: try read(&reader, hasOffset: true)
    case 0x10: try readByGroupType(&reader)
    case 0x12: try refuseWrite(&reader)
    case _: throw Refusal(.requestNotSupported)
    }
  }

  /// Answers Exchange MTU (3.4.2.1).
  private mutating func exchangeUnit(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt8] {
    let theirs = try reader.u16le()
    guard reader.remaining == 0 else { throw Refusal(.invalidPDU) }
    unitBytes = max(Self.defaultUnitBytes, min(Int(theirs), Self.unitBytesMax))
    return [0x03, UInt8(Self.unitBytesMax), 0]
  }

  /// Answers Find Information (3.4.3.1) with pairs of handle and type. All types in an answer have the size of the
  /// first type.
  private func findInformation(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt8] {
    let range = try handles(&reader)
    guard reader.remaining == 0 else { throw Refusal(.invalidPDU) }
    var out: [UInt8] = [0x05, 0]
    var size = 0
    for (handle, attribute) in table(range) {
      if size == 0 { size = attribute.type.count }
      guard attribute.type.count == size, out.count + 2 + size <= unitBytes else { break }
      out.append(littleEndian: handle)
      out += attribute.type
    }
    out[1] = size == 2 ? 1 : 2
    if size == 0 { throw Refusal(.attributeNotFound, range.lowerBound) }
    return out
  }

  /// Answers Find By Type Value (3.4.3.3), with which a client searches for a service by its UUID.
  private func findByTypeValue(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt8] {
    let range = try handles(&reader)
    let type = try reader.array(2)
    let value = try reader.array(reader.remaining)
    var out: [UInt8] = [0x07]
    for (handle, attribute) in table(range) where attribute.type == type && attribute.value == value {
      guard out.count + 4 <= unitBytes else { break }
      out.append(littleEndian: handle)
      out.append(littleEndian: attribute.groupEnd ?? handle)
    }
    if out.count == 1 { throw Refusal(.attributeNotFound, range.lowerBound) }
    return out
  }

  /// Answers Read By Type (3.4.4.1) with handles and values. All values in an answer have the size of the first value.
  private func readByType(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt8] {
    let range = try handles(&reader)
    let type = try anyType(try reader.array(reader.remaining))
    let valueBytesMax = min(unitBytes - 4, 253)
    var out: [UInt8] = [0x09, 0]
    for (handle, attribute) in table(range) where attribute.type == type {
      let value = attribute.value.prefix(valueBytesMax)
      let size = UInt8(value.count + 2)
      if out[1] == 0 { out[1] = size }
      guard out[1] == size, out.count + Int(size) <= unitBytes else { break }
      out.append(littleEndian: handle)
      out += value
    }
    if out[1] == 0 { throw Refusal(.attributeNotFound, range.lowerBound) }
    return out
  }

  /// Answers Read (3.4.4.3) and Read Blob (3.4.4.5).
  private func read(_ reader: inout ByteReader<Refusal>, hasOffset: Bool) throws(Refusal) -> [UInt8] {
    let handle = try reader.u16le()
    let offset = hasOffset ? try reader.u16le() : 0
    guard reader.remaining == 0 else { throw Refusal(.invalidPDU) }
    guard let attribute = attribute(handle) else { throw Refusal(.invalidHandle, handle) }
    guard Int(offset) <= attribute.value.count else { throw Refusal(.invalidOffset, handle) }
    return [hasOffset ? 0x0D : 0x0B] + attribute.value[Int(offset)...].prefix(unitBytes - 1)
  }

  /// Answers Read By Group Type (3.4.4.9) with the primary services and the last handle of each service.
  private func readByGroupType(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt8] {
    let range = try handles(&reader)
    let type = try anyType(try reader.array(reader.remaining))
    let isGroup = type == [0x00, 0x28] || type == [0x01, 0x28]
    guard isGroup else { throw Refusal(.unsupportedGroupType, range.lowerBound) }
    var out: [UInt8] = [0x11, 0]
    for (handle, attribute) in table(range) where attribute.type == type {
      let size = UInt8(attribute.value.count + 4)
      if out[1] == 0 { out[1] = size }
      guard out[1] == size, out.count + Int(size) <= unitBytes else { break }
      out.append(littleEndian: handle)
      out.append(littleEndian: attribute.groupEnd ?? handle)
      out += attribute.value
    }
    if out[1] == 0 { throw Refusal(.attributeNotFound, range.lowerBound) }
    return out
  }

  /// Refuses Write (3.4.5.1), because no attribute is writable.
  private func refuseWrite(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt8] {
    let handle = try reader.u16le()
    throw Refusal(attribute(handle) == nil ? .invalidHandle : .writeNotPermitted, handle)
  }

  /// Reads the starting and ending handle of a request. The starting handle must be neither 0 nor above the ending
  /// handle.
  private func handles(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> ClosedRange<UInt16> {
    let first = try reader.u16le()
    let last = try reader.u16le()
    guard first > 0, first <= last else { throw Refusal(.invalidHandle, first) }
    return first...last
  }

  /// Checks that a UUID has 16 or 128 bits. The 128-bit form of a 16-bit UUID is shortened to 16 bits (Vol 3, Part B,
  /// 2.5.1).
  private func anyType(_ type: [UInt8]) throws(Refusal) -> [UInt8] {
    let base: [UInt8] = [0xFB, 0x34, 0x9B, 0x5F, 0x80, 0x00, 0x00, 0x80, 0x00, 0x10, 0x00, 0x00]
    switch type.count {
    case 2: return type
    case 16: return type.holds(base, at: 0) && type[14] == 0 && type[15] == 0 ? Array(type[12..<14]) : type
    case _: throw Refusal(.invalidPDU)
    }
  }

  private func attribute(_ handle: UInt16) -> Attribute? {
    handle > 0 && Int(handle) <= attributes.count ? attributes[Int(handle) - 1] : nil
  }

  private func table(_ range: ClosedRange<UInt16>) -> [(UInt16, Attribute)] {
    guard Int(range.lowerBound) <= attributes.count else { return [] }
    let last = min(Int(range.upperBound), attributes.count)
    return (Int(range.lowerBound)...last).map { (UInt16($0), attributes[$0 - 1]) }
  }
}

/// One attribute, whose handle is its position in the table, counted from 1.
private struct Attribute {
  /// The UUID, least significant byte first: 2 or 16 bytes.
  let type: [UInt8]
  let value: [UInt8]
  /// The last handle of the service, if this attribute declares a service.
  var groupEnd: UInt16?
}

private let handleValueConfirmation: UInt8 = 0x1E

/// The error code and handle of an Error Response (3.4.1.1).
private struct Refusal: Error {
  enum Code: UInt8 {
    case invalidHandle = 0x01
    case writeNotPermitted = 0x03
    case invalidPDU = 0x04
    case requestNotSupported = 0x06
    case invalidOffset = 0x07
    case attributeNotFound = 0x0A
    case unsupportedGroupType = 0x10
  }
  let code: Code
  let handle: UInt16

  init(_ code: Code, _ handle: UInt16 = 0) {
    self.code = code
    self.handle = handle
  }
}
