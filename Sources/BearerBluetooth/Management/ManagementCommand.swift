import Bearer
import Primitives

/// A request to the kernel's Bluetooth management interface (BlueZ doc/mgmt-api.txt), as bytes.
///
/// Every packet is `opcode u16, index u16, parameter length u16, parameters`, little-endian.
struct ManagementCommand: Equatable {
  /// The controller index in commands that concern no single controller.
  static let noIndex: UInt16 = 0xFFFF
  static let headerBytes = 6
  /// The only advertising instance of this node. The kernel numbers the instances of each controller from 1.
  static let advertisingInstance: UInt8 = 1
  /// The address types for Start Discovery. `lowEnergyTypes`: LE public and LE random. `classicTypes`: BR/EDR.
  private static let lowEnergyTypes: UInt8 = 0x06
  private static let classicTypes: UInt8 = 0x01

  let opcode: UInt16
  let index: UInt16
  let parameters: [UInt8]

  var bytes: [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(Self.headerBytes + parameters.count)
    out.append(littleEndian: opcode)
    out.append(littleEndian: index)
    out.append(littleEndian: UInt16(truncatingIfNeeded: parameters.count))
    out += parameters
    return out
  }

  static let readIndexList = ManagementCommand(opcode: 0x0003, index: noIndex, parameters: [])

  /// Reads the version of the kernel's interface (Read Management Version Information).
  static let readVersion = ManagementCommand(opcode: 0x0001, index: noIndex, parameters: [])

  static func readInformation(_ index: UInt16) -> ManagementCommand {
    ManagementCommand(opcode: 0x0004, index: index, parameters: [])
  }

  static func setPowered(_ index: UInt16, _ isOn: Bool) -> ManagementCommand {
    ManagementCommand(opcode: 0x0005, index: index, parameters: [isOn ? 1 : 0])
  }

  /// Sets whether the controller answers inquiries (Discoverable), without a time limit.
  static func setDiscoverable(_ index: UInt16, _ isOn: Bool) -> ManagementCommand {
    ManagementCommand(opcode: 0x0006, index: index, parameters: [isOn ? 1 : 0, 0, 0])
  }

  /// Sets whether the controller answers pages, with which a BR/EDR connection begins.
  static func setConnectable(_ index: UInt16, _ isOn: Bool) -> ManagementCommand {
    ManagementCommand(opcode: 0x0007, index: index, parameters: [isOn ? 1 : 0])
  }

  /// Sets Secure Simple Pairing, which needs no PIN.
  static func setSimplePairing(_ index: UInt16, _ isOn: Bool) -> ManagementCommand {
    ManagementCommand(opcode: 0x000B, index: index, parameters: [isOn ? 1 : 0])
  }

  /// Sets the device class of BR/EDR. A network access point has major class 3, and is fully available if its minor
  /// class is 0 (Assigned Numbers, 2.8.2).
  static func setDeviceClass(_ index: UInt16, major: UInt8, minor: UInt8) -> ManagementCommand {
    ManagementCommand(opcode: 0x000E, index: index, parameters: [major, minor])
  }

  /// Sets the name in answers to inquiries, at most 248 bytes, and no short name.
  static func setLocalName(_ index: UInt16, _ name: StaticString) -> ManagementCommand {
    var parameters = [UInt8](repeating: 0, count: 249 + 11)
    name.withUTF8Buffer { bytes in
      for (index, byte) in bytes.prefix(248).enumerated() { parameters[index] = byte }
    }
    return ManagementCommand(opcode: 0x000F, index: index, parameters: parameters)
  }

  /// Adds a UUID to answers to inquiries. `uuid`: least significant byte first.
  static func addUUID(_ index: UInt16, _ uuid: [UInt8]) -> ManagementCommand {
    ManagementCommand(opcode: 0x0010, index: index, parameters: uuid + [0])
  }

  /// Adds the UUID of a network access point, with its class of service (Networking).
  static func addNetworkAccessPoint(_ index: UInt16) -> ManagementCommand {
    let parameters: [UInt8] = [
      0xFB, 0x34, 0x9B, 0x5F, 0x80, 0x00, 0x00, 0x80, 0x00, 0x10, 0x00, 0x00, 0x16, 0x11, 0x00, 0x00, 0x02,
    ]
    return ManagementCommand(opcode: 0x0010, index: index, parameters: parameters)
  }

  /// Removes all UUIDs from answers to inquiries.
  static func removeUUIDs(_ index: UInt16) -> ManagementCommand {
    ManagementCommand(opcode: 0x0011, index: index, parameters: [UInt8](repeating: 0, count: 16))
  }

  /// Declares that the controller has neither a keyboard nor a display. If a peer then requests pairing, the kernel
  /// pairs without a prompt.
  static func setNoInputNoOutput(_ index: UInt16) -> ManagementCommand {
    ManagementCommand(opcode: 0x0018, index: index, parameters: [3])
  }

  static func setBondable(_ index: UInt16, _ isOn: Bool) -> ManagementCommand {
    ManagementCommand(opcode: 0x0009, index: index, parameters: [isOn ? 1 : 0])
  }

  static func setLowEnergy(_ index: UInt16, _ isOn: Bool) -> ManagementCommand {
    ManagementCommand(opcode: 0x000D, index: index, parameters: [isOn ? 1 : 0])
  }

  /// Ends the link to a device, even if the link is in use.
  static func disconnect(_ index: UInt16, _ device: WireAddress) -> ManagementCommand {
    ManagementCommand(opcode: 0x0014, index: index, parameters: typed(device))
  }

