/// The one question our side asks of a peer's GATT server: the value of the PSM characteristic, by its type
/// over all handles, which is one round trip and fits the default MTU (Core Specification 5.4, Vol 3,
/// Part F, 3.4.4.1).
enum AttributeClient {
  enum Answer: Equatable {
    case psm(UInt16)
    /// The peer has no such characteristic, or refuses: the ATT error code.
    case refused(code: UInt8)
    /// Not an answer to this question, or a value that is no PSM.
    case malformed
  }

  /// Read By Type Request.
  static var psmRequest: [UInt8] { [0x08, 0x01, 0x00, 0xFF, 0xFF] + CausewayService.psmCharacteristic }

  static func answer(_ pdu: [UInt8]) -> Answer {
    var reader = ByteReader(pdu)
    switch reader.u8() {
    case 0x01:
      guard reader.u8() == 0x08, reader.u16() != nil, let code = reader.u8() else { return .malformed }
      return .refused(code: code)
    case 0x09:
      // Each entry is a handle and the value: the first one counts.
      guard reader.u8() == 4, reader.u16() != nil, let psm = reader.u16(), BluetoothSettings.psmRange.contains(psm)
      else { return .malformed }
      return .psm(psm)
    case _: return .malformed
    }
  }
}
