import CSystem

/// Calls `body` with the Unix socket address of `path`, and returns the result. Returns -1 with ENAMETOOLONG if the
/// path is too long for an address. A path that begins with "@" is a name in the abstract namespace (unix(7)).
public func withUnixAddress(_ path: String, _ body: (__CONST_SOCKADDR_ARG, socklen_t) -> CInt) -> CInt {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  var name = Array(path.utf8)
  let room = MemoryLayout.size(ofValue: address.sun_path) - 1
  if name.count > room {
    csystem_set_errno(ENAMETOOLONG)
    return -1
  }
  var byteCount = MemoryLayout<sockaddr_un>.size
  if name.first == UInt8(ascii: "@") {
    name[0] = 0
    // Every byte of an abstract name is part of the name, including zeros. So the address must have exactly the length
    // of the name.
    byteCount += name.count - room - 1
  }
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
  return withUnsafePointer(to: &address) { pointer in
    body(__CONST_SOCKADDR_ARG(__sockaddr_un__: pointer), socklen_t(byteCount))
  }
}
