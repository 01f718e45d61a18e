import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

@Suite struct AdapterTests {
  let kernel: FakeKernel
  let story = Story()

  final class Story {
    var lines: [String] = []
    /// The rfkill block that the adapter finds for every controller. Nil if no controller is blocked.
    var block: RadioObstacle?
  }

  init() throws { kernel = try FakeKernel() }

  private func adapter(_ choice: AdapterChoice = .automatic, error: CInt? = nil) -> Adapter {
    let descriptor = kernel.theirs
    let story = story
    let adapter = Adapter(
      kernel.loop, choice,
      openSocket: { if let error { .failure(SystemError(code: error)) } else { .success(descriptor) } },
      block: { _ in story.block })
    adapter.report = { text, isFault in story.lines.append((isFault ? "fault: " : "") + text) }
    adapter.cameUp = { story.lines.append("up hci\($0.index)") }
    adapter.wentDown = { story.lines.append("down") }
    adapter.start()
    return adapter
  }

  @Test func `a controller is brought up without bonding`() {
    let adapter = adapter()
    #expect(kernel.serve() == [0x03, 0x04, 0x0D, 0x09, 0x4C, 0x05, 0x04, 0x3D])
    #expect(adapter.working == .init(index: 0, address: FakeKernel.address, isExtended: false))
    #expect(story.lines == ["hci0 B8:27:EB:00:00:01 is up", "up hci0"])
    #expect(adapter.problem == nil)
    adapter.stop()
  }

  @Test func `correct settings of a controller are not changed`() {
    let adapter = adapter()
    #expect(kernel.serve(current: 0x0201, isExtended: true) == [0x03, 0x04, 0x24, 0x24, 0x4C, 0x05, 0x04, 0x3D])
    #expect(adapter.working?.isExtended == true)
    adapter.stop()
  }

  @Test func `a scan left running by a killed process is stopped before the controller is used`() {
    let adapter = adapter()
    let commands = kernel.serve(current: 0x0201, refusing: [0x24: 0x0B])
    #expect(commands.firstIndex(of: 0x24) == 2)
    #expect(adapter.working != nil, "that there was none is no fault")
    adapter.stop()
  }

  @Test func `an old kernel may refuse the default parameters without a fault`() {
    let adapter = adapter()
    kernel.serve(refusing: [0x4C: 0x01])
    #expect(adapter.working != nil)
    adapter.stop()
  }

  @Test func `automatic selection uses the controller with the lowest index`() {
    let adapter = adapter()
    kernel.serve(indexes: [3, 1, 2])
    #expect(adapter.working?.index == 1)
    adapter.stop()
  }

  @Test func `a controller is selected by its index or its address`() throws {
    let byIndex = adapter(.index(2))
    kernel.serve(indexes: [0, 1, 2])
    #expect(byIndex.working?.index == 2)
    byIndex.stop()

    let other = try FakeKernel()
    let descriptor = other.theirs
    let byAddress = Adapter(other.loop, .address(FakeKernel.address + 1)) { .success(descriptor) }
    byAddress.start()
    other.serve(indexes: [0, 1, 2])
    #expect(byAddress.working?.index == 1)
    byAddress.stop()
  }

  @Test func `a missing controller is reported once and used when it appears`() {
    let adapter = adapter(.index(0))
    kernel.serve(indexes: [])
    kernel.tell(0x0004, 5)
    kernel.serve(indexes: [5])
    #expect(story.lines == ["fault: no Bluetooth controller hci0: check the adapter setting (it is used once present)"])
    kernel.tell(0x0004, 0)
    kernel.serve(indexes: [0, 5])
    #expect(adapter.working?.index == 0)
    adapter.stop()
  }

  @Test func `a controller without LE is reported and not used`() {
    let adapter = adapter()
    kernel.serve(supported: 0x0001)
    #expect(story.lines == ["fault: hci0 does not support Bluetooth LE: use another adapter"])
    adapter.stop()
  }

  @Test func `the report of a blocked radio contains the remedy`() {
    let adapter = adapter()
    kernel.serve(refusing: [0x05: 0x12])
    #expect(story.lines == ["fault: hci0 is blocked: run `rfkill unblock bluetooth`"])
    #expect(adapter.problem != nil)
    adapter.stop()
  }

