import CSystem

/// Why a radio cannot be used, as the kernel's files say.
public enum RadioObstacle: Sendable {
  case absent
  /// By software: `rfkill block`.
  case blocked
  /// By a switch of the board.
  case switchedOff

  /// What is in the way of the device in this directory of /sys; nil for nothing, and where the kernel has no rfkill. The switch of
  /// a radio is an entry of it (Linux, Documentation/ABI/stable/sysfs-class-rfkill).
  public static func block(of directory: String) -> RadioObstacle? {
    guard let stream = opendir(directory) else { return nil }
    defer { closedir(stream) }
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      guard name.starts(with: "rfkill".utf8) else { continue }
      let place = "\(directory)/\(String(decoding: name, as: UTF8.self))"
      if isSet("\(place)/hard") { return .switchedOff }
      if isSet("\(place)/soft") { return .blocked }
    }
    return nil
  }

  /// One line about a radio with this name, of a type that rfkill(8) knows: what is wrong, and what to do.
  public func text(_ name: String, type: StaticString) -> String {
    switch self {
    case .absent: "no interface \(name): is the radio plugged in? (it is watched for)"
    case .blocked: "\(name) is blocked: run `rfkill unblock \(type)`"
    case .switchedOff: "\(name) is off by a switch of the board (rfkill): turn it on"
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
