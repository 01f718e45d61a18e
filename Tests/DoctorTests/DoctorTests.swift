import BearerBluetooth
@testable import Board
import CSystem
import Configuration
import Doctor
import Foundation
import Netlink
import Reactor
import Testing
import Trust

/// A healthy machine made of files in a temporary directory, and the doctor's findings about it.
final class Patient {
  let root = FileManager.default.temporaryDirectory.appending(path: "doctor-\(UUID())")
  var configuration = Configuration()
  var kernelClock = SystemClock.KernelState.synchronised
  var radios = RadioAnswers(
    regulatoryDomain: "DE", adapters: [AdapterAbilities(name: "hci0", hasLowEnergy: true, isPowered: true)],
    wireless: WirelessAbilities(canBeGroupOwner: true, canBeGroupClient: true, canBeMeshPoint: false, stationsMax: 8),
    mesh: WirelessAbilities(canBeGroupOwner: true, canBeGroupClient: true, canBeMeshPoint: true, stationsMax: 8))
  var isDaemonRunning = true
  /// The fault of the configured GPIO lines, or nil if the lines work.
  var gpioFault: GPIOError?

  init() throws {
    configuration.applications.group = "causeway-apps"
    configuration.board.statusLED = "ACT"
    configuration.wifiDirect.controlSocket = "/s"
    try write("/proc/sys/kernel/osrelease", "6.12.43+rpt-rpi-v8\n")
    try write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
    try write("/sys/class/bluetooth/hci0/address", "")
    try write("/sys/class/rfkill/rfkill0/type", "bluetooth\n")
    try write("/sys/class/rfkill/rfkill0/name", "hci0\n")
    try write("/sys/class/rfkill/rfkill1/type", "wlan\n")
    try write("/sys/class/rfkill/rfkill1/name", "phy0\n")
    for file in ["soft", "hard"] {
      for number in 0...1 { try write("/sys/class/rfkill/rfkill\(number)/\(file)", "0\n") }
    }
    try write("/sys/class/net/wlan0/phy80211/index", "")
    try write("/sys/class/net/eth0/operstate", "up\n")
    try write("/sys/class/leds/ACT/trigger", "none [mmc0] timer heartbeat\n")
    try write("/etc/group", "root:x:0:\ncauseway-apps:x:990:anna\n")
    try write("/var/lib/causeway/key.pem", "")
    try write("/run/causeway/journal", "")
  }

  deinit { try? FileManager.default.removeItem(at: root) }

  func write(_ path: String, _ text: String) throws {
    let file = root.appending(path: path)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: file)
  }

  func remove(_ path: String) throws { try FileManager.default.removeItem(at: root.appending(path: path)) }

  /// Simulates a running process with this name and process id.
  func run(_ name: String, process: Int) throws { try write("/proc/\(process)/comm", "\(name)\n") }

  /// The findings about the configuration in `file` and the anchors that the daemon's user may not read, as text.
  func denied(_ file: String?) throws -> [String] {
    Doctor(configuration, isDaemonRunning: false, root: root.path, radios: radios).deniedFiles(configuration: file)
      .map { "\($0.check): \($0.text)" }
  }

  func findings() throws -> [Finding] {
    let supplicant = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
    let path = root.path + "/s"
    defer {
      close(supplicant)
      unlink(path)
    }
    if hasSupplicant { try #require(withUnixAddress(path) { bind(supplicant, $0, $1) } == 0) }
    let clock = SystemClock(flag: "/nowhere") { [kernelClock] in kernelClock }
    return Doctor(
      configuration, isDaemonRunning: isDaemonRunning, root: root.path, clock: clock, radios: radios,
      gpioFault: { [gpioFault] _ in gpioFault }
    ).examine()
  }
  var hasSupplicant = true

  /// The findings that are not good, as text.
  func complaints() throws -> [String] {
    try findings().filter { $0.state != .good }.map {
      "\($0.state == .wrong ? "wrong" : "note") \($0.check): \($0.text)"
    }
  }
}

private let pin = GPIOPin(chip: "pinctrl-bcm2711", line: "17", number: 17)

@Suite struct DoctorTests {
  let patient: Patient
  init() throws { patient = try Patient() }

