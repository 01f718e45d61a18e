import Primitives

/// The only request that this node sends to a peer's GATT server: it reads the PSM characteristic by its type, over all
/// handles. The request takes one round trip, and fits in the default MTU (Core Specification 5.4, Vol 3, Part F,
/// 3.4.4.1).
enum AttributeClient {
  enum Answer: Equatable {
    case psm(UInt16)
    /// The peer has no PSM characteristic, or refuses the request. `code` is the ATT error code.
    case refused(code: UInt8)
    /// The PDU is not an answer to this request, or it contains an invalid PSM.
    case malformed
  }

  /// The Read By Type Request for the PSM.
  static var psmRequest: [UInt8] { [0x08, 0x01, 0x00, 0xFF, 0xFF] + CausewayService.psmCharacteristic }

  /// Whether the PDU is an Error Response or a Read By Type Response. The caller ignores all other PDUs.
  static func isAnswer(_ pdu: [UInt8]) -> Bool { pdu.first == 0x01 || pdu.first == 0x09 }

  static func answer(_ pdu: [UInt8]) -> Answer {
    var reader = ByteReader(pdu.span.bytes, orThrow: TooShort())
    switch try? reader.u8() {
    case 0x01:
      guard (try? reader.u8()) == 0x08, (try? reader.u16le()) != nil, let code = try? reader.u8()
      else { return .malformed }
      return .refused(code: code)
    case 0x09:
      // The response contains entries of a handle and a value; only the first entry is used.
      guard (try? reader.u8()) == 4, (try? reader.u16le()) != nil, let psm = try? reader.u16le(),
        BluetoothSettings.psmRange.contains(psm)
      else { return .malformed }
      return .psm(psm)
    case _: return .malformed
    }
  }
}
