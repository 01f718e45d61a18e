import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The channel of one client that asks for our service record.
final class SDPConnection: EventSource {
  /// How long a client may be silent. A phone asks at once, and closes the channel when it knows.
  static let idleMax = TimeSpan.seconds(10)
  /// Requests of one client: a whole record in the smallest pieces takes twelve.
  static let requestsMax = 64
  /// Requests answered per `ready`.
  private static let unitsPerCallMax = 4

  let peer: BluetoothEndpoint
  /// The channel has ended; no callback follows.
  var closed: ((SDPConnection) -> Void)?

  private let loop: EventLoop
  private let descriptor: CInt
  private let server: SDPServer
  private let unitBytes: Int
  private var registration: Registration?
  private var requests = 0
  private var timer: Timer?

  /// Takes over the connected `descriptor`, even when it throws; its units have at most `unitBytes`.
  init(
    _ loop: EventLoop, _ descriptor: CInt, _ peer: BluetoothEndpoint, _ server: SDPServer, unitBytes: Int
  ) throws(SystemError) {
    self.loop = loop
    self.descriptor = descriptor
    self.peer = peer
    self.server = server
    self.unitBytes = unitBytes
    do {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      _ = CSystem.close(descriptor)
      throw error
    }
    timer = Timer(loop) { [self] in close() }
    timer?.set(after: Self.idleMax)
  }

  func close() {
    guard let registration else { return }
    self.registration = nil
    loop.remove(registration)
    _ = CSystem.close(descriptor)
    timer?.cancel()
    timer = nil
    let closed = closed
    self.closed = nil
    closed?(self)
  }

  func ready(_ events: UInt32) {
    var buffer = [UInt8](repeating: 0, count: SDPServer.requestBytesMax)
    for _ in 0..<Self.unitsPerCallMax {
      let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      if count < 0, csystem_errno() == EAGAIN || csystem_errno() == EINTR { return }
      requests += 1
      // What is no request has no answer, and who sends it is no client.
      guard count > 0, requests <= Self.requestsMax,
        let answer = server.respond(to: Array(buffer[..<count]), unitBytes: unitBytes),
        CSystem.send(descriptor, answer, answer.count, CInt(MSG_NOSIGNAL)) == answer.count
      else { return close() }
      timer?.set(after: Self.idleMax)
    }
  }
}

/// All clients that ask for our service records.
final class SDPConnections {
  /// As many as a controller has links over BR/EDR: one for each peer, which therefore takes nobody else's place.
  static let countMax = 7

  private let loop: EventLoop
  private let server: SDPServer
  private var connections: [SDPConnection] = []

  init(_ loop: EventLoop, _ server: SDPServer) {
    self.loop = loop
    self.server = server
  }

  var count: Int { connections.count }

  /// Serves a connected channel, in place of one that the same peer has. It is closed when there are `countMax` already or epoll
  /// fails.
  func adopt(_ descriptor: CInt, _ peer: BluetoothEndpoint, unitBytes: Int) {
    connections.first { $0.peer == peer }?.close()
    guard connections.count < Self.countMax else {
      _ = close(descriptor)
      return
    }
    guard let connection = try? SDPConnection(loop, descriptor, peer, server, unitBytes: unitBytes) else { return }
    connection.closed = { [self] ended in connections.removeAll { $0 === ended } }
    connections.append(connection)
  }

  func closeAll() {
    for connection in connections { connection.close() }
  }
}
