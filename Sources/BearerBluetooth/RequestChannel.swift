import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// An L2CAP channel with one peer, on which both nodes can send requests. This class answers the peer's requests, and
/// sends requests of this node one at a time. The channel is closed when the peer is silent for too long. A silent
/// channel would keep the connection open after the last stream.
final class RequestChannel: EventSource {
  /// The limits of one kind of channel. A PDU that is longer than `unitBytesMax` is truncated.
  struct Rules {
    /// How long the peer may be silent before the channel is closed.
    let idleMax: TimeSpan
    /// The maximum length of a PDU from the peer, in bytes.
    let unitBytesMax: Int
    /// The maximum number of PDUs from the peer. At the next PDU the channel is closed.
    let requestsMax: Int
    /// Whether the channel is closed on a PDU that is no request while no answer is awaited.
    let endsByNonsense: Bool
  }

  /// The maximum number of PDUs handled in one call of `ready`.
  private static let unitsPerCallMax = 8

  let peer: BluetoothEndpoint
  /// Called when the channel has ended. After `closed`, only `ended` is called.
  var closed: ((RequestChannel) -> Void)?
  /// Called when the channel has ended, for a dial that waits for the peer to open a stream.
  var ended: (() -> Void)?
  /// Whether this node made the connection, in order to dial the peer. A peer that this node dials is not expected to
  /// dial this node.
  var isOfOurDial = false

  private let loop: EventLoop
  private let descriptor: CInt
  private let rules: Rules
  /// Returns the answer to a PDU of the peer; nil if the PDU is not a request.
  private let respond: ([UInt8]) -> [UInt8]?
  private var answered: (([UInt8]?) -> Bool)?
  private var registration: Registration?
  private var requests = 0
  private var timer: Timer?

  /// Takes ownership of the connected `descriptor`, even if the initialiser throws. `firstTime`: how long the peer may
  /// take for its first PDU, if that differs from `idleMax`.
  init(
    _ loop: EventLoop, _ descriptor: CInt, _ peer: BluetoothEndpoint, _ rules: Rules, firstTime: TimeSpan? = nil,
    respond: @escaping ([UInt8]) -> [UInt8]?
  ) throws(SystemError) {
    self.loop = loop
    self.descriptor = descriptor
    self.peer = peer
    self.rules = rules
    self.respond = respond
    do {
      registration = try loop.add(descriptor, .read, .admission, self)
    } catch {
      _ = CSystem.close(descriptor)
      throw error
    }
    timer = Timer(loop) { [self] in close() }
    timer?.set(after: firstTime ?? rules.idleMax)
  }

  /// Sends a request. `answered` is called with each PDU of the peer that is not a request, until `answered` returns
  /// true for the answer. If the channel ends first, `answered` is called with nil. Only one request can be pending. A
  /// second request replaces the first, whose closure is not called any more.
  func ask(_ request: [UInt8], _ answered: @escaping ([UInt8]?) -> Bool) {
    self.answered = answered
    transmit(request)
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
    _ = answered?(nil)
    closed?(self)
    ended?()
  }

  func ready(_ events: UInt32) {
    var buffer = [UInt8](repeating: 0, count: rules.unitBytesMax)
    for _ in 0..<Self.unitsPerCallMax {
      guard registration != nil else { return }
      let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      if count < 0, csystem_errno() == EAGAIN || csystem_errno() == EINTR { return }
      requests += 1
      guard count > 0, requests <= rules.requestsMax else { return close() }
      timer?.set(after: rules.idleMax)
      received(Array(buffer[..<count]))
    }
  }

  private func received(_ pdu: [UInt8]) {
    if let reply = respond(pdu) { return transmit(reply) }
    guard let answered else {
      if rules.endsByNonsense { close() }
      return
    }
    self.answered = nil
    if !answered(pdu) { self.answered = answered }
  }

  /// Sends a PDU. Closes the channel if the PDU cannot be sent, for example because the peer does not read.
  private func transmit(_ pdu: [UInt8]) {
    if CSystem.send(descriptor, pdu, pdu.count, CInt(MSG_NOSIGNAL)) != pdu.count { close() }
  }
}

/// The request channels of one kind, with different peers.
final class RequestChannels {
  private let loop: EventLoop
  private let rules: RequestChannel.Rules
  private let countMax: Int
  private var channels: [RequestChannel] = []

  init(_ loop: EventLoop, _ rules: RequestChannel.Rules, countMax: Int) {
    self.loop = loop
    self.rules = rules
    self.countMax = countMax
  }

  var count: Int { channels.count }

  /// The channel with `peer`; nil if there is none.
  func existing(_ peer: BluetoothEndpoint) -> RequestChannel? { channels.first { $0.peer == peer } }

  /// Serves a connected channel. Returns nil, with the descriptor closed, if there are already `countMax` channels, or
  /// if epoll fails.
  func adopt(
    _ descriptor: CInt, _ peer: BluetoothEndpoint, firstTime: TimeSpan? = nil,
    respond: @escaping ([UInt8]) -> [UInt8]?
  ) -> RequestChannel? {
    guard channels.count < countMax else {
      _ = close(descriptor)
      return nil
    }
    guard
      let channel = try? RequestChannel(loop, descriptor, peer, rules, firstTime: firstTime, respond: respond)
    else { return nil }
    channel.closed = { [self] ended in channels.removeAll { $0 === ended } }
    channels.append(channel)
    return channel
  }

  func closeAll() {
    for channel in channels { channel.close() }
  }
}
