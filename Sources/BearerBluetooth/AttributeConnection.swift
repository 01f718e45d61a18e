import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The attribute channel of one LE link: serves our attribute table, and carries our request when we dialled.
///
/// There is one such channel per link, whichever side opened it, so a peer that we dial may send requests on it too. It
/// is closed when idle for `idleMax`, because it keeps the link, and thus a slot of the controller, open after the last
/// stream.
final class AttributeConnection: EventSource {
  /// The longest time of an attribute transaction (Core Specification 5.4, Vol 3, Part F, 3.3.3).
  static let idleMax = TimeSpan.seconds(30)
  /// PDUs answered per `ready`.
  private static let unitsPerCallMax = 8

  let peer: BluetoothEndpoint
  /// The channel has ended; no callback follows.
  var closed: ((AttributeConnection) -> Void)?
  /// The same, for a dial that waits for the peer's channel.
  var ended: (() -> Void)?

  private let loop: EventLoop
  private let descriptor: CInt
  private var registration: Registration?
  private var server: AttributeServer
  private var answered: ((AttributeClient.Answer?) -> Void)?
  private var timer: Timer?

  /// Takes over the connected `descriptor`, even when it throws. The peer has `firstTime` for its first request.
  init(
    _ loop: EventLoop, _ descriptor: CInt, _ peer: BluetoothEndpoint, _ server: AttributeServer, firstTime: TimeSpan
  ) throws(SystemError) {
    self.loop = loop
    self.descriptor = descriptor
    self.peer = peer
    self.server = server
    do {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      _ = CSystem.close(descriptor)
      throw error
    }
    timer = Timer(loop) { [self] in close() }
    timer?.set(after: firstTime)
  }

  /// Requests the peer's PSM; `answered` gets nil when the channel ends first. One request at a time: a second replaces
  /// the first, whose closure is dropped.
  func askPSM(_ answered: @escaping (AttributeClient.Answer?) -> Void) {
    self.answered = answered
    transmit(AttributeClient.psmRequest)
  }

  /// Cancels the request; a later answer is dropped.
  func cancelQuestion() { answered = nil }

  func close() {
    guard let registration else { return }
    self.registration = nil
    loop.remove(registration)
    _ = CSystem.close(descriptor)
    timer?.cancel()
    timer = nil
    let (answered, closed, ended) = (answered, closed, ended)
    self.answered = nil
    self.closed = nil
    self.ended = nil
    answered?(nil)
    closed?(self)
    ended?()
  }

  func ready(_ events: UInt32) {
    var buffer = [UInt8](repeating: 0, count: AttributeServer.unitBytesMax)
    for _ in 0..<Self.unitsPerCallMax {
      guard registration != nil else { return }
      let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      if count < 0, csystem_errno() == EAGAIN || csystem_errno() == EINTR { return }
      guard count > 0 else { return close() }
      timer?.set(after: Self.idleMax)
      received(Array(buffer[..<count]))
    }
  }

  private func received(_ pdu: [UInt8]) {
    if let reply = server.respond(to: pdu) { return transmit(reply) }
    // Error Response and Read By Type Response; every other unsolicited PDU is ignored.
    guard pdu[0] == 0x01 || pdu[0] == 0x09, let answered else { return }
    self.answered = nil
    answered(AttributeClient.answer(pdu))
  }

  /// The channel is closed when the peer does not read its answers.
  private func transmit(_ pdu: [UInt8]) {
    if CSystem.send(descriptor, pdu, pdu.count, CInt(MSG_NOSIGNAL)) != pdu.count { close() }
  }
}

/// All attribute channels of the controller.
final class AttributeConnections {
  /// One per link; links are already limited (`BluetoothSettings.linksMaxRange`).
  static let countMax = BluetoothSettings.linksMaxRange.upperBound

  private let loop: EventLoop
  private let server: AttributeServer
  private var connections: [AttributeConnection] = []

  init(_ loop: EventLoop, psm: UInt16) {
    self.loop = loop
    server = AttributeServer(psm: psm)
  }

  var count: Int { connections.count }

  /// The channel of the link to `peer`; nil when there is none.
  func existing(_ peer: BluetoothEndpoint) -> AttributeConnection? { connections.first { $0.peer == peer } }

  /// Serves a connected channel. Nil, with the descriptor closed, when there are `countMax` already or epoll fails.
  @discardableResult
  func adopt(
    _ descriptor: CInt, _ peer: BluetoothEndpoint, firstTime: TimeSpan = AttributeConnection.idleMax
  ) -> AttributeConnection? {
    guard connections.count < Self.countMax else {
      _ = close(descriptor)
      return nil
    }
    let connection = try? AttributeConnection(loop, descriptor, peer, server, firstTime: firstTime)
    guard let connection else { return nil }
    connection.closed = { [self] ended in connections.removeAll { $0 === ended } }
    connections.append(connection)
    return connection
  }

  func closeAll() {
    for connection in connections { connection.close() }
  }
}
