import CSystem

/// The reason why a radio cannot be used, according to the kernel's files in /sys.
public enum RadioObstacle: Sendable {
  case absent
  /// Blocked by software: `rfkill block`.
  case blocked
  /// Switched off by a hardware switch of the board.
  case switchedOff

  /// Returns the rfkill block of the device with this directory in /sys. Returns nil if the device is not blocked, or
  /// if the kernel has no rfkill. A radio's rfkill switch is an entry of that directory (Linux,
  /// Documentation/ABI/stable/sysfs-class-rfkill).
  public static func block(of directory: String) -> RadioObstacle? {
    guard let stream = opendir(directory) else { return nil }
    defer { closedir(stream) }
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      guard name.starts(with: "rfkill".utf8) else { continue }
      let path = "\(directory)/\(String(decoding: name, as: UTF8.self))"
      if isSet("\(path)/hard") { return .switchedOff }
      if isSet("\(path)/soft") { return .blocked }
    }
    return nil
  }

  /// One line for the operator about the radio with this name: the obstacle and the remedy for the obstacle. `type` is
  /// a radio type of rfkill(8).
  public func text(_ name: String, type: StaticString) -> String {
    switch self {
    case .absent: "no interface \(name): is the radio plugged in? (it is used once present)"
    case .blocked: "\(name) is blocked: run `rfkill unblock \(type)`"
    case .switchedOff: "\(name) is off by a hardware switch (rfkill): turn it on"
    }
  }

  private static func isSet(_ path: String) -> Bool {
    let descriptor = csystem_open(path, O_RDONLY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var byte: UInt8 = 0
    return read(descriptor, &byte, 1) == 1 && byte == UInt8(ascii: "1")
  }
}
