import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

/// The bearer over a simulated kernel. The bearer's L2CAP sockets bind to the simulated controller's address, which
/// this machine does not have. So listeners and dials fail in this test. The radio lab tests listeners and dials with a
/// real kernel.
@Suite struct BluetoothBearerTests {
  let kernel: FakeKernel
  let witness = Witness()
  let bearer: BluetoothBearer

  init() throws {
    kernel = try FakeKernel()
    let descriptor = kernel.theirs
    bearer = BluetoothBearer(kernel.loop, BluetoothSettings(), hint: 0x11, witness) { .success(descriptor) }
    bearer.start()
  }

  private func deviceFound(_ address: UInt64, hint: UInt64, flags: UInt8 = 0) -> [UInt8] {
    let data = [2, 1, 6] + CausewayService.advertisement + CausewayService.scanResponse(.init(hint: hint))
    let device = BluetoothEndpoint(address: address, isRandom: true)
    return device.wireBytes + [2, 0xC4, flags, 0, 0, 0, UInt8(data.count), 0] + data
  }

  private func candidate(_ address: UInt64, _ hint: UInt64) -> Candidate {
    let endpoint = BluetoothEndpoint(address: address, isRandom: true)
    return Candidate(bearer: .bluetoothLE, address: .bluetooth(endpoint), hint: hint)
  }

  @Test func `a controller that comes up advertises and scans`() {
    #expect(kernel.serve().suffix(2) == [0x3E, 0x23])
    let snapshot = bearer.snapshot
    #expect(snapshot.adapterAddress == FakeKernel.address)
    #expect(snapshot.isAdvertising && snapshot.isScanning)
    #expect(snapshot.problem == nil)
    bearer.stop()
  }

  /// Simulates a kernel with this revision of the management interface. Returns the peer of a connection that this node
  /// initiated.
  private func connect(revision: UInt8) -> BluetoothEndpoint {
    while let command = kernel.take() {
      if command.opcode == 0x0001 {
        kernel.reply(1, command.index, 0, [1, revision, 0])
      } else {
        kernel.answer(command)
      }
    }
    let peer = BluetoothEndpoint(address: 0x55, isRandom: true)
    kernel.tell(0x000B, 0, peer.wireBytes + [2, 8, 0, 0, 0, 0, 0])
    kernel.serve()
    return peer
  }

  @Test func `a connection under load gets short intervals`() {
    let peer = connect(revision: 23)
    bearer.passed(.bluetooth(peer), 10_000)
    let command = kernel.take()
    #expect(command?.opcode == 0x0035)
    #expect(command?.parameters == [1, 0] + peer.wireBytes + [2, 6, 0, 12, 0, 0, 0, 0x90, 1])
    #expect(bearer.snapshot.fastLinks == 1)
    bearer.stop()
  }

  @Test func `connection parameters are not set on a kernel that only stores them`() {
    let peer = connect(revision: 22)
    bearer.passed(.bluetooth(peer), 10_000)
    #expect(kernel.take() == nil && bearer.snapshot.fastLinks == 0)
    bearer.stop()
  }

  @Test func `a scan stops under heavy Wi-Fi traffic until the Wi-Fi link ends`() {
    kernel.serve()
    #expect(bearer.snapshot.isScanning)
    bearer.passedOverWiFi(1 << 20)
    #expect(kernel.serve() == [0x24])
    #expect(!bearer.snapshot.isScanning && bearer.snapshot.isAirShared)
    bearer.wifiEnded()
    #expect(!bearer.snapshot.isAirShared)
    bearer.stop()
  }

  /// Refuses each scan until the bearer adds its advertisement again. Answers the command that adds the advertisement
  /// with `status`.
  private func refuseScans(thenAdvertising status: UInt8) {
    kernel.serve(refusing: [0x23: 0x0A])
    var isAsked = false
    serve(kernel.loop) {
      guard let command = kernel.take() else { return isAsked }
      isAsked = command.opcode == 0x3E
      kernel.reply(command.opcode, command.index, isAsked ? status : 0x0A)
      return isAsked
    }
    #expect(isAsked)
    kernel.loop.turn(waitMilliseconds: 0)
  }

