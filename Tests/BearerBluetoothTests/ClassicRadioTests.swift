import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// Classic beside LE over a simulated kernel. Its listeners are sockets that nobody connects to; the radio lab has real ones.
@Suite struct ClassicRadioTests {
  private static let setUp: [UInt16] = [0x0B, 0x18, 0x07, 0x0F, 0x0E, 0x11, 0x10, 0x10, 0x06]
  private let kernel: FakeKernel
  private let witness = Witness()

  init() throws { kernel = try FakeKernel() }

  private func start(isClassic: Bool = true, failure: CInt? = nil) -> BluetoothBearer {
    var settings = BluetoothSettings()
    settings.isClassic = isClassic
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

  @Test func aBearerOfLEAloneAsksForNothingOfClassic() {
    let bearer = start(isClassic: false)
    #expect(!kernel.serve().contains { Self.setUp.contains($0) })
    #expect(bearer.snapshot.classic == nil)
    bearer.stop()
  }

  @Test func peersFindTheBoxOnceItListens() {
    let bearer = start()
    #expect(kernel.serve().filter { Self.setUp.contains($0) } == Self.setUp)
    #expect(
      bearer.snapshot.classic
        == ClassicSnapshot(channel: 5, links: 0, linksMax: 7, isDiscoverable: true, problem: nil))
    #expect(witness.news.contains("peers can connect"))
    bearer.stop()
  }

  @Test func lowEnergyGoesOnWhereTheKernelHasNoRFCOMM() {
    let bearer = start(failure: EPROTONOSUPPORT)
    #expect(!kernel.serve().contains(0x06))
    let text = "nobody can connect: the kernel has no RFCOMM: run “modprobe rfcomm”, or set [bluetooth] classic = no"
    #expect(witness.faults.contains(text))
    #expect(bearer.snapshot.classic?.problem == text && bearer.snapshot.classic?.channel == nil)
    #expect(bearer.snapshot.isAdvertising && bearer.snapshot.isScanning)
    bearer.stop()
  }

  @Test func aCommandThatTheKernelRefusesIsToldAndLowEnergyGoesOn() {
    let bearer = start()
    kernel.serve(refusing: [0x06: 0x0B])
    #expect(witness.faults.last == "peers do not find it: the kernel refuses command 6: rejected, mgmt status 11")
    #expect(bearer.snapshot.classic?.isDiscoverable == false && bearer.snapshot.isAdvertising)
    bearer.stop()
  }

  @Test func aNetworkThatCannotBeServedLeavesTheRestAsItIs() {
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
    // No controller has the simulated one's address.
    #expect(witness.faults.filter { $0.hasPrefix("nobody can join: ") }.count == 1)
    #expect(bearer.classic?.network?.snapshot?.problem != nil && bearer.snapshot.classic?.isDiscoverable == true)
    bearer.stop()
  }

  @Test func linksOfTheTwoKindsAreCountedApart() {
    let bearer = start()
    kernel.serve()
    let device: [UInt8] = [1, 2, 3, 4, 5, 6, 0]
    kernel.tell(0x000B, 0, device + [0, 0, 0, 0, 0, 0])
    #expect(bearer.snapshot.classic?.links == 1 && bearer.snapshot.links == 0)
    kernel.tell(0x000C, 0, device + [3])
    #expect(bearer.snapshot.classic?.links == 0)
    bearer.stop()
  }

  @Test func theEndHidesTheBox() {
    let bearer = start()
    kernel.serve()
    bearer.stop()
    var asked: [FakeKernel.Command] = []
    while let command = kernel.take() { asked.append(command) }
    #expect(asked.contains(.init(opcode: 0x07, index: 0, parameters: [0])))
    #expect(asked.contains(.init(opcode: 0x11, index: 0, parameters: [UInt8](repeating: 0, count: 16))))
  }

  @Test func aControllerThatIsAwayHasNoChannel() {
    let bearer = start()
    kernel.serve()
    kernel.tell(0x0005, 0)
    #expect(bearer.snapshot.classic?.channel == nil && bearer.snapshot.classic?.isDiscoverable == false)
    bearer.stop()
  }
}
