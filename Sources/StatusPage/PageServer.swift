import CSystem
import Primitives
import Reactor

/// The server of the status page, for the devices in the box's Wi-Fi group. The server speaks HTTP/1.1 (RFC 9112) at
/// one address of one interface. No request changes the state of the box.
///
/// The server and its connections retain each other until `close`.
public final class PageServer {
  /// The maximum number of connections in total, and of one source, so that no source can occupy all connections. A
  /// source is one station of the Wi-Fi group, regardless of its IP addresses. All addresses without a known station
  /// together are one source.
  public static let connectionsMax = 4
  public static let connectionsOfSourceMax = 2
  /// The maximum memory of one connection in bytes. A connection stores a request or a response.
  public static let connectionBytesMax = PageRequest.headBytesMax + PageResponse.headBytesMax + PageContent.bytesMax
  /// The maximum rate of new connections of one source. Further connections are closed.
  static let rateOfSource = TokenRate(perSecond: 16, burst: 32)
  /// The source number of all addresses without a known station. No station has this Ethernet address.
  static let others: UInt64 = 0
  /// After this time without progress, a response may be aborted in favour of a source that has no connection.
  static let stallTime = TimeSpan.seconds(1)
  /// The maximum age of the cached page. Because of the cache, many requests cost no more than a few.
  static let freshTime = TimeSpan.seconds(1)
  /// The length of the kernel's queue of connections that are not accepted yet.
  private static let backlog: CInt = 8

  let loop: EventLoop
  /// The IPv4 address, as text, that requests must name as their host.
  let host: String
  /// The listening port.
  public private(set) var port: UInt16 = 0
  private var acceptor: Acceptor?
  private var connections: [PageConnection] = []
  private var content: (() -> PageContent)?
  private var station: ((_ connection: CInt, _ address: UInt32) -> UInt64?)?
  private var html: [UInt8] = []
  private var htmlAt: Instant?
  private var sources = SourceBuckets(rateOfSource)

  /// Listens at an IPv4 address of an interface.
  ///
  /// - `station` returns the Ethernet address of the station at the other end of a connection, or nil if the address is
  ///   unknown. A station can use any number of IP addresses.
  /// - `content` returns the content of the page. This closure is called at most once in `freshTime`.
  ///
  /// Throws EADDRINUSE, EADDRNOTAVAIL, EACCES (a port below 1024 needs CAP_NET_BIND_SERVICE), and the errors of
  /// socket(2) and epoll_ctl(2).
  public init(
    _ loop: EventLoop, address: UInt32, host: String, port: UInt16, interface: String,
    station: @escaping (_ connection: CInt, _ address: UInt32) -> UInt64?, content: @escaping () -> PageContent
  ) throws(SystemError) {
    self.loop = loop
    self.host = host
    self.content = content
    self.station = station
    let descriptor = try openInterfaceSocket(isStream: true, address: address, port: port, interface: interface)
    if listen(descriptor, Self.backlog) != 0 {
      let error = SystemError.last
      CSystem.close(descriptor)
      throw error
    }
    self.port = Self.port(of: descriptor)
    acceptor = try Acceptor(loop, descriptor) { [self] in
      accept($0)
    } shortage: { _ in
      // Nothing is done here: browsers retry by themselves, and the bearers report a shortage of descriptors.
    }
  }

  /// Closes the listening socket and all connections. `station` and `content` are not called afterwards.
  public func close() {
    acceptor?.close()
    acceptor = nil
    content = nil
    station = nil
    for connection in connections { connection.close() }
  }

  func ended(_ connection: PageConnection) { connections.removeAll { $0 === connection } }

  /// The page as HTML, at most `freshTime` old.
  func page() -> [UInt8] {
    if let htmlAt, loop.now < htmlAt + Self.freshTime { return html }
    html = content?().html() ?? []
    htmlAt = loop.now
    return html
  }

  private func accept(_ listener: CInt) -> Acceptor.Outcome {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let flags = CInt(bitPattern: SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        accept4(listener, __SOCKADDR_ARG(__sockaddr__: $0), &length, flags)
      }
    }
    if descriptor < 0 { return Acceptor.Outcome(.last) }
    let source = source(of: descriptor, at: UInt32(bigEndian: address.sin_addr.s_addr))
    guard sources.take(source, now: loop.now), makeRoom(for: source) else {
      CSystem.close(descriptor)
      return .taken
    }
    do throws(SystemError) {
      connections.append(try PageConnection(self, descriptor, source: source))
      return .taken
    } catch {
      CSystem.close(descriptor)
      return .failed(error)
    }
  }

  private func source(of descriptor: CInt, at address: UInt32) -> UInt64 {
    station?(descriptor, address) ?? Self.others
  }

  /// Makes room for a new connection of a source. If a limit is reached, the method closes a connection. Returns false
  /// if no connection may be closed. The candidates, in this order, and each the oldest of its kind, are:
  ///
  /// - an idle connection of the same source, or of a source with several connections;
  /// - if the new connection's source has no connection: any connection of a source with several, then an idle
  ///   connection, then a stalled connection.
  ///
  /// So a source that has a connection never causes the only connection of another source to be closed.
  private func makeRoom(for source: UInt64) -> Bool {
    let own = connections.filter { $0.source == source }
    let crowd =
      own.count >= Self.connectionsOfSourceMax ? own : connections.count >= Self.connectionsMax ? connections : []
    if crowd.isEmpty { return true }
    func isOneOfSeveral(_ one: PageConnection) -> Bool { crowd.count { $0.source == one.source } > 1 }
    var victim = crowd.first { $0.isIdle && ($0.source == source || isOneOfSeveral($0)) }
    if victim == nil && own.isEmpty {
      victim = crowd.first { isOneOfSeveral($0) } ?? crowd.first { $0.isIdle } ?? crowd.first { $0.isStalled }
    }
    victim?.close()
    return victim != nil
  }

  private static func port(of descriptor: CInt) -> UInt16 {
    var local = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &local) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: $0), &length)
      }
    }
    return result == 0 ? UInt16(bigEndian: local.sin_port) : 0
  }
}
