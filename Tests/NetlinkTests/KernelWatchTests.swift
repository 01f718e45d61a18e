import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import Netlink

@Suite struct KernelWatchTests {
  private func concerns(_ lines: String...) -> Bool {
    KernelWatch.concernsRadios(Array(lines.map { $0 + "\0" }.joined().utf8)[...])
  }

  @Test func `only events of rfkill switches and network interfaces concern radios`() {
    let path = "DEVPATH=/devices/virtual/mac80211_hwsim/hwsim0/ieee80211/phy0/rfkill0"
    #expect(
      concerns("change@/devices/…/rfkill0", "ACTION=change", path, "SUBSYSTEM=rfkill", "RFKILL_STATE=0", "SEQNUM=1"))
    #expect(concerns("move@/devices/…/net/wlan0", "ACTION=move", "SUBSYSTEM=net", "INTERFACE=wlan0"))
    #expect(!concerns("change@/devices/…/mmc0", "ACTION=change", "SUBSYSTEM=mmc", "X=SUBSYSTEM=net"))
    #expect(!concerns("change@/devices/…/net", "SUBSYSTEM=network"))
    #expect(!concerns())
  }

  @Test func `a new interface is reported, and nothing is reported after stop`() throws {
    let loop = try EventLoop()
    var calls = 0
    let watch = try KernelWatch(loop, .radios) { calls += 1 }
    defer { watch.stop() }
    let name = "cwatch\(getpid() % 10000)"
    #expect(run("ip link add \(name) type veth peer name \(name)b && ip link del \(name)"), "needs root and iproute2")
    serve(loop) { calls > 0 }
    #expect(calls > 0)
    watch.stop()
    // Other tests create interfaces too, so there can be more than one call before the stop.
    let before = calls
    #expect(run("ip link add \(name) type veth peer name \(name)b && ip link del \(name)"))
    serve(loop, for: KernelWatch.Subject.radios.settleTime + .milliseconds(100))
    #expect(calls == before)
  }

  private func run(_ command: String) -> Bool { system(command) == 0 }
}