  @Test func `a controller whose commands fail is power-cycled if it does not respond to a probe either`() {
    refuseScans(thenAdvertising: 0x05)
    #expect(witness.faults.last == "the controller does not answer; it is switched off and on")
    bearer.stop()
  }

  @Test func `a busy controller that responds to a probe is not power-cycled`() {
    refuseScans(thenAdvertising: 0)
    #expect(bearer.snapshot.problem == nil)
    #expect(bearer.snapshot.isAdvertising)
    bearer.stop()
  }

  @Test func `a controller without links that refuses every command is power-cycled even if it responds`() {
    refuseScans(thenAdvertising: 0)
    serve(kernel.loop) {
      if let command = kernel.take() { kernel.reply(command.opcode, command.index, 0x0A) }
      return bearer.snapshot.problem != nil
    }
    #expect(witness.faults.last == "the controller refuses its commands; it is switched off and on")
    bearer.stop()
  }

  @Test func `an advertiser of the service is found once`() {
    kernel.serve()
    kernel.tell(0x12, 0, deviceFound(0xC0FF_EE00_0001, hint: 0x22))
    kernel.tell(0x12, 0, deviceFound(0xC0FF_EE00_0001, hint: 0x22))
    #expect(witness.found == [candidate(0xC0FF_EE00_0001, 0x22)])
    bearer.stop()
  }

  @Test func `the node itself and devices that accept no connections are not found`() {
    kernel.serve()
    kernel.tell(0x12, 0, deviceFound(0xC0FF_EE00_0001, hint: 0x11))
    kernel.tell(0x12, 0, deviceFound(0xC0FF_EE00_0002, hint: 0x22, flags: 4))
    #expect(witness.found == [])
    bearer.stop()
  }

  @Test func `pairing is refused`() {
    kernel.serve()
    let device = BluetoothEndpoint(address: 0xC0FF_EE00_0001, isRandom: true).wireBytes + [2]
    kernel.tell(0x0F, 0, device + [1, 0, 0, 0, 0])
    #expect(kernel.take() == .init(opcode: 0x1D, index: 0, parameters: device))
    kernel.reply(0x1D, 0)
    kernel.tell(0x10, 0, device)
    #expect(kernel.take() == .init(opcode: 0x1F, index: 0, parameters: device))
    kernel.reply(0x1F, 0)
    kernel.tell(0x0E, 0, device + [0])
    #expect(kernel.take() == .init(opcode: 0x17, index: 0, parameters: device))
    bearer.stop()
  }

  @Test func `each link is counted once and restarts advertising`() {
    kernel.serve()
    let device = BluetoothEndpoint(address: 0xC0FF_EE00_0001, isRandom: true).wireBytes + [2]
    kernel.tell(0x0B, 0, device + [0, 0, 0, 0, 0, 0])
    kernel.tell(0x0B, 0, device + [0, 0, 0, 0, 0, 0])
    #expect(kernel.serve() == [0x3E])
    #expect(bearer.snapshot.links == 1)
    kernel.tell(0x0C, 0, device + [1])
    kernel.tell(0x0C, 0, device + [1])
    #expect(bearer.snapshot.links == 0)
    bearer.stop()
  }

  @Test func `a hang-up disconnects a device only while it is connected`() {
    kernel.serve()
    let endpoint = BluetoothEndpoint(address: 0xC0FF_EE00_0001, isRandom: true)
    bearer.hangUp(endpoint)
    #expect(kernel.take() == nil)
    kernel.tell(0x0B, 0, endpoint.wireBytes + [2, 0, 0, 0, 0, 0, 0])
    kernel.serve()
    bearer.hangUp(endpoint)
    #expect(kernel.take() == .init(opcode: 0x14, index: 0, parameters: endpoint.wireBytes + [2]))
    bearer.stop()
  }

