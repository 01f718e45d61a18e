import CSystem

/// Calls a closure when an entry of a directory is created or changes its attributes, or when the directory itself is
/// removed or moved (inotify(7)). While the directory does not exist, its nearest existing parent is watched instead.
/// The closure is then also called for unrelated entries of that parent.
public final class DirectoryWatch: EventSource {
  private let loop: EventLoop
  private let path: String
  private let descriptor: CInt
  private let called: () -> Void
  private var registration: Registration?
  private var watch: CInt = -1

  /// `path` is an absolute path. Changes before this call returns may be missed. Errors: those of inotify_init1,
  /// inotify_add_watch (EACCES: no permission to read the directory) and epoll_ctl.
  public init(_ loop: EventLoop, _ path: String, _ called: @escaping () -> Void) throws(SystemError) {
    descriptor = inotify_init1(CInt(IN_CLOEXEC | IN_NONBLOCK))
    if descriptor < 0 { throw .last }
    self.loop = loop
    self.path = path
    self.called = called
    do throws(SystemError) {
      try arm()
      registration = try loop.add(descriptor, .read, .diagnostics, self)
    } catch {
      close(descriptor)
      throw error
    }
  }

  public func ready(_ events: UInt32) {
    var buffer = [UInt8](repeating: 0, count: Self.bufferBytes)
    while read(descriptor, &buffer, buffer.count) > 0 {}
    // The directory may have been created or replaced, so it is watched again. An error is ignored, because the owner
    // also checks with a timer.
    _ = try? arm()
    called()
  }

  /// Stops watching. The closure is not called after `stop`.
  public func stop() {
    guard let registration else { return }
    loop.remove(registration)
    self.registration = nil
    close(descriptor)
  }

  private static let bufferBytes = 4096

  private func arm() throws(SystemError) {
    var nearest = path
    while true {
      let next = inotify_add_watch(
        descriptor, nearest,
        UInt32(IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF) | UInt32(IN_ONLYDIR))
      if next >= 0 {
        if watch >= 0 && watch != next { inotify_rm_watch(descriptor, watch) }
        watch = next
        return
      }
      guard csystem_errno() == ENOENT, nearest.utf8.count > 1, let slash = nearest.utf8.lastIndex(of: UInt8(ascii: "/"))
      else { throw .last }
      nearest = slash == nearest.utf8.startIndex ? "/" : String(nearest[..<slash])
    }
  }
}
