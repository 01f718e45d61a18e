import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import WiFiDirect

@Suite struct SupplicantChannelTests {
  let scratch: Scratch
  let loop: EventLoop
  let supplicant: FakeSupplicant

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop()
    supplicant = try FakeSupplicant(loop, scratch.path + "/global")
  }

  private func open(
    replyTime: TimeSpan = .seconds(2), received: @escaping (SupplicantMessage) -> Void = { _ in },
    failed: @escaping (String) -> Void = { _ in }
  ) throws -> SupplicantChannel {
    try SupplicantChannel(
      loop, path: supplicant.path, clientDirectory: scratch.path, replyTime: replyTime, received: received,
      failed: failed)
  }

  @Test func `a channel requests events first and sends one command at a time`() throws {
    var isAnswering = false
    supplicant.answer = { _ in isAnswering ? "OK" : nil }
    let channel = try open()
    defer { channel.close() }
    var answered = 0
    channel.send("ONE") { _ in answered += 1 }
    channel.send("TWO") { _ in answered += 1 }
    serve(loop) { supplicant.commands.count == 1 }
    loop.turn(waitMilliseconds: 20)
    #expect(supplicant.commands == ["ATTACH"])
    isAnswering = true
    supplicant.say("OK\n")
    serve(loop) { answered == 2 }
    #expect(supplicant.commands == ["ATTACH", "ONE", "TWO"])
    #expect(channel.isIdle)
  }

  @Test func `replies and events are delivered correctly in any order`() throws {
    supplicant.answer = { [supplicant] command in
      if command == "STATUS" { supplicant.say("IFNAME=wlan0 <3>P2P-FIND-STOPPED ") }
      return command == "STATUS" ? "mode=P2P GO\nwpa_state=COMPLETED" : "OK"
    }
    var events: [SupplicantMessage] = []
    var mode: String?
    let channel = try open(received: { events.append($0) })
    defer { channel.close() }
    channel.send("STATUS") { mode = $0.value("mode") }
    serve(loop) { mode != nil }
    #expect(mode == "P2P GO")
    #expect(events == [SupplicantMessage(interface: "wlan0", event: .findStopped)])
  }

  @Test func `a reply without a pending command is ignored`() throws {
    let channel = try open()
    defer { channel.close() }
    serve(loop) { channel.isIdle }
    supplicant.say("OK\n")
    loop.turn(waitMilliseconds: 20)
    var reply: String?
    supplicant.answer = { _ in "PONG" }
    channel.send("PING") { reply = $0.text }
    serve(loop) { reply != nil }
    #expect(reply == "PONG")
  }

  @Test func `an unanswered command fails the channel once`() throws {
    supplicant.answer = { $0 == "ATTACH" ? "OK" : nil }
    var reasons: [String] = []
    let channel = try open(replyTime: .milliseconds(30), failed: { reasons.append($0) })
    var isAnswered = false
    channel.send("PING") { _ in isAnswered = true }
    channel.send("PING") { _ in isAnswered = true }
    serve(loop) { !reasons.isEmpty }
    loop.turn(waitMilliseconds: 50)
    #expect(reasons == ["has not answered for 30 ms"])
    #expect(!isAnswered)
  }

  @Test func `the end of wpa_supplicant is detected by the next command, but not reported within it`() throws {
    var reasons: [String] = []
    let channel = try open(failed: { reasons.append($0) })
    serve(loop) { channel.isIdle }
    supplicant.die()
    channel.send("PING")
    #expect(reasons.isEmpty)
    serve(loop) { !reasons.isEmpty }
    #expect(reasons.count == 1)
    #expect(reasons.first?.hasPrefix("is gone: ") == true)
  }

  @Test func `a wpa_supplicant that sends no events fails the channel`() throws {
    supplicant.answer = { _ in "FAIL" }
    var reasons: [String] = []
    let channel = try open(failed: { reasons.append($0) })
    serve(loop) { !reasons.isEmpty }
    #expect(reasons == ["does not send its events: FAIL"])
    channel.close()
  }

  @Test func `pending commands beyond the limit fail the channel`() throws {
    supplicant.answer = { _ in nil }
    var reasons: [String] = []
    let channel = try open(failed: { reasons.append($0) })
    for _ in 1...SupplicantChannel.queueMax { channel.send("PING") }
    #expect(reasons.isEmpty, "nothing may call back from within send")
    serve(loop) { !reasons.isEmpty }
    #expect(reasons == ["is too slow: \(SupplicantChannel.queueMax) commands are queued"])
  }

  @Test func `a socket without a listener is an error`() throws {
    supplicant.die()
    #expect(throws: SystemError(code: ECONNREFUSED)) { _ = try open() }
  }

  @Test func `the last command waits for no reply`() throws {
    supplicant.answer = { _ in nil }
    let channel = try open()
    channel.send("PING")
    channel.sendLast("P2P_GROUP_REMOVE p2p-wlan0-0")
    channel.close()
    serve(loop) { supplicant.commands.count == 2 }
    #expect(supplicant.commands == ["ATTACH", "P2P_GROUP_REMOVE p2p-wlan0-0"])
  }

  @Test func `a flood of events is read completely, in limited portions`() throws {
    var count = 0
    let channel = try open(received: { _ in count += 1 })
    defer { channel.close() }
    serve(loop) { channel.isIdle }
    for _ in 0..<5 {
      // Ten events at once always fit into a socket's queue (net.unix.max_dgram_qlen).
      for _ in 0..<10 { supplicant.say("<3>P2P-FIND-STOPPED ") }
      let before = count
      serve(loop) { count == before + 10 }
    }
    #expect(count == 50)
  }
}
