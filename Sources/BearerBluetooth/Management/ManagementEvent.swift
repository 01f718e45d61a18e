import Primitives

/// An event of the kernel's management interface (BlueZ doc/mgmt-api.txt). `decode` parses one complete packet. The
/// decoder refuses a packet with a wrong length field or too short parameters. Longer parameters are accepted, because
/// newer kernels append fields.
enum ManagementEvent: Equatable {
  /// Command Complete or Command Status, for the command with this opcode.
  case reply(opcode: UInt16, ManagementStatus, [UInt8])
  case controllerError(UInt8)
  case indexAdded
  case indexRemoved
  case newSettings(ControllerSettings)
  /// `isCentral`: whether this node made the connection (reported by kernels since 5.17).
  case deviceConnected(WireAddress, isCentral: Bool)
  /// `isEnded`: whether one of the two hosts has ended the link (reasons 2 and 3). If false, the link was lost.
  case deviceDisconnected(WireAddress, isEnded: Bool)
  case connectFailed(WireAddress, ManagementStatus)
  case pinCodeRequest(WireAddress)
  case confirmationRequest(WireAddress)
  case passkeyRequest(WireAddress)
  case deviceFound(FoundDevice)
  /// Whether discovery is running. `isInquiry`: discovery searches for BR/EDR devices only.
  case discovering(Bool, isInquiry: Bool)
  case advertisingRemoved(instance: UInt8)
  /// An event that this program does not use.
  case other(code: UInt16)

  /// The maximum length of a packet in bytes. Device Found with a full extended advertisement (1650 bytes) fits.
  static let packetBytesMax = 4096

  static func decode(_ packet: [UInt8]) -> (index: UInt16, event: ManagementEvent)? {
    var reader = ByteReader(packet.span.bytes, orThrow: TooShort())
    guard let code = try? reader.u16le(), let index = try? reader.u16le(), let length = try? reader.u16le(),
      Int(length) == reader.remaining, let event = try? parameters(code, &reader)
    else { return nil }
    return (index, event)
  }

  private static func parameters(
    _ code: UInt16, _ reader: inout ByteReader<TooShort>
  ) throws(TooShort) -> ManagementEvent {
    switch code {
    case 0x0001, 0x0002:
      let opcode = try reader.u16le()
      let status = ManagementStatus(rawValue: try reader.u8())
      return .reply(opcode: opcode, status, try reader.array(reader.remaining))
    case 0x0003: return .controllerError(try reader.u8())
    case 0x0004: return .indexAdded
    case 0x0005: return .indexRemoved
    case 0x0006: return .newSettings(ControllerSettings(rawValue: try reader.u32le()))
    case 0x000B:
      let device = try reader.typedAddress()
      return .deviceConnected(device, isCentral: try reader.u32le() & 8 != 0)
    case 0x000C:
      let device = try reader.typedAddress()
      let reason = try reader.u8()
      return .deviceDisconnected(device, isEnded: reason == 2 || reason == 3)
    case 0x000D:
      let device = try reader.typedAddress()
      return .connectFailed(device, ManagementStatus(rawValue: try reader.u8()))
    case 0x000E: return .pinCodeRequest(try reader.typedAddress())
    case 0x000F: return .confirmationRequest(try reader.typedAddress())
    case 0x0010: return .passkeyRequest(try reader.typedAddress())
    case 0x0012: return .deviceFound(try FoundDevice(&reader))
    case 0x0013:
      let isInquiry = try reader.u8() == 1
      return .discovering(try reader.u8() != 0, isInquiry: isInquiry)
    case 0x0024: return .advertisingRemoved(instance: try reader.u8())
    case _: return .other(code: code)
    }
  }
}

/// A packet from the kernel or a peer is too short.
struct TooShort: Error {}

/// The parameters of Device Found.
struct FoundDevice: Equatable {
  let device: WireAddress
  /// False if bit 2 of the flags is set: the device does not accept connections.
  let isConnectable: Bool
  /// Advertising data and scan response, concatenated; or an extended inquiry response.
  let data: [UInt8]

  init(_ reader: inout ByteReader<TooShort>) throws(TooShort) {
    device = try reader.typedAddress()
    _ = try reader.u8()
    isConnectable = try reader.u32le() & 4 == 0
    data = try reader.array(Int(try reader.u16le()))
  }
}