  private func expect(_ complaint: String, _ sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try patient.complaints() == [complaint], sourceLocation: sourceLocation)
    let finding = try #require(try patient.findings().first { $0.state != .good })
    #expect(!finding.remedy.isEmpty, "there is a remedy", sourceLocation: sourceLocation)
  }

  @Test func `a healthy box yields no complaint`() throws {
    #expect(try patient.complaints() == [])
    #expect(
      try patient.findings().map { "\($0.check)" } == [
        "kernel", "clock", "bluetooth", "wifi-direct", "ip", "led", "group", "trust", "state", "runtime",
      ])
  }

  @Test func `the abilities of the radios of a healthy box are listed`() throws {
    let texts = try patient.findings().map(\.text)
    #expect(texts.contains("hci0: Low Energy, at most 7 links"))
    #expect(texts.contains("wlan0: wlan0 supports Wi-Fi Direct, at most 8 stations"))
  }

  @Test func `a radio whose abilities the kernel does not report causes no complaint`() throws {
    patient.radios = RadioAnswers(regulatoryDomain: nil, adapters: nil, wireless: nil, mesh: nil)
    #expect(try patient.complaints() == [])
  }

  @Test func `an adapter without LE is reported`() throws {
    patient.radios.adapters = [AdapterAbilities(name: "hci0", hasLowEnergy: false, isPowered: true)]
    try expect("wrong bluetooth: hci0: no Bluetooth Low Energy")
    patient.radios.adapters?.append(AdapterAbilities(name: "hci1", hasLowEnergy: true, isPowered: true))
    #expect(try patient.complaints() == [])
  }

  @Test func `a driver that lacks the configured Wi-Fi Direct role is reported`() throws {
    patient.radios.wireless = WirelessAbilities(
      canBeGroupOwner: false, canBeGroupClient: true, canBeMeshPoint: false, stationsMax: nil)
    try expect(
      "note wifi-direct: wlan0 cannot be the owner of a Wi-Fi Direct group: it runs an access point instead, "
        + "joined only by passphrase")
    patient.configuration.wifiDirect.mode = .client
    #expect(try patient.complaints() == [])
    patient.radios.wireless?.canBeGroupClient = false
    try expect("wrong wifi-direct: wlan0 cannot be a client of a Wi-Fi Direct group: its driver does not support it")
  }

  @Test func `too little memory is reported`() throws {
    try patient.write("/proc/meminfo", "MemTotal:         240000 kB\nMemFree:          100000 kB\n")
    try expect("note memory: the board has 234 MiB of memory: a full box may use 128, and the system needs as much")
    try patient.write("/proc/meminfo", "MemTotal:         430000 kB\n")
    #expect(try patient.complaints() == [])
  }

  @Test func `an old kernel is reported`() throws {
    try patient.write("/proc/sys/kernel/osrelease", "5.9.16")
    try expect("wrong kernel: Linux 5.9.16 is too old")
  }

  @Test func `a kernel without memory limits is reported`() throws {
    try patient.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids")
    try expect("note memory-limit: the kernel was started without the memory controller that the unit's limit needs")
  }

  @Test(arguments: [
    ("1", "wrong power: the voltage is too low"), ("50000", "note power: the voltage was too low since the start"),
  ])
  func `a weak power supply is reported`(bits: String, complaint: String) throws {
    try patient.write("/sys/devices/platform/soc/soc:firmware/get_throttled", "\(bits)\n")
    try expect(complaint)
  }

  @Test func `a clock without a time service is reported`() throws {
    patient.kernelClock = .unsynchronised
    try expect("note clock: not synchronised")
    patient.configuration.trust.policy = .authority
    #expect(try patient.complaints().first == "note clock: not synchronised: expired certificates are not refused")
  }

  @Test func `a missing Bluetooth adapter is reported`() throws {
    try patient.remove("/sys/class/bluetooth/hci0")
    try expect("wrong bluetooth: there is no adapter")
    patient.configuration.bluetooth.isEnabled = false
    #expect(try patient.complaints() == [])
  }

  @Test func `a Bluetooth connection does not count as an adapter`() throws {
    try patient.remove("/sys/class/bluetooth/hci0")
    try patient.write("/sys/class/bluetooth/hci0:64/type", "")
    try expect("wrong bluetooth: there is no adapter")
  }

  @Test func `missing support for Bluetooth classic is reported if it is enabled`() throws {
    patient.radios.adapters = [AdapterAbilities(name: "hci0", hasLowEnergy: true, isPowered: true, hasClassic: false)]
    patient.radios.hasRFCOMM = false
    #expect(try patient.complaints() == [])
    patient.configuration.bluetooth.isClassic = true
    try expect("wrong bluetooth: hci0: no Bluetooth classic")
    patient.radios.adapters = [AdapterAbilities(name: "hci0", hasLowEnergy: true, isPowered: true)]
    try expect("wrong bluetooth: the kernel has no RFCOMM, which [bluetooth] classic needs")
    patient.radios.hasRFCOMM = true
    #expect(try patient.findings().contains { $0.text == "hci0: Low Energy and classic, at most 7 links" })
    patient.radios.adapters = [AdapterAbilities(name: "hci0", hasLowEnergy: false, isPowered: true)]
    try expect("wrong bluetooth: hci0: no Bluetooth Low Energy")
    patient.configuration.bluetooth.isLowEnergy = false
    #expect(try patient.findings().contains { $0.text == "hci0: classic only, at most 7 links" })
  }

  @Test func `missing support for IP over Bluetooth is reported if it is enabled`() throws {
    patient.radios.hasBNEP = false
    patient.configuration.bluetooth.isClassic = true
    #expect(try patient.complaints() == [])
    patient.configuration.bluetooth.networkBridge = "br0"
    try expect("wrong bluetooth: the kernel has no BNEP, which [bluetooth] nap needs")
    patient.radios.hasBNEP = true
    try expect("wrong bluetooth: [bluetooth] nap does not name a bridge")
    try patient.write("/sys/class/net/br0/bridge/bridge_id", "8000.000000000000\n")
    #expect(try patient.complaints() == [])
    patient.configuration.bluetooth.networkBridge = "group"
    #expect(try patient.complaints() == [], "the daemon makes that one")
  }

  @Test func `a running bluetoothd is reported`() throws {
    try patient.run("bluetoothd", process: 612)
    try expect("wrong bluetoothd: bluetoothd runs (process 612): it and Causeway cannot share an adapter")
  }

  @Test(arguments: [(0, "Bluetooth (hci0)"), (1, "Wi-Fi (phy0)")])
  func `a blocked radio is reported`(switchNumber: Int, radio: String) throws {
    try patient.write("/sys/class/rfkill/rfkill\(switchNumber)/soft", "1\n")
    try expect("wrong rfkill: \(radio) is blocked")
    try patient.write("/sys/class/rfkill/rfkill\(switchNumber)/hard", "1\n")
    try expect("wrong rfkill: \(radio) is off by a hardware switch")
  }

  @Test func `a missing Wi-Fi radio is reported`() throws {
    try patient.remove("/sys/class/net/wlan0")
    try expect("wrong wifi-direct: there is no Wi-Fi interface")
  }

  @Test func `a Wi-Fi interface that does not exist is reported`() throws {
    patient.configuration.wifiDirect.interface = "wlan1"
    try expect("wrong wifi-direct: there is no interface wlan1")
  }

  @Test func `a mesh is checked only if it is enabled`() throws {
    #expect(try !patient.findings().contains { "\($0.check)" == "mesh" })
    patient.configuration.mesh.isEnabled = true
    try expect("wrong mesh: there is no Wi-Fi interface wlan1")
    try patient.write("/sys/class/net/wlan1/phy80211/index", "")
    #expect(try patient.complaints() == [])
    #expect(try patient.findings().contains { $0.text == "wlan1 supports mesh point" })
    patient.radios.mesh?.canBeMeshPoint = false
    try expect("wrong mesh: wlan1 cannot join a mesh: its driver does not support it")
  }

  @Test func `a mesh without Wi-Fi Direct also needs the radio and the supplicant`() throws {
    try patient.write("/sys/class/net/wlan1/phy80211/index", "")
    try patient.write("/sys/class/rfkill/rfkill1/soft", "1\n")
    patient.configuration.mesh.isEnabled = true
    patient.configuration.wifiDirect.isEnabled = false
    patient.hasSupplicant = false
    #expect(
      try patient.complaints() == [
        "wrong rfkill: Wi-Fi (phy0) is blocked", "wrong wpa-supplicant: wpa_supplicant does not run",
      ])
  }

  @Test func `a missing wpa_supplicant is reported`() throws {
    patient.hasSupplicant = false
    try expect("wrong wpa-supplicant: wpa_supplicant does not run")
    try patient.run("wpa_supplicant", process: 77)
    try expect("wrong wpa-supplicant: wpa_supplicant has no control socket at /s")
  }

  @Test func `a running NetworkManager is reported`() throws {
    try patient.run("NetworkManager", process: 5)
    try expect("note networkmanager: NetworkManager runs (process 5): it must not manage p2p-*")
  }

  @Test func `a missing regulatory country is reported`() throws {
    patient.radios.regulatoryDomain = "00"
    try expect("note regulatory: no country is set: 5 GHz is disabled, and 2.4 GHz has less power")
  }

  @Test func `a missing IP interface is reported`() throws {
    patient.configuration.ip.interfaces = ["eth1", "p2p-*"]
    try expect("wrong interface: there is no interface eth1")
  }

  @Test func `a port in use is reported`() throws {
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_in(), size = socklen_t(MemoryLayout<sockaddr_in>.size)
    address.sin_family = sa_family_t(AF_INET)
    try withUnsafeMutablePointer(to: &address) { pointer in
      try #require(bind(listener, __CONST_SOCKADDR_ARG(__sockaddr_in__: pointer), size) == 0)
      try #require(listen(listener, 1) == 0)
      try #require(getsockname(listener, __SOCKADDR_ARG(__sockaddr_in__: pointer), &size) == 0)
    }
    patient.configuration.ip.port = UInt16(bigEndian: address.sin_port)
    patient.isDaemonRunning = false
    try expect("wrong port: another program listens on port \(patient.configuration.ip.port)")
    patient.isDaemonRunning = true
    #expect(try patient.complaints() == [])
  }

  @Test func `a missing avahi-daemon is reported if it is configured`() throws {
    patient.configuration.discovery.dnsSD = .daemon
    try expect("wrong dns-sd: avahi-daemon does not answer")
  }

  @Test func `an unknown LED is reported`() throws {
    patient.configuration.board.statusLED = "led9"
    try expect("wrong led: there is no LED led9")
  }

  @Test func `a kernel without the timer trigger for LEDs is reported`() throws {
    try patient.write("/sys/class/leds/ACT/trigger", "none [mmc0]\n")
    try expect("wrong led: the kernel's trigger “timer” is missing")
  }

  private static let gpioFaults: [(GPIOError, String)] = [
    (.noChip(pin, others: " gpio-sim"), "wrong gpio: there is no GPIO chip pinctrl-bcm2711"),
    (.noLine(pin), "wrong gpio: GPIO chip pinctrl-bcm2711 has no line 17"),
    (
      .denied("only root may open GPIO chip pinctrl-bcm2711"), "note gpio: only root may open GPIO chip pinctrl-bcm2711"
    ),
    (.busy(pin, consumer: "spi0 CS0"), "wrong gpio: pinctrl-bcm2711:17 is in use by “spi0 CS0”"),
  ]

  @Test(arguments: gpioFaults)
  func `an unusable GPIO line is reported`(fault: GPIOError, complaint: String) throws {
    patient.configuration.board.statusPin = pin
    #expect(try patient.complaints() == [])
    patient.gpioFault = fault
    try expect(complaint)
  }

  @Test func `a GPIO line held by the daemon causes no complaint`() throws {
    patient.configuration.board.buttonPin = pin
    patient.gpioFault = .busy(pin, consumer: "causeway")
    #expect(try patient.complaints() == [])
    patient.isDaemonRunning = false
    try expect("wrong button: pinctrl-bcm2711:17 is in use by “causeway”")
  }

  @Test func `a missing group is reported`() throws {
    try patient.write("/etc/group", "root:x:0:\n")
    try expect("wrong group: there is no group causeway-apps: only applications of root may connect")
  }

  @Test func `a path that is no directory is reported`() throws {
    try patient.remove("/var/lib/causeway")
    try expect("note state: /var/lib/causeway does not exist yet")
    try patient.write("/var/lib/causeway", "")
    try expect("wrong state: /var/lib/causeway is not a directory")
  }

  @Test func `a full disk is reported`() throws {
    // The directory is a tmpfs of one page, which one file fills.
    let path = patient.root.path + "/run/causeway"
    try #require(mount("none", path, "tmpfs", 0, "size=4096") == 0, "needs root")
    defer { umount2(path, Int32(MNT_DETACH)) }
    try expect("wrong runtime: /run/causeway: the disk is full")
  }

  @Test func `a read-only disk is reported`() throws {
    let path = patient.root.path + "/var/lib/causeway"
    try #require(mount("none", path, "tmpfs", UInt(MS_RDONLY), nil) == 0, "needs root")
    defer { umount2(path, Int32(MNT_DETACH)) }
    try expect("wrong state: /var/lib/causeway is on a read-only file system: changes of keys and trust are lost")
  }
}
