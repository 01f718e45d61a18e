import CSystem
import Configuration

extension Doctor {
  func kernel() -> Finding {
    let release = machine.contents("/proc/sys/kernel/osrelease") ?? []
    let numbers = release.split(separator: UInt8(ascii: ".")).map { part in
      part.prefix { (0x30...0x39).contains($0) }.reduce(0) { min($0 * 10 + Int($1) - 0x30, 1_000_000) }
    }
    let text = "Linux \(String(decoding: release, as: UTF8.self))"
    guard numbers.count >= 2 else { return Finding("kernel", .note, "its version is not known") }
    return (numbers[0], numbers[1]) >= (5, 10)
      ? Finding("kernel", .good, text)
      : Finding("kernel", .wrong, "\(text) is too old", remedy: "5.10 or later is needed: update the system")
  }

  /// Checks that the board has twice the memory that the systemd unit allows the daemon. The rest of the system needs
  /// as much as the daemon. Nil if the board has enough.
  func memory() -> Finding? {
    let words = machine.words("/proc/meminfo")
    guard let label = words.firstIndex(where: { ("MemTotal:" as StaticString).isEqual(to: $0) }),
      label + 1 < words.count,
      let kibibytes = UInt64(String(decoding: words[label + 1], as: UTF8.self)), kibibytes < Self.memoryKiBMin
    else { return nil }
    return Finding(
      "memory", .note,
      "the board has \(kibibytes / 1024) MiB of memory: a full box may use 128, and the system needs as much",
      remedy: "lower [node] peers-max, or use a board with more memory")
  }

  private static let memoryKiBMin: UInt64 = 256 * 1024

  /// Checks that the kernel enforces MemoryMax= of the systemd unit. Nil if the kernel enforces the limit, or if the
  /// machine has no control groups.
  func memoryLimit() -> Finding? {
    let controllers = machine.words("/sys/fs/cgroup/cgroup.controllers")
    if controllers.isEmpty || controllers.contains(where: { ("memory" as StaticString).isEqual(to: $0) }) { return nil }
    return Finding(
      "memory-limit", .note, "the kernel was started without the memory controller that the unit's limit needs",
      remedy: "add cgroup_enable=memory to /boot/firmware/cmdline.txt")
  }

  /// Checks whether the firmware of a Raspberry Pi has reported a supply voltage that is too low. Nil on other boards.
  func power() -> Finding? {
    guard let text = machine.contents("/sys/devices/platform/soc/soc:firmware/get_throttled") else { return nil }
    let bits = text.reduce(0 as UInt32) { $0 &* 16 &+ UInt32(hexadecimalDigit($1)) }
    let isLow = bits & 1 != 0, wasLow = bits & 0x1_0000 != 0
    if !isLow && !wasLow { return Finding("power", .good, "the voltage was never too low") }
    return Finding(
      "power", isLow ? .wrong : .note, isLow ? "the voltage is too low" : "the voltage was too low since the start",
      remedy: "use the board's own power supply, and a short cable; radios fail first")
  }

  func randomness() -> Finding? {
    var byte: UInt8 = 0
    if getrandom(&byte, 1, UInt32(GRND_NONBLOCK)) == 1 { return nil }
    return Finding(
      "random", .wrong, "the kernel has no random numbers yet: no link can be opened",
      remedy: "wait; a board without a hardware generator needs a saved seed (systemd-random-seed)")
  }

  func led() -> Finding? {
    let name = configuration.board.statusLED
    if name.utf8.isEmpty { return nil }
    let all = machine.names("/sys/class/leds")
    guard machine.exists("/sys/class/leds/\(name)/trigger") else {
      return Finding(
        "led", .wrong, "there is no LED \(name)",
        remedy: all.isEmpty
          ? "this board has none; remove [board] status-led" : "set [board] status-led to one of: \(joined(all))")
    }
    let hasTimer = machine.words("/sys/class/leds/\(name)/trigger").contains { word in
      ("timer" as StaticString).isEqual(to: word) || ("[timer]" as StaticString).isEqual(to: word)
    }
    return hasTimer
      ? Finding("led", .good, name)
      : Finding("led", .wrong, "the kernel's trigger “timer” is missing", remedy: "modprobe ledtrig-timer")
  }
}

/// The value of a hexadecimal digit, or 0 for any other byte.
private func hexadecimalDigit(_ byte: UInt8) -> UInt8 {
  switch byte {
  case 0x30...0x39: byte - 0x30
  case 0x61...0x66: byte - 0x61 + 10
  case 0x41...0x46: byte - 0x41 + 10
  default: 0
  }
}
