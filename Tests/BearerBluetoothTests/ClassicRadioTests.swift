import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// Bluetooth classic beside LE over a simulated kernel. No peer connects to the listening sockets of this radio; the
/// radio lab tests these sockets with real connections.
@Suite struct ClassicRadioTests {
  private static let setUp: [UInt16] = [0x0B, 0x18, 0x07, 0x0F, 0x11, 0x10, 0x10, 0x0E, 0x06]
  private let kernel: FakeKernel
  private let witness = Witness()

  init() throws { kernel = try FakeKernel() }

  private func start(isClassic: Bool = true, isLowEnergy: Bool = true, failure: CInt? = nil) -> BluetoothBearer {
    var settings = BluetoothSettings()
    settings.isClassic = isClassic
    settings.isLowEnergy = isLowEnergy
    let descriptor = kernel.theirs
    let bearer = BluetoothBearer(
      kernel.loop, settings, hint: 0x11, witness, openSocket: { .success(descriptor) },
      openClassic: { (_) throws(SystemError) in
        if let failure { throw SystemError(code: failure) }
        return (socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0), 5, socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0))
      })
    bearer.start()
    return bearer
  }

  @Test func `a bearer with LE only sends no classic commands`() {
    let bearer = start(isClassic: false)
    #expect(!kernel.serve().contains { Self.setUp.contains($0) })
    #expect(bearer.snapshot.classic == nil)
    bearer.stop()
  }

  @Test func `a bearer with classic becomes connectable and discoverable`() {
    let bearer = start()
    #expect(kernel.serve().filter { Self.setUp.contains($0) } == Self.setUp)
    #expect(
      bearer.snapshot.classic
        == ClassicSnapshot(channel: 5, links: 0, linksMax: 7, isDiscoverable: true, problem: nil))
    #expect(witness.news.contains("peers can connect"))
    bearer.stop()
  }

  @Test func `LE continues if the kernel has no RFCOMM`() {
    let bearer = start(failure: EPROTONOSUPPORT)
    #expect(!kernel.serve().contains(0x06))
    let text = "peers cannot connect: the kernel has no RFCOMM: run “modprobe rfcomm”, or set [bluetooth] classic = no"
    #expect(witness.faults.contains(text))
    #expect(bearer.snapshot.classic?.problem == text && bearer.snapshot.classic?.channel == nil)
    #expect(bearer.snapshot.isAdvertising && bearer.snapshot.isScanning)
    bearer.stop()
  }

  @Test func `a command that the kernel refuses is reported, and LE continues`() {
    let bearer = start()
    kernel.serve(refusing: [0x06: 0x0B])
    #expect(witness.faults.last == "peers cannot find this box: the kernel refuses command 6: rejected, mgmt status 11")
    #expect(bearer.snapshot.classic?.isDiscoverable == false && bearer.snapshot.isAdvertising)
    bearer.stop()
  }

  @Test func `a failure of IP over Bluetooth leaves the rest of the bearer working`() {
    var settings = BluetoothSettings()
    settings.isClassic = true
    settings.networkBridge = "br0"
    let descriptor = kernel.theirs
    let bearer = BluetoothBearer(
      kernel.loop, settings, hint: 0x11, witness, openSocket: { .success(descriptor) },
      openClassic: { (_) throws(SystemError) in
        (socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0), 5, socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0))
      })
    bearer.start()
    kernel.serve()
    // The network's listening socket cannot be bound, because this machine has no controller with the simulated
    // address.
    #expect(witness.faults.filter { $0.hasPrefix("peers cannot join: ") }.count == 1)
    #expect(bearer.classic?.network?.snapshot?.problem != nil && bearer.snapshot.classic?.isDiscoverable == true)
    bearer.stop()
  }

  @Test func `LE links and classic links are counted separately`() {
    let bearer = start()
    kernel.serve()
    let device: [UInt8] = [1, 2, 3, 4, 5, 6, 0]
    kernel.tell(0x000B, 0, device + [0, 0, 0, 0, 0, 0])
    #expect(bearer.snapshot.classic?.links == 1 && bearer.snapshot.links == 0)
    kernel.tell(0x000C, 0, device + [3])
    #expect(bearer.snapshot.classic?.links == 0)
    bearer.stop()
  }

  @Test func `a stream over a connection of an earlier process counts as a link`() {
    let bearer = start()
    kernel.serve()
    bearer.accepted(socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0), WireAddress(classic: 1), unitBytesMax: .max)
    #expect(witness.opened.map(\.remote) == [.bluetoothClassic(1)] && bearer.snapshot.classic?.links == 1)
    kernel.tell(0x000C, 0, [1, 0, 0, 0, 0, 0, 0, 3])
    #expect(bearer.snapshot.classic?.links == 0)
    for stream in witness.opened { close(stream.descriptor) }
    bearer.stop()
  }

  @Test func `stopping makes the box unconnectable and removes its service UUIDs`() {
    let bearer = start()
    kernel.serve()
    bearer.stop()
    var asked: [FakeKernel.Command] = []
    while let command = kernel.take() { asked.append(command) }
    #expect(asked.contains(.init(opcode: 0x07, index: 0, parameters: [0])))
    #expect(asked.contains(.init(opcode: 0x11, index: 0, parameters: [UInt8](repeating: 0, count: 16))))
  }

  @Test func `a removed controller has no RFCOMM channel and is not discoverable`() {
    let bearer = start()
    kernel.serve()
    kernel.tell(0x0005, 0)
    #expect(bearer.snapshot.classic?.channel == nil && bearer.snapshot.classic?.isDiscoverable == false)
    bearer.stop()
  }

  // MARK: Inquiries and dials

  /// The event of a device that responded to an inquiry, with the hint that it announces.
  private func answer(_ address: UInt64, hint: UInt64) -> [UInt8] {
    let data = [33, 0x07] + CausewayService.uuid + CausewayService.claimUUID(.init(hint: hint))
    return BluetoothEndpoint(address: address, isRandom: false).wireBytes + [0, 0xC4, 0, 0, 0, 0, UInt8(data.count), 0]
      + data
  }

  private func candidate(_ address: UInt64, hint: UInt64) -> Candidate {
    Candidate(bearer: .bluetoothClassic, address: .bluetoothClassic(address), hint: hint)
  }

  @Test func `a bearer with classic only inquires and uses no LE`() {
    let bearer = start(isLowEnergy: false)
    // 0x81 are the supported and the current settings: powered, and BR/EDR without LE.
    let asked = kernel.serve(supported: 0x81, current: 0x81)
    #expect(asked.last == 0x23 && !asked.contains(0x3E) && !asked.contains(0x0D))
    #expect(bearer.snapshot.classic?.isInquiring == true && !bearer.snapshot.isScanning)
    bearer.stop()
  }

  @Test func `a bearer with classic only does not use an LE-only adapter`() {
    let bearer = start(isLowEnergy: false)
    kernel.serve(supported: 0x201)
    #expect(bearer.snapshot.problem == "hci0 does not support Bluetooth classic: use another adapter")
    bearer.stop()
  }

  @Test func `a peer that answers an inquiry is found once, and lost after three failed dials`() {
    let bearer = start(isLowEnergy: false)
    kernel.serve(supported: 0x81, current: 0x81)
    kernel.tell(0x12, 0, answer(0x55, hint: 0x22))
    kernel.tell(0x12, 0, answer(0x55, hint: 0x22))
    kernel.tell(0x12, 0, answer(0x66, hint: 0x11))
    let found = candidate(0x55, hint: 0x22)
    #expect(witness.found == [found])
    // Each dial fails at once, because this machine has no controller with the simulated address.
    for token in 1...3 as ClosedRange<UInt32> {
      #expect(witness.lost == [])
      bearer.dial(found, token: token)
      serve(kernel.loop) {
        kernel.serve(supported: 0x81, current: 0x81)
        return witness.failed.count == Int(token)
      }
    }
    #expect(witness.failed.map(\.token) == [1, 2, 3] && witness.lost == [found])
    kernel.tell(0x12, 0, answer(0x55, hint: 0x22))
    #expect(witness.found == [found])
    bearer.stop()
  }

  @Test func `a bearer with LE only ignores responses to the inquiry of another program`() {
    let bearer = start(isClassic: false)
    kernel.serve()
    kernel.tell(0x12, 0, answer(0x55, hint: 0x22))
    #expect(witness.found == [])
    bearer.stop()
  }

  @Test func `an inquiry ends when enough bytes pass over Bluetooth`() {
    let bearer = start(isLowEnergy: false)
    kernel.serve(supported: 0x81, current: 0x81)
    kernel.tell(0x000B, 0, [1, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0])
    bearer.passed(.bluetoothClassic(1), 4095)
    #expect(kernel.take() == nil)
    bearer.passed(.bluetoothClassic(1), 1)
    #expect(kernel.take() == .init(opcode: 0x24, index: 0, parameters: [1]))
    bearer.stop()
  }

  @Test func `no inquiry runs while all classic link slots are taken`() {
    let bearer = start(isLowEnergy: false)
    kernel.serve(supported: 0x81, current: 0x81)
    for number in 1...7 as ClosedRange<UInt8> {
      kernel.tell(0x000B, 0, [number, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0])
    }
    #expect(kernel.take() == .init(opcode: 0x24, index: 0, parameters: [1]))
    bearer.stop()
  }
}
