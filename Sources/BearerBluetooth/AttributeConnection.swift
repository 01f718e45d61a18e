import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The attribute channel of one LE link: it serves our table, and carries our one question when we dialled.
///
/// There is one such channel per link whoever opened it, so a peer that we dial may ask us on it too. It is
/// closed when nothing was said on it for `idleMax`, since it keeps the link, and so a slot of the
/// controller, from ending with its last stream.
final class AttributeConnection: EventSource {
  /// As long as an attribute transaction may take (Core Specification 5.4, Vol 3, Part F, 3.3.3).
  static let idleMax = TimeSpan.seconds(30)
  /// PDUs answered per `ready`.
  private static let unitsPerCallMax = 8

  let peer: BluetoothEndpoint
  /// The channel ended; nothing is called after it.
  var closed: ((AttributeConnection) -> Void)?

  private let loop: EventLoop
  private let descriptor: CInt
  private var registration: Registration?
  private var server: AttributeServer
  private var answered: ((AttributeClient.Answer?) -> Void)?
  private var timer: Timer?

  /// Takes over the connected `descriptor`, also when it throws.
  init(
    _ loop: EventLoop, _ descriptor: CInt, _ peer: BluetoothEndpoint, _ server: AttributeServer
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
    timer?.set(after: Self.idleMax)
  }

  /// Ask for the peer's PSM; `answered` gets nil when the channel ends first. One question at a time: a
  /// second takes the place of the first, whose closure is dropped.
  func askPSM(_ answered: @escaping (AttributeClient.Answer?) -> Void) {
    self.answered = answered
    transmit(AttributeClient.psmRequest)
  }

  /// Give up the question; an answer that still comes is dropped.
  func cancelQuestion() { answered = nil }

  func close() {
    guard let registration else { return }
    self.registration = nil
    loop.remove(registration)
    _ = CSystem.close(descriptor)
    timer?.cancel()
    timer = nil
    let (answered, closed) = (answered, closed)
    self.answered = nil
    self.closed = nil
    answered?(nil)
    closed?(self)
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
    // Error Response and Read By Type Response: everything else unasked-for is ignored.
    guard pdu[0] == 0x01 || pdu[0] == 0x09, let answered else { return }
    self.answered = nil
    answered(AttributeClient.answer(pdu))
  }

  /// A peer that does not read its answers loses the channel.
  private func transmit(_ pdu: [UInt8]) {
    if CSystem.send(descriptor, pdu, pdu.count, CInt(MSG_NOSIGNAL)) != pdu.count { close() }
  }
}

/// All attribute channels of the controller.
final class AttributeConnections {
  /// One per link, and links are limited already (`BluetoothSettings.linksMaxRange`).
  static let countMax = BluetoothSettings.linksMaxRange.upperBound

  private let loop: EventLoop
  private let server: AttributeServer
  private var connections: [AttributeConnection] = []

  init(_ loop: EventLoop, psm: UInt16) {
    self.loop = loop
    server = AttributeServer(psm: psm)
  }

  var count: Int { connections.count }

  /// The channel of the link to `peer`, when there is one.
  func existing(_ peer: BluetoothEndpoint) -> AttributeConnection? { connections.first { $0.peer == peer } }

  /// Serve a connected channel. Nil, and the descriptor closed, when there are `countMax` already or it cannot
  /// be watched.
  @discardableResult
  func adopt(_ descriptor: CInt, _ peer: BluetoothEndpoint) -> AttributeConnection? {
    guard connections.count < Self.countMax else {
      _ = close(descriptor)
      return nil
    }
    guard let connection = try? AttributeConnection(loop, descriptor, peer, server) else { return nil }
    connection.closed = { [self] ended in connections.removeAll { $0 === ended } }
    connections.append(connection)
    return connection
  }

  func closeAll() {
    for connection in connections { connection.close() }
  }
}
