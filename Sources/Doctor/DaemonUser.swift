import CSystem
import Configuration
import Primitives

/// The user as which the daemon runs: the owner of its state directory, or before the first start the user `causeway`.
struct DaemonUser {
  let name: String
  private let id: uid_t
  private let group: gid_t
  private let groups: [gid_t]

  /// Nil if the daemon runs as root or its user is unknown. Also nil without root, because only root can test the
  /// permissions of another user.
  init?(_ machine: Machine, stateDirectory: String) {
    var status = stat()
    let owner = stat(machine.path(stateDirectory), &status) == 0 ? status.st_uid : nil
    guard geteuid() == 0, owner != 0 else { return nil }
    for fields in Self.lines(of: "/etc/passwd", machine) where fields.count > 3 {
      guard let id = uid_t(fields[2]), let group = gid_t(fields[3]), id != 0 else { continue }
      guard owner == id || (owner == nil && fields[0].utf8.elementsEqual("causeway".utf8)) else { continue }
      let name = fields[0]
      self.name = name
      self.id = id
      self.group = group
      groups = Self.lines(of: "/etc/group", machine).compactMap { fields in
        guard fields.count > 3 else { return nil }
        let isMember = fields[3].utf8.split(separator: UInt8(ascii: ",")).contains { $0.elementsEqual(name.utf8) }
        return isMember ? gid_t(fields[2]) : nil
      }
      return
    }
    return nil
  }

  /// Whether the user lacks the permission to read a file or directory.
  func isDenied(_ path: String) -> Bool {
    csystem_open_error(path, id, group, groups, groups.count) == EACCES
  }

  /// The lines of a file of accounts, each divided into its fields.
  private static func lines(of path: String, _ machine: Machine) -> [[String]] {
    (machine.contents(path) ?? []).split(separator: UInt8(ascii: "\n")).map { line in
      line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
      }
    }
  }
}

extension Doctor {
  /// Reports each file of the configuration and of the trust anchors that root can read but the daemon cannot. `file`
  /// is the path of the configuration, or nil to test only the anchors. Without such a file the result is empty.
  public func deniedFiles(configuration file: String?) -> [Finding] {
    guard let user = DaemonUser(machine, stateDirectory: configuration.node.stateDirectory) else { return [] }
    var findings: [Finding] = []
    func check(_ check: StaticString, _ path: String, _ remedy: String) {
      if !user.isDenied(machine.path(path)) { return }
      findings.append(Finding(check, .wrong, "\(path): the daemon's user \(user.name) may not read it", remedy: remedy))
    }
    if let file { check("configuration", file, "chown root:causeway-config \(file) && chmod 640 \(file)") }
    guard configuration.trust.policy == .authority else { return findings }
    let directory = configuration.trust.anchors
    check("anchors", directory, "chmod 755 \(directory)")
    if !findings.isEmpty { return findings }
    for name in machine.names(directory) {
      check("anchors", "\(directory)/\(name)", "chmod 644 \(directory)/\(name)")
    }
    return findings
  }
}
