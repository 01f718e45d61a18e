import CSystem
import Journal
import Reactor
import Text

/// A listening Unix socket at a path, for the operator's commands or for applications.
public struct UnixListener {
  /// The listening socket. The owner closes it.
  public let descriptor: CInt
  private let path: String
  /// The file status of the socket, to detect that another file has replaced the socket at the path.
  private let status: stat

  /// Listens at `path`, whose directory must exist. `type` is SOCK_STREAM or SOCK_SEQPACKET. `mode` is the mode of the
  /// socket's file: 0666 for a server that checks the user of each client itself. A socket that a dead daemon left at
  /// the path is replaced.
  ///
  /// Throws if another daemon answers at the path, if permission is denied, or if the path is longer than 107 bytes.
  public init(_ path: String, type: __socket_type, backlog: Int, mode: mode_t = 0o660) throws(AccessError) {
    // Until `listen` is called below, nobody can connect to the socket, so nobody connects before `mode` is set.
    let descriptor = socket(AF_UNIX, CInt(type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    if descriptor < 0 { throw .system(path) }
    var result = withUnixAddress(path) { bind(descriptor, $0, $1) }
    if result != 0 && csystem_errno() == EADDRINUSE {
      let probe = socket(AF_UNIX, CInt(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
      let isAlive = withUnixAddress(path) { connect(probe, $0, $1) } == 0
      CSystem.close(probe)
      if isAlive {
        CSystem.close(descriptor)
        throw AccessError(
          "\(path): another causeway answers there; stop it, or set another [node] runtime-directory")
      }
      unlink(path)
      result = withUnixAddress(path) { bind(descriptor, $0, $1) }
    }
    var status = stat()
    if result != 0 || chmod(path, mode) != 0 || listen(descriptor, CInt(backlog)) != 0 || stat(path, &status) != 0 {
      let error = AccessError.system(path)
      CSystem.close(descriptor)
      throw error
    }
    self.path = path
    self.descriptor = descriptor
    self.status = status
  }

  /// Whether the path still leads to this socket.
  public var isThere: Bool {
    var found = stat()
    return stat(path, &found) == 0 && found.st_ino == status.st_ino && found.st_dev == status.st_dev
  }

  /// Removes the socket, unless another file has replaced it.
  public func remove() {
    if isThere { unlink(path) }
  }
}

/// The user at the other end of a connection, as reported by the kernel (unix(7), SO_PEERCRED).
public struct UnixUser {
  public let processID: UInt64
  public let userID: uid_t
  private let groupID: gid_t
  private let descriptor: CInt
  /// Whether the user is root or the daemon's own user.
  public var isOperator: Bool { userID == 0 || userID == geteuid() }
  /// The cause of the journal's records about the client.
  public var cause: RecordCause { isOperator ? .box : .user(userID) }

  public init(_ descriptor: CInt) {
    self.descriptor = descriptor
    var credentials = ucred()
    var size = socklen_t(MemoryLayout<ucred>.size)
    let isKnown = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0
    processID = isKnown ? UInt64(truncatingIfNeeded: credentials.pid) : 0
    userID = isKnown ? credentials.uid : .max
    groupID = isKnown ? credentials.gid : .max
  }

  /// The groups of the client's process for which `isWanted` is true, including its primary group (SO_PEERGROUPS).
  public func groups(where isWanted: (gid_t) -> Bool) -> [gid_t] {
    var groups = [gid_t](repeating: 0, count: 64)
    var size = socklen_t(groups.count * MemoryLayout<gid_t>.size)
    if getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, &groups, &size) != 0 {
      // The array was too small. The kernel has stored the needed size in `size`, for at most NGROUPS_MAX groups.
      guard csystem_errno() == ERANGE else { return isWanted(groupID) ? [groupID] : [] }
      groups = [gid_t](repeating: 0, count: Int(size) / MemoryLayout<gid_t>.size)
      guard getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, &groups, &size) == 0 else { return [] }
    }
    return ([groupID] + groups[..<(Int(size) / MemoryLayout<gid_t>.size)]).filter(isWanted)
  }
}

/// The id of a group, given by name or number; nil if the name is unknown. Only /etc/group is searched, because a
/// static program has no other name service.
public func groupID(_ name: String) -> gid_t? {
  if let number = UInt32(name) { return number }
  var id: gid_t = 0
  return csystem_group_id(name, &id) ? id : nil
}
