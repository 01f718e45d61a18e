import CSystem
import Primitives
import Reactor
import Testing

@testable import BearerBluetooth

@Suite struct ManagementChannelTests {
  let kernel: FakeKernel
  let channel: ManagementChannel

  init() throws {
    kernel = try FakeKernel()
    channel = try ManagementChannel(kernel.loop, kernel.theirs)
  }

  @Test func `a reply is delivered to its command`() {
    var outcome: ManagementOutcome?
    channel.send(.readIndexList) { outcome = $0 }
    #expect(kernel.take() == .init(opcode: 3, index: 0xFFFF, parameters: []))
    kernel.reply(3, 0xFFFF, 0, [0, 0])
    #expect(outcome == .done([0, 0]))
    channel.close()
  }

  @Test func `a refusal contains its status`() {
    var outcome: ManagementOutcome?
    channel.send(.setPowered(0, true)) { outcome = $0 }
    _ = kernel.take()
    kernel.reply(5, 0, 0x12)
    #expect(outcome == .refused(.blockedByRFKill))
    channel.close()
  }

  @Test func `commands for one controller are sent one at a time, independently of other controllers`() {
    var done: [String] = []
    channel.send(.setPowered(0, true)) { _ in done.append("power 0") }
    channel.send(.startDiscovery(0)) { _ in done.append("scan 0") }
    channel.send(.setPowered(1, true)) { _ in done.append("power 1") }
    #expect(kernel.take()?.opcode == 5)
    #expect(kernel.take() == .init(opcode: 5, index: 1, parameters: [1]))
    #expect(kernel.take() == nil)
    kernel.reply(5, 0)
    #expect(kernel.take() == .init(opcode: 0x23, index: 0, parameters: [6]))
    kernel.reply(0x23, 0)
    kernel.reply(5, 1)
    #expect(done == ["power 0", "scan 0", "power 1"])
    channel.close()
  }

  @Test func `a reply without a pending command is dropped`() {
    var outcomes = 0
    channel.send(.setPowered(0, true)) { _ in outcomes += 1 }
    _ = kernel.take()
    kernel.reply(9, 0)
    kernel.reply(5, 1)
    #expect(outcomes == 0)
    kernel.reply(5, 0)
    kernel.reply(5, 0)
    #expect(outcomes == 1)
    channel.close()
  }

  @Test func `an event is delivered with the index of its controller`() {
    var events: [ManagementEvent] = []
    channel.eventReceived = { index, event in
      #expect(index == 7)
      events.append(event)
    }
    kernel.tell(0x0004, 7)
    kernel.tell(0x0013, 7, [6, 1])
    #expect(events == [.indexAdded, .discovering(true, isInquiry: false)])
    channel.close()
  }

  @Test func `malformed and overlong packets are dropped`() {
    var events: [ManagementEvent] = []
    channel.eventReceived = { _, event in events.append(event) }
    kernel.put([0x13, 0, 0, 0, 9, 0, 6, 1])
    kernel.put([1])
    kernel.tell(0x0099, 0, [UInt8](repeating: 0, count: 5000))
    kernel.tell(0x0004, 0)
    #expect(events == [.indexAdded])
    channel.close()
  }

  @Test func `a command beyond the queue limit is not sent`() {
    var outcomes: [ManagementOutcome] = []
    for _ in 0...(ManagementChannel.queuedMax + 1) {
      channel.send(.setPowered(0, true)) { outcomes.append($0) }
    }
    #expect(outcomes == [.notSent])
    channel.close()
    #expect(outcomes.count == ManagementChannel.queuedMax + 2)
  }

  @Test func `closing ends every command once`() {
    var outcomes: [ManagementOutcome] = []
    channel.send(.setPowered(0, true)) { outcomes.append($0) }
    channel.send(.startDiscovery(0)) { outcomes.append($0) }
    channel.close()
    channel.close()
    #expect(outcomes == [.notSent, .notSent])
  }

  @Test func `the end of the socket is reported after its commands have ended`() {
    var story: [String] = []
    channel.failed = { _ in story.append("failed") }
    channel.send(.setPowered(0, true)) { _ in story.append("not sent") }
    kernel.hangUp()
    kernel.loop.turn(waitMilliseconds: 0)
    #expect(story == ["not sent", "failed"])
  }
}
