import CSystem
import Testing

/// Two network namespaces joined by a cable (a veth pair), for one test. The namespaces exist only while their
/// descriptors are open, so nothing remains if the test crashes. A namespace belongs to a thread, and a test function
/// that is not `async` stays on one thread. Needs root.
final class NetworkNamespaces {
  private let home: CInt
  private let near: CInt
  private let far: CInt

  enum Side: Int {
    case near = 1
    case far = 2
  }

  init() throws {
    home = csystem_open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC, 0)
    near = try Self.create()
    far = try Self.create()
  }

  deinit {
    _ = setns(home, CLONE_NEWNET)
    for descriptor in [home, near, far] { close(descriptor) }
  }

  private static func create() throws -> CInt {
    try #require(unshare(CLONE_NEWNET) == 0, "this test makes network namespaces: run it as root")
    return csystem_open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC, 0)
  }

  /// Runs `body` in the network namespace of this side, as a process there would run. Sockets opened by `body` stay in
  /// that namespace.
  func on<Result>(_ side: Side, _ body: () throws -> Result) rethrows -> Result {
    _ = setns(side == .near ? near : far, CLONE_NEWNET)
    defer { _ = setns(home, CLONE_NEWNET) }
    return try body()
  }

  /// Connects both sides by a cable, whose two interfaces are called `name` and have the addresses `network`.1 and
  /// `network`.2.
  func plug(_ name: String, _ network: String) throws {
    try on(.near) { try run("ip link add \(name) type veth peer name \(name) netns /proc/\(getpid())/fd/\(far)") }
    for side in [Side.near, .far] {
      try on(side) {
        try run("ip addr add \(network).\(side.rawValue)/24 dev \(name)")
        try run("ip link set \(name) up")
      }
    }
  }

  private func run(_ command: String) throws {
    let status = system(command)  // runs in the calling thread's namespace
    try #require(status == 0, "\(command): exit status \(status); this test needs root and iproute2")
  }
}
