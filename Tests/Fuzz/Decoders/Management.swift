@testable import BearerBluetooth
import Bearer
import FuzzSupport
import Primitives

/// Decodes packets of the kernel's Bluetooth management socket, and the advertisements in them. In the input, each
/// packet follows its length. Any device in radio range can choose the content of an advertisement.
func fuzzManagement(_ input: UnsafeRawBufferPointer) {
  _ = CausewayService.claim(in: Array(input))
  var script = Script(input)
  var table = HeardPeers()
  var now = Instant.zero + .seconds(1)
  table.scanning(true, now)
  while !script.isOver {
    let packet = Array(script.bytes(Int(script.u16() & 0xFFF)))
    guard let (_, event) = ManagementEvent.decode(packet) else { continue }
    now = now + .milliseconds(100)
    hear(event, &table, now)
    expect(table.count <= HeardPeers.entriesMax, "\(table.count) candidates")
  }
  now = now + .seconds(3600)
  _ = table.expire(now)
  _ = table.removeAll(now)
}

private func hear(_ event: ManagementEvent, _ table: inout HeardPeers, _ now: Instant) {
  switch event {
  case .reply(_, let status, let parameters):
    _ = status.text
    _ = ControllerInformation(parameters)
    _ = supportsExtendedAdvertising(parameters)
    if let indexes = indexList(parameters) { expect(indexes.count * 2 <= parameters.count, "indexes made up") }
  case .deviceFound(let found):
    guard let claim = CausewayService.claim(in: found.data) else { return }
    _ = table.heard(found.device, hint: claim.hint, relays: claim.relays, now)
  case .deviceConnected(let device, _): table.linked(device, true, now)
  case .deviceDisconnected(let device, _): table.linked(device, false, now)
  case .discovering(let isOn, _): table.scanning(isOn, now)
  case .connectFailed(let device, _): _ = table.dialled(device, now)
  case .controllerError, .indexAdded, .indexRemoved, .newSettings, .pinCodeRequest,
    .confirmationRequest, .passkeyRequest, .advertisingRemoved, .other:
    break
  }
}