  @Test func `a dial waits for the slot of a connection that is being hung up`() {
    kernel.serve()
    let devices = (1...7).map { BluetoothEndpoint(address: 0xC0FF_EE00_0000 + $0, isRandom: true) }
    for device in devices { kernel.tell(0x0B, 0, device.wireBytes + [2, 0, 0, 0, 0, 0, 0]) }
    kernel.serve()
    bearer.hangUp(devices[0])
    bearer.dial(candidate(0xC0FF_EE00_0010, 0), token: 9)
    kernel.serve()
    #expect(bearer.snapshot.dialsQueued == 1 && witness.failed.isEmpty)
    kernel.tell(0x0C, 0, devices[0].wireBytes + [2, 1])
    kernel.serve()
    #expect(bearer.snapshot.dialsQueued == 0)
    bearer.stop()
  }

  @Test func `a queued dial is dropped when its peer has opened a stream`() {
    kernel.serve()
    bearer.hasStream = { $0 == self.candidate(0xC0FF_EE00_0001, 0).address }
    bearer.dial(candidate(0xC0FF_EE00_0001, 0), token: 7)
    kernel.serve()
    for _ in 0..<60 where witness.failed.isEmpty {
      kernel.loop.turn(waitMilliseconds: 50)
      kernel.serve()
    }
    #expect(witness.failed.map(\.reason) == ["the peer connected first"])
    bearer.stop()
  }

  @Test func `a classic connection does not count as an LE link`() {
    kernel.serve()
    kernel.tell(0x0B, 0, [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0])
    #expect(kernel.serve() == [])
    #expect(bearer.snapshot.links == 0)
    bearer.stop()
  }

  @Test func `a peer stays a candidate when the scan that found it ends`() {
    kernel.serve()
    kernel.tell(0x12, 0, deviceFound(0xC0FF_EE00_0001, hint: 0x22))
    kernel.tell(0x13, 0, [6, 0])
    #expect(witness.lost == [])
    #expect(bearer.snapshot.candidates == 1)
    bearer.stop()
  }

  @Test func `a dial that cannot be made is reported as failed with its token`() {
    bearer.dial(candidate(0xC0FF_EE00_0001, 0), token: 5)
    kernel.serve()
    let address = RemoteAddress.ip(IPEndpoint(high: 0, low: 0, port: 1, scope: 0))
    bearer.dial(Candidate(bearer: .ethernet, address: address, hint: 0), token: 6)
    #expect(witness.failed.map(\.token) == [5, 6])
    #expect(witness.failed.first?.reason == "no Bluetooth controller is up")
    bearer.stop()
  }

  @Test func `a dial beyond the queue fails at once, and queued dials fail with the controller`() {
    kernel.serve()
    for token in 0...UInt32(BluetoothBearer.dialsQueuedMax) { bearer.dial(candidate(UInt64(token), 0), token: token) }
    #expect(witness.failed.map(\.token) == [UInt32(BluetoothBearer.dialsQueuedMax)])
    // The radio is being made idle for the first dial. Removing the controller now makes this dial and the queued dials
    // fail.
    kernel.tell(0x05, 0)
    #expect(witness.failed.count == BluetoothBearer.dialsQueuedMax + 1)
    #expect(bearer.snapshot.dialsQueued == 0)
    bearer.stop()
  }

  @Test func `candidates are lost when the controller is removed`() {
    kernel.serve()
    kernel.tell(0x12, 0, deviceFound(0xC0FF_EE00_0001, hint: 0x22))
    kernel.tell(0x05, 0)
    #expect(witness.lost == [candidate(0xC0FF_EE00_0001, 0x22)])
    bearer.stop()
  }

  @Test func `stopping the bearer stops advertising and scanning`() {
    kernel.serve()
    bearer.stop()
    #expect(kernel.take()?.opcode == 0x3F)
    #expect(kernel.take()?.opcode == 0x24)
    #expect(kernel.take() == nil)
  }
}