  @Test func `a blocked controller is reported, and set up as soon as it is unblocked`() {
    let adapter = adapter()
    kernel.serve()
    story.lines = []
    story.block = .blocked
    kernel.tell(0x0006, 0, [0x00, 0x02, 0, 0])
    #expect(story.lines == ["down", "fault: hci0 is blocked: run `rfkill unblock bluetooth`"])
    adapter.radioMayHaveChanged()
    serve(kernel.loop, for: .milliseconds(1200))
    #expect(kernel.take() == nil, "nothing is tried")
    story.block = nil
    adapter.radioMayHaveChanged()
    kernel.serve()
    #expect(story.lines.suffix(2) == ["hci0 B8:27:EB:00:00:01 is up", "up hci0"])
    adapter.stop()
  }

  @Test func `a working controller goes down when it is blocked`() {
    let adapter = adapter()
    kernel.serve()
    story.lines = []
    story.block = .switchedOff
    adapter.radioMayHaveChanged()
    #expect(story.lines == ["down", "fault: hci0 is off by a hardware switch (rfkill): turn it on"])
    adapter.stop()
  }

  @Test func `a controller that does not respond is power-cycled`() {
    let adapter = adapter()
    kernel.serve()
    adapter.recoverSilent("it is silent")
    var powered: [[UInt8]] = []
    serve(kernel.loop) {
      guard let command = kernel.take() else { return powered.count == 2 }
      if command.opcode == 0x05 { powered.append(command.parameters) }
      kernel.answer(command)
      return false
    }
    #expect(powered == [[0], [1]])
    adapter.stop()
  }

  @Test func `the report of a missing permission contains the remedy`() {
    let adapter = adapter()
    kernel.serve(refusing: [0x0D: 0x14])
    #expect(story.lines == ["fault: no permission to configure hci0: run with CAP_NET_ADMIN"])
    adapter.stop()
  }

  @Test func `a kernel without Bluetooth is reported once as a fault`() {
    let adapter = adapter(error: EAFNOSUPPORT)
    #expect(story.lines.count == 1)
    #expect(story.lines[0].hasPrefix("fault: this kernel offers no Bluetooth here"))
    adapter.stop()
  }

  @Test func `a controller that is unplugged goes down, and comes up when it returns`() {
    let adapter = adapter()
    kernel.serve()
    story.lines = []
    kernel.tell(0x0005, 0)
    kernel.serve(indexes: [])
    #expect(story.lines.first == "down")
    #expect(story.lines.count == 2)
    kernel.tell(0x0004, 0)
    kernel.serve()
    #expect(story.lines.suffix(2) == ["hci0 B8:27:EB:00:00:01 is up", "up hci0"])
    adapter.stop()
  }

  @Test func `the removal of another controller changes nothing`() {
    let adapter = adapter()
    kernel.serve(indexes: [0, 1])
    kernel.tell(0x0005, 1)
    #expect(adapter.working?.index == 0)
    adapter.stop()
  }

  @Test func `a controller that is switched off goes down`() {
    let adapter = adapter()
    kernel.serve()
    story.lines = []
    kernel.tell(0x0006, 0, [0x00, 0x02, 0, 0])
    #expect(story.lines == ["down", "fault: hci0 was switched off; it is switched on again"])
    #expect(adapter.working == nil)
    adapter.stop()
  }

  @Test func `only events of the controller in use are passed on`() {
    let adapter = adapter()
    var events: [ManagementEvent] = []
    adapter.eventReceived = { events.append($0) }
    kernel.tell(0x0013, 0, [6, 1])
    kernel.serve()
    kernel.tell(0x0013, 0, [6, 0])
    kernel.tell(0x0013, 1, [6, 1])
    #expect(events == [.discovering(false, isInquiry: false)])
    adapter.stop()
  }

  @Test func `nothing is reported after stop`() {
    let adapter = adapter()
    kernel.serve()
    story.lines = []
    adapter.stop()
    #expect(story.lines == [])
  }
}
