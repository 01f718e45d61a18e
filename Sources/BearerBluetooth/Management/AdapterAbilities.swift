import CBluetooth
import CSystem
import Primitives
import Reactor

/// The abilities of a controller, for the checks of the module `Doctor`. The daemon itself queries its controllers
/// through `ManagementChannel`.
public struct AdapterAbilities: Equatable, Sendable {
  /// The kernel's name, such as `hci0`.
  public var name: String
  public var hasLowEnergy: Bool
  public var isPowered: Bool
  public var hasClassic: Bool

  public init(name: String, hasLowEnergy: Bool, isPowered: Bool, hasClassic: Bool = true) {
    self.name = name
    self.hasLowEnergy = hasLowEnergy
    self.isPowered = isPowered
    self.hasClassic = hasClassic
  }
}

/// Queries the kernel for its controllers and their abilities. The call needs no privilege, because both commands are
/// open to untrusted users (BlueZ doc/mgmt-api.txt). The call blocks for up to 1 s for each packet that it awaits.
/// Returns nil if the kernel has no Bluetooth or does not answer.
public func adapterAbilities() -> [AdapterAbilities]? {
  guard let descriptor = try? ManagementChannel.openSocket() else { return nil }
  defer { close(descriptor) }
  guard let list = answer(descriptor, .readIndexList), let indexes = indexList(list) else { return nil }
  return indexes.compactMap { index in
    guard let bytes = answer(descriptor, .readInformation(index)), let information = ControllerInformation(bytes) else {
      return nil
    }
    return AdapterAbilities(
      name: "hci\(index)", hasLowEnergy: information.supported.contains(.lowEnergy),
      isPowered: information.current.contains(.powered), hasClassic: information.supported.contains(.classic))
  }
}

/// Whether the kernel can create RFCOMM sockets. For this call, the kernel loads its RFCOMM module if that is allowed.
/// The call needs no privilege.
public func kernelHasRFCOMM() -> Bool {
  let descriptor = socket(AF_BLUETOOTH, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), BTPROTO_RFCOMM)
  if descriptor < 0 { return false }
  close(descriptor)
  return true
}

/// The answer to one command; nil if the command is refused or not answered.
private func answer(_ descriptor: CInt, _ command: ManagementCommand) -> [UInt8]? {
  let bytes = command.bytes
  guard send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count else { return nil }
  var buffer = [UInt8](repeating: 0, count: ManagementEvent.packetBytesMax)
  // Events of the controllers can arrive before the answer.
  for _ in 0..<packetsMax {
    var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&polled, 1, answerMilliseconds) > 0 else { return nil }
    let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
    guard count > 0 else { return nil }
    guard let (index, event) = ManagementEvent.decode(Array(buffer[..<count])), index == command.index,
      case .reply(command.opcode, let status, let parameters) = event
    else { continue }
    return status == .success ? parameters : nil
  }
  return nil
}

private let packetsMax = 64
private let answerMilliseconds: CInt = 1000
