import CSystem
import Configuration

extension Doctor {
  func ip() -> [Finding] {
    var findings: [Finding] = []
    let all = machine.names("/sys/class/net")
    for name in configuration.ip.interfaces where !name.utf8.contains(UInt8(ascii: "*")) {
      if !machine.exists("/sys/class/net/\(name)") {
        findings.append(
          Finding(
            "interface", .wrong, "there is no interface \(name)",
            remedy: "set [ip] interfaces to some of: \(joined(all))"))
      }
    }
    let port = configuration.ip.port
    if !isDaemonRunning && isTaken(port) {
      findings.append(
        Finding(
          "port", .wrong, "another program listens on port \(port)",
          remedy: "find it with “ss -ltnp 'sport = :\(port)'”, or set [ip] port"))
    }
    if findings.isEmpty { findings.append(Finding("ip", .good, "port \(port)")) }
    return findings
  }

  /// Whether another program occupies the TCP port.
  private func isTaken(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var yes: CInt = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<CInt>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr_in__: pointer), socklen_t(MemoryLayout<sockaddr_in>.size))
    }
    return result != 0 && csystem_errno() == EADDRINUSE
  }

  func discovery() -> Finding? {
    guard case .daemon = configuration.discovery.dnsSD else { return nil }
    if machine.connectError("/run/avahi-daemon/socket", SOCK_STREAM) == 0 {
      return Finding("dns-sd", .good, "avahi-daemon")
    }
    return Finding(
      "dns-sd", .wrong, "avahi-daemon does not answer",
      remedy: "systemctl enable --now avahi-daemon, or set [discovery] dns-sd = auto")
  }

  /// Checks that the Unix group exists whose members' applications may connect to the daemon. Nil if no group is
  /// configured.
  func group() -> Finding? {
    let name = configuration.applications.group
    guard configuration.applications.isEnabled, !name.utf8.isEmpty else { return nil }
    let lines = (machine.contents("/etc/group") ?? []).split(separator: UInt8(ascii: "\n"))
    for line in lines {
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard fields.count >= 3 else { continue }
      guard fields[0].elementsEqual(name.utf8) || fields[2].elementsEqual(name.utf8) else { continue }
      return Finding("group", .good, "applications of members of \(name) may connect")
    }
    return Finding(
      "group", .wrong, "there is no group \(name): only applications of root may connect",
      remedy: "groupadd --system \(name), or systemd-sysusers with causeway.sysusers; then restart the daemon")
  }

  func directories() -> [Finding] {
    [
      checkDirectory("state", configuration.node.stateDirectory, bytesMin: 64 << 10),
      checkDirectory(
        "runtime", configuration.node.runtimeDirectory, bytesMin: UInt64(configuration.journal.sizeKiB) << 10),
    ]
  }

  /// Checks a directory that the daemon writes to: the directory must be writable, and have at least `bytesMin` bytes
  /// free.
  private func checkDirectory(_ check: StaticString, _ directory: String, bytesMin: UInt64) -> Finding {
    let path = machine.path(directory)
    var status = stat()
    guard stat(path, &status) == 0 else {
      let code = csystem_errno()
      return code == ENOENT
        ? Finding(check, .note, "\(directory) does not exist yet", remedy: "the unit creates it when the daemon starts")
        : Finding(check, .note, "\(directory): \(String(cString: strerror(code)))", remedy: "run this as root")
    }
    guard status.st_mode & mode_t(S_IFMT) == mode_t(S_IFDIR) else {
      return Finding(check, .wrong, "\(directory) is not a directory", remedy: "remove the file, and start the daemon")
    }
    var system = statvfs()
    guard statvfs(path, &system) == 0 else {
      return Finding(check, .wrong, "\(directory): \(String(cString: strerror(csystem_errno())))")
    }
    if UInt(system.f_flag) & UInt(ST_RDONLY) != 0 {
      return Finding(
        check, .wrong, "\(directory) is on a read-only file system: changes of keys and trust are lost",
        remedy: "see “dmesg” for disk errors; mount it writable")
    }
    let free = UInt64(system.f_bavail) &* UInt64(system.f_frsize)
    if free < bytesMin || (system.f_files > 0 && system.f_favail == 0) {
      return Finding(
        check, .wrong, "\(directory): the disk is full",
        remedy: "free some space; see “df -h \(directory)”, “df -i \(directory)”")
    }
    return Finding(check, .good, directory)
  }
}
