import Primitives

/// The only request to a peer's GATT server: read the PSM characteristic by its type over all handles. That takes one
/// round trip and fits the default MTU (Core Specification 5.4, Vol 3, Part F, 3.4.4.1).
enum AttributeClient {
  enum Answer: Equatable {
    case psm(UInt16)
    /// The peer has no such characteristic, or refuses; with the ATT error code.
    case refused(code: UInt8)
    /// Not an answer to this request, or an invalid PSM.
    case malformed
  }

  /// The Read By Type Request for the PSM.
  static var psmRequest: [UInt8] { [0x08, 0x01, 0x00, 0xFF, 0xFF] + CausewayService.psmCharacteristic }

  /// Whether the PDU is an Error Response or a Read By Type Response. Other unsolicited PDUs are ignored.
  static func isAnswer(_ pdu: [UInt8]) -> Bool { pdu.first == 0x01 || pdu.first == 0x09 }

  static func answer(_ pdu: [UInt8]) -> Answer {
    var reader = ByteReader(pdu.span.bytes, orThrow: TooShort())
    switch try? reader.u8() {
    case 0x01:
      guard (try? reader.u8()) == 0x08, (try? reader.u16le()) != nil, let code = try? reader.u8()
      else { return .malformed }
      return .refused(code: code)
    case 0x09:
      // Each entry is a handle and a value; only the first is used.
      guard (try? reader.u8()) == 4, (try? reader.u16le()) != nil, let psm = try? reader.u16le(),
        BluetoothSettings.psmRange.contains(psm)
      else { return .malformed }
      return .psm(psm)
    case _: return .malformed
    }
  }
}
