/// An event of the kernel's management interface (BlueZ doc/mgmt-api.txt). `decode` takes whole packets and refuses
/// those with a wrong length field or too short parameters; longer parameters are accepted, because newer kernels
/// append fields.
enum ManagementEvent: Equatable {
  /// Command Complete or Command Status of `opcode`.
  case reply(opcode: UInt16, ManagementStatus, [UInt8])
  case controllerError(UInt8)
  case indexAdded
  case indexRemoved
  case newSettings(ControllerSettings)
  case deviceConnected(WireAddress)
  case deviceDisconnected(WireAddress)
  case connectFailed(WireAddress, ManagementStatus)
  case pinCodeRequest(WireAddress)
  case confirmationRequest(WireAddress)
  case passkeyRequest(WireAddress)
  case deviceFound(FoundDevice)
  case discovering(Bool)
  case advertisingRemoved(instance: UInt8)
  /// An event that is not used.
  case other(code: UInt16)

  /// The longest packet that is read: fits Device Found with a full extended advertisement (1650 bytes).
  static let packetBytesMax = 4096

  static func decode(_ packet: [UInt8]) -> (index: UInt16, event: ManagementEvent)? {
    var reader = ByteReader(packet)
    guard let code = reader.u16(), let index = reader.u16(), let length = reader.u16(),
      Int(length) == reader.remaining, let event = parameters(code, &reader)
    else { return nil }
    return (index, event)
  }

  private static func parameters(_ code: UInt16, _ reader: inout ByteReader) -> ManagementEvent? {
    switch code {
    case 0x0001, 0x0002:
      guard let opcode = reader.u16(), let status = reader.u8() else { return nil }
      return .reply(opcode: opcode, ManagementStatus(rawValue: status), reader.rest())
    case 0x0003: return reader.u8().map { .controllerError($0) }
    case 0x0004: return .indexAdded
    case 0x0005: return .indexRemoved
    case 0x0006: return reader.u32().map { .newSettings(ControllerSettings(rawValue: $0)) }
    case 0x000B: return reader.typedAddress().map { .deviceConnected($0) }
    case 0x000C: return reader.typedAddress().map { .deviceDisconnected($0) }
    case 0x000D:
      guard let device = reader.typedAddress(), let status = reader.u8() else { return nil }
      return .connectFailed(device, ManagementStatus(rawValue: status))
    case 0x000E: return reader.typedAddress().map { .pinCodeRequest($0) }
    case 0x000F: return reader.typedAddress().map { .confirmationRequest($0) }
    case 0x0010: return reader.typedAddress().map { .passkeyRequest($0) }
    case 0x0012: return FoundDevice(&reader).map { .deviceFound($0) }
    case 0x0013:
      guard reader.u8() != nil, let isOn = reader.u8() else { return nil }
      return .discovering(isOn != 0)
    case 0x0024: return reader.u8().map { .advertisingRemoved(instance: $0) }
    case _: return .other(code: code)
    }
  }
}

/// Device Found.
struct FoundDevice: Equatable {
  let device: WireAddress
  /// False when bit 2 of the flags is set: the device does not accept connections.
  let isConnectable: Bool
  /// Advertising data and scan response, concatenated.
  let data: [UInt8]

  init?(_ reader: inout ByteReader) {
    guard let device = reader.typedAddress(), reader.u8() != nil, let flags = reader.u32(), let length = reader.u16(),
      let data = reader.take(Int(length))
    else { return nil }
    self.device = device
    isConnectable = flags & 4 == 0
    self.data = data
  }
}

/// The settings bits of a controller.
struct ControllerSettings: OptionSet, Equatable {
  let rawValue: UInt32
  static let powered = ControllerSettings(rawValue: 1 << 0)
  static let bondable = ControllerSettings(rawValue: 1 << 4)
  static let lowEnergy = ControllerSettings(rawValue: 1 << 9)
}

/// The reply to Read Controller Information.
struct ControllerInformation: Equatable {
  let address: UInt64
  let supported: ControllerSettings
  let current: ControllerSettings

  /// Nil when the reply is short.
  init?(_ parameters: [UInt8]) {
    var reader = ByteReader(parameters)
    guard let address = reader.address(), reader.take(3) != nil, let supported = reader.u32(),
      let current = reader.u32()
    else { return nil }
    self.address = address
    self.supported = ControllerSettings(rawValue: supported)
    self.current = ControllerSettings(rawValue: current)
  }
}

/// The reply to Read Advertising Features. Bits 7 to 9 of the supported flags are secondary channels, which only
/// controllers with extended advertising have.
func supportsExtendedAdvertising(_ features: [UInt8]) -> Bool {
  var reader = ByteReader(features)
  guard let flags = reader.u32() else { return false }
  return flags & 0x380 != 0
}

/// The reply to Read Index List: a count and as many indexes. Nil when the count does not match.
func indexList(_ parameters: [UInt8]) -> [UInt16]? {
  var reader = ByteReader(parameters)
  guard let count = reader.u16(), reader.remaining >= Int(count) * 2 else { return nil }
  var indexes: [UInt16] = []
  for _ in 0..<count {
    if let index = reader.u16() { indexes.append(index) }
  }
  return indexes
}

/// The kernel's status for a command.
struct ManagementStatus: Equatable {
  let rawValue: UInt8
  static let success = ManagementStatus(rawValue: 0x00)
  static let unknownCommand = ManagementStatus(rawValue: 0x01)
  static let permissionDenied = ManagementStatus(rawValue: 0x14)
  static let blockedByRFKill = ManagementStatus(rawValue: 0x12)

  /// The term of doc/mgmt-api.txt and the number.
  var text: String {
    let names: [StaticString] = [
      "success", "unknown command", "not connected", "failed", "connect failed", "authentication failed",
      "not paired", "no resources", "timeout", "already connected", "busy", "rejected", "not supported",
      "invalid parameters", "disconnected", "not powered", "cancelled", "invalid index", "blocked by rfkill",
      "already paired", "permission denied",
    ]
    let number = "mgmt status \(rawValue)"
    return Int(rawValue) < names.count ? "\(names[Int(rawValue)]), \(number)" : number
  }
}
