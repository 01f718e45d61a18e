import CSystem
import Primitives
import Reactor

/// The status page of a box for those in its Wi-Fi group: HTTP/1.1 (RFC 9112) at one address of one interface. It tells, and
/// changes nothing, whatever is asked.
///
/// The server and its connections retain each other until `close`.
public final class PageServer {
  /// Connections at once, of all stations of the group; and of one source, so that none takes all: a station is one, whatever
  /// address it has, and so are all addresses of which no station is known.
  public static let connectionsMax = 4
  public static let connectionsOfSourceMax = 2
  /// What one connection may hold: a request, or a response.
  public static let connectionBytesMax = PageRequest.headBytesMax + PageResponse.headBytesMax + PageContent.bytesMax
  /// Connections of one source that are served; what comes faster is closed.
  static let rateOfSource = TokenRate(perSecond: 16, burst: 32)
  /// The source of addresses of which no station is known. No station has this Ethernet address.
  static let others: UInt64 = 0
  /// A response of which nothing was taken for so long gives its place to a source without a connection.
  static let stallTime = TimeSpan.seconds(1)
  /// How old a page may be: many requests cost no more than a few.
  static let freshTime = TimeSpan.seconds(1)
  /// Connections that the kernel completes before they are accepted.
  private static let backlog: CInt = 8

  let loop: EventLoop
  /// The address in a request.
  let host: String
  /// The port that is listened at.
  public private(set) var port: UInt16 = 0
  private var acceptor: Acceptor?
  private var connections: [PageConnection] = []
  private var content: (() -> PageContent)?
  private var station: ((_ connection: CInt, _ address: UInt32) -> UInt64?)?
  private var html: [UInt8] = []
  private var htmlAt: Instant?
  private var sources = SourceBuckets(rateOfSource)

  /// Listens at an IPv4 address of an interface. `station`: the Ethernet address of the station that a connection comes from, nil
  /// where it is not known: a station can use as many addresses as it likes. `content` is asked for at most once in `freshTime`.
  /// Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES for a port below 1024 without CAP_NET_BIND_SERVICE, and those of socket and
  /// epoll_ctl.
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
      // The page is for people, who try again; the bearers report what the box lacks.
    }
  }

  /// Ends all connections. Nothing is called after it.
  public func close() {
    acceptor?.close()
    acceptor = nil
    content = nil
    station = nil
    for connection in connections { connection.close() }
  }

  func ended(_ connection: PageConnection) { connections.removeAll { $0 === connection } }

  /// The page of this moment.
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

  /// Where all places are taken, the oldest connection that nobody waits for gives up its own, of the same source or of one with
  /// several; else, for a source without one, the oldest of a source with several, then one that nobody waits for or that makes no
  /// progress. So a source that has a connection never ends the only one of another.
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