  /// PIN Code Negative Reply.
  static func refusePIN(_ index: UInt16, _ device: WireAddress) -> ManagementCommand {
    ManagementCommand(opcode: 0x0017, index: index, parameters: typed(device))
  }

  /// User Confirmation Negative Reply.
  static func refuseConfirmation(_ index: UInt16, _ device: WireAddress) -> ManagementCommand {
    ManagementCommand(opcode: 0x001D, index: index, parameters: typed(device))
  }

  /// User Passkey Negative Reply.
  static func refusePasskey(_ index: UInt16, _ device: WireAddress) -> ManagementCommand {
    ManagementCommand(opcode: 0x001F, index: index, parameters: typed(device))
  }

  /// Starts an active scan for LE devices, or an inquiry for classic devices. The scan or inquiry ends after 10.24 s.
  static func startDiscovery(_ index: UInt16, isInquiry: Bool = false) -> ManagementCommand {
    ManagementCommand(opcode: 0x0023, index: index, parameters: [isInquiry ? classicTypes : lowEnergyTypes])
  }

  /// Stops a scan or an inquiry. The kernel stops only a discovery that was started with the same address types.
  static func stopDiscovery(_ index: UInt16, isInquiry: Bool = false) -> ManagementCommand {
    ManagementCommand(opcode: 0x0024, index: index, parameters: [isInquiry ? classicTypes : lowEnergyTypes])
  }

  /// Loads the connection parameters of one device. Since revision 23 of the interface (Linux 6.10), the kernel applies
  /// the parameters to an existing connection. The kernel applies the parameters only if this node made the connection
  /// and the kernel already had an entry for the device. Older kernels only store the parameters for the next
  /// connection.
  static func loadConnectionParameters(
    _ index: UInt16, _ device: WireAddress, _ values: ConnectionParameters
  ) -> ManagementCommand {
    var parameters: [UInt8] = [1, 0]
    parameters += typed(device)
    for value in [values.intervalMin, values.intervalMax, 0, values.timeout] {
      parameters.append(littleEndian: value)
    }
    return ManagementCommand(opcode: 0x0035, index: index, parameters: parameters)
  }

  static func readPHYs(_ index: UInt16) -> ManagementCommand {
    ManagementCommand(opcode: 0x0044, index: index, parameters: [])
  }

  /// Sets the PHYs that new connections may begin with or change to, and that a scan covers (Set PHY Configuration).
  static func setPHYs(_ index: UInt16, _ selected: PHYs) -> ManagementCommand {
    var parameters: [UInt8] = []
    parameters.append(littleEndian: selected.rawValue)
    return ManagementCommand(opcode: 0x0045, index: index, parameters: parameters)
  }

  static func readAdvertisingFeatures(_ index: UInt16) -> ManagementCommand {
    ManagementCommand(opcode: 0x003D, index: index, parameters: [])
  }

  /// Adds this node's advertising instance: connectable (bit 0), general discoverable (bit 1), flags managed by the
  /// kernel (bit 3), unlimited duration.
  static func addAdvertising(_ index: UInt16, data: [UInt8], scanResponse: [UInt8]) -> ManagementCommand {
    var parameters = [advertisingInstance]
    parameters.append(littleEndian: UInt32(0x0000_000B))
    parameters.append(littleEndian: UInt16(0))
    parameters.append(littleEndian: UInt16(0))
    parameters.append(UInt8(truncatingIfNeeded: data.count))
    parameters.append(UInt8(truncatingIfNeeded: scanResponse.count))
    return ManagementCommand(opcode: 0x003E, index: index, parameters: parameters + data + scanResponse)
  }

  static func removeAdvertising(_ index: UInt16) -> ManagementCommand {
    ManagementCommand(opcode: 0x003F, index: index, parameters: [advertisingInstance])
  }

  /// Sets defaults of the controller (Set Default System Configuration). Each parameter is encoded as type, length and
  /// value.
  static func setDefaults(_ index: UInt16, _ defaults: [RadioDefault]) -> ManagementCommand {
    var parameters: [UInt8] = []
    for entry in defaults {
      parameters.append(littleEndian: entry.type)
      parameters.append(2)
      parameters.append(littleEndian: entry.value)
    }
    return ManagementCommand(opcode: 0x004C, index: index, parameters: parameters)
  }

  private static func typed(_ device: WireAddress) -> [UInt8] {
    (0..<6).map { UInt8(truncatingIfNeeded: device.address >> UInt64($0 * 8)) } + [device.type]
  }
}

/// One parameter of Set Default System Configuration.
struct RadioDefault: Equatable {
  let type: UInt16
  let value: UInt16

  /// The parameters that replace the kernel's defaults.
  static let ours = [
    // The advertising interval: 100 to 150 ms (in units of 0.625 ms) instead of 1.28 s. Peers find this node ten times
    // as fast.
    RadioDefault(type: 0x000A, value: 160), RadioDefault(type: 0x000B, value: 240),
    // Discovery listens for 30 of every 100 ms (in units of 0.625 ms) instead of always. The rest of the time is left
    // to Wi-Fi on a shared antenna.
    RadioDefault(type: 0x0011, value: 160), RadioDefault(type: 0x0012, value: 48),
    // The connection interval: 15 to 30 ms (in units of 1.25 ms). The latency: 0. The supervision timeout: 4 s (in
    // units of 10 ms) instead of 420 ms.
    RadioDefault(type: 0x0017, value: 12), RadioDefault(type: 0x0018, value: 24),
    RadioDefault(type: 0x0019, value: 0), RadioDefault(type: 0x001A, value: 400),
  ]
}