/// The settings bits of a controller.
struct ControllerSettings: OptionSet, Equatable {
  let rawValue: UInt32
  static let powered = ControllerSettings(rawValue: 1 << 0)
  static let bondable = ControllerSettings(rawValue: 1 << 4)
  static let classic = ControllerSettings(rawValue: 1 << 7)
  static let lowEnergy = ControllerSettings(rawValue: 1 << 9)
}

/// The reply to Read Controller Information.
struct ControllerInformation: Equatable {
  let address: UInt64
  let supported: ControllerSettings
  let current: ControllerSettings

  /// Nil if the reply is too short.
  init?(_ parameters: [UInt8]) {
    var reader = ByteReader(parameters.span.bytes, orThrow: TooShort())
    guard let address = try? reader.address(), (try? reader.span(3)) != nil, let supported = try? reader.u32le(),
      let current = try? reader.u32le()
    else { return nil }
    self.address = address
    self.supported = ControllerSettings(rawValue: supported)
    self.current = ControllerSettings(rawValue: current)
  }
}

/// Whether the kernel applies new parameters to an existing connection, by its reply to Read Management Version
/// Information.
func updatesConnections(_ version: [UInt8]) -> Bool {
  var reader = ByteReader(version.span.bytes, orThrow: TooShort())
  guard let number = try? reader.u8(), let revision = try? reader.u16le() else { return false }
  return number > 1 || number == 1 && revision >= 23
}

/// PHYs of a controller, for sending and receiving.
struct PHYs: OptionSet, Equatable {
  let rawValue: UInt32
  /// LE 2M: half the air time of LE 1M for each byte.
  static let twoMegabit = PHYs(rawValue: 0x1800)
  /// LE Coded: longer range, for four to eight times the air time.
  static let coded = PHYs(rawValue: 0x6000)
}

/// The reply to Get PHY Configuration.
struct PHYConfiguration: Equatable {
  let supported: PHYs
  let configurable: PHYs
  let selected: PHYs

  /// Nil if the reply is too short.
  init?(_ parameters: [UInt8]) {
    var reader = ByteReader(parameters.span.bytes, orThrow: TooShort())
    guard let supported = try? reader.u32le(), let configurable = try? reader.u32le(),
      let selected = try? reader.u32le()
    else { return nil }
    self.supported = PHYs(rawValue: supported)
    self.configurable = PHYs(rawValue: configurable)
    self.selected = PHYs(rawValue: selected)
  }

  /// The PHYs to select; nil if the current selection is right. LE 2M is among the selected PHYs if possible, so that
  /// peers can request it. LE Coded is not selected: each scan would listen on LE Coded half of the time, and no
  /// Causeway node advertises there.
  var wanted: PHYs? {
    let wanted = selected.union(supported.intersection(configurable).intersection(.twoMegabit))
      .subtracting(configurable.intersection(.coded))
    return wanted == selected ? nil : wanted
  }
}

/// Whether the reply to Read Advertising Features shows extended advertising. Bits 7 to 9 of the supported flags are
/// secondary channels, which only controllers with extended advertising have.
func supportsExtendedAdvertising(_ features: [UInt8]) -> Bool {
  var reader = ByteReader(features.span.bytes, orThrow: TooShort())
  guard let flags = try? reader.u32le() else { return false }
  return flags & 0x380 != 0
}

/// The reply to Read Index List: a count and as many indexes. Nil when the count does not match.
func indexList(_ parameters: [UInt8]) -> [UInt16]? {
  var reader = ByteReader(parameters.span.bytes, orThrow: TooShort())
  guard let count = try? reader.u16le(), reader.remaining >= Int(count) * 2 else { return nil }
  var indexes: [UInt16] = []
  for _ in 0..<count {
    if let index = try? reader.u16le() { indexes.append(index) }
  }
  return indexes
}

/// The kernel's status for a command.
struct ManagementStatus: Equatable {
  let rawValue: UInt8
  static let success = ManagementStatus(rawValue: 0x00)
  static let permissionDenied = ManagementStatus(rawValue: 0x14)
  static let blockedByRFKill = ManagementStatus(rawValue: 0x12)

  /// The status for people: the term of BlueZ doc/mgmt-api.txt, and the number.
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
