import CSystem
import Reactor

/// A listening unix socket at a path: for the operator's commands, and for applications.
public struct UnixListener {
  /// Its owner closes it.
  public let descriptor: CInt
  private let path: String
  /// The socket's inode: another file may appear at the path.
  private let place: stat

  /// Listens at `path`, whose directory must exist; `type` is SOCK_STREAM or SOCK_SEQPACKET. `mode` is 0666 for a server
  /// that asks itself who its client is. Replaces the socket of a daemon that died. Errors: another daemon answers there, no
  /// permission, path longer than 107 bytes.
  public init(_ path: String, type: __socket_type, backlog: Int, mode: mode_t = 0o660) throws(DiagnosticsError) {
    // Nobody can connect before the mode is set, as nobody listens.
    let descriptor = socket(AF_UNIX, CInt(type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    if descriptor < 0 { throw .system(path) }
    var result = withUnixAddress(path) { bind(descriptor, $0, $1) }
    if result != 0 && csystem_errno() == EADDRINUSE {
      let probe = socket(AF_UNIX, CInt(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
      let isAlive = withUnixAddress(path) { connect(probe, $0, $1) } == 0
      CSystem.close(probe)
      if isAlive {
        CSystem.close(descriptor)
        throw DiagnosticsError(
          "\(path): another causeway answers there; stop it, or set another [node] runtime-directory")
      }
      unlink(path)
      result = withUnixAddress(path) { bind(descriptor, $0, $1) }
    }
    var place = stat()
    if result != 0 || chmod(path, mode) != 0 || listen(descriptor, CInt(backlog)) != 0 || stat(path, &place) != 0 {
      let error = DiagnosticsError.system(path)
      CSystem.close(descriptor)
      throw error
    }
    self.path = path
    self.descriptor = descriptor
    self.place = place
  }

  /// Whether the path still leads here.
  public var isThere: Bool {
    var found = stat()
    return stat(path, &found) == 0 && found.st_ino == place.st_ino && found.st_dev == place.st_dev
  }

  /// Removes the socket, unless another one is at the path.
  public func remove() {
    if isThere { unlink(path) }
  }
}

/// The user at the other end of a connection, as the kernel reports it (unix(7), SO_PEERCRED).
public struct UnixUser {
  public let processID: UInt64
  public let userID: uid_t
  private let groupID: gid_t
  private let descriptor: CInt
  /// Whether it is root or the daemon's own.
  public var isOperator: Bool { userID == 0 || userID == geteuid() }

  public init(_ descriptor: CInt) {
    self.descriptor = descriptor
    var credentials = ucred()
    var size = socklen_t(MemoryLayout<ucred>.size)
    let isKnown = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0
    processID = isKnown ? UInt64(truncatingIfNeeded: credentials.pid) : 0
    userID = isKnown ? credentials.uid : .max
    groupID = isKnown ? credentials.gid : .max
  }

  /// Those of its groups for which `isWanted` is true, its primary one included (SO_PEERGROUPS).
  public func groups(where isWanted: (gid_t) -> Bool) -> [gid_t] {
    var groups = [gid_t](repeating: 0, count: 64)
    var size = socklen_t(groups.count * MemoryLayout<gid_t>.size)
    if getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, &groups, &size) != 0 {
      // The kernel said how many there are: NGROUPS_MAX at most.
      guard csystem_errno() == ERANGE else { return isWanted(groupID) ? [groupID] : [] }
      groups = [gid_t](repeating: 0, count: Int(size) / MemoryLayout<gid_t>.size)
      guard getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, &groups, &size) == 0 else { return [] }
    }
    return ([groupID] + groups[..<(Int(size) / MemoryLayout<gid_t>.size)]).filter(isWanted)
  }
}

/// The number of a local group (/etc/group), which is written as its name or as its number; nil when there is none of this
/// name. A static program has no other name service.
public func groupID(_ name: String) -> gid_t? {
  if let number = UInt32(name) { return number }
  var id: gid_t = 0
  return csystem_group_id(name, &id) ? id : nil
}
