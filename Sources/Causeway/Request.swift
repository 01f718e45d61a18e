/// What a client asks for. docs/local-api.md, “Requests”.
enum Request {
  case hello(name: String)
  case advertise(type: String, pairs: [String])
  case browse(type: String)
  case open(type: String, Rules)
  case close(UInt32)
  case invite(session: UInt32, Address, milliseconds: UInt32, context: [UInt8])
  case cancel(invitation: UInt32)
  /// Session 0: declined.
  case answer(invitation: UInt32, session: UInt32, explanation: String)
  case leave(session: UInt32, farewell: String)
  /// Nobody named: all that are connected.
  case send(session: UInt32, Mode, to: [Address], [UInt8])
  case window(session: UInt32, limit: UInt64)

  static let version: UInt64 = 1

  private var type: UInt8 {
    switch self {
    case .hello: 1
    case .advertise: 2
    case .browse: 3
    case .open: 4
    case .close: 5
    case .invite: 6
    case .cancel: 7
    case .answer: 8
    case .leave: 9
    case .send: 10
    case .window: 11
    }
  }

  /// The packet, with its length.
  func packet(_ number: UInt32) -> [UInt8] {
    var capacity = 64
    if case .send(_, _, let to, let message) = self { capacity += 20 * to.count + message.count }
    var writer = PacketWriter(type: type, number: number, capacity: capacity)
    switch self {
    case .hello(let name):
      writer.put(Self.version, count: 2)
      writer.put(Self.version, count: 2)
      writer.put(name)
    case .advertise(let type, let pairs):
      writer.put(type)
      writer.put(UInt64(pairs.count), count: 1)
      for pair in pairs { writer.put(pair) }
    case .browse(let type):
      writer.put(type)
    case .open(let type, let rules):
      writer.put(type)
      writer.put((rules.onlyFounderAdmits ? 1 : 0) | (rules.allowsUnsealed ? 2 : 0), count: 1)
      writer.put(UInt64(UInt8(clamping: rules.membersMax)), count: 1)
    case .close(let object), .cancel(let object):
      writer.put(UInt64(object), count: 4)
    case .invite(let session, let address, let milliseconds, let context):
      writer.put(UInt64(session), count: 4)
      writer.put(address)
      writer.put(UInt64(milliseconds), count: 4)
      writer.put(UInt64(context.count), count: 2)
      writer.put(context)
    case .answer(let invitation, let session, let explanation):
      writer.put(UInt64(invitation), count: 4)
      writer.put(UInt64(session), count: 4)
      writer.put(explanation)
    case .leave(let session, let farewell):
      writer.put(UInt64(session), count: 4)
      writer.put(farewell)
    case .send(let session, let mode, let to, let message):
      writer.put(UInt64(session), count: 4)
      writer.put(UInt64(mode.rawValue), count: 1)
      writer.put(UInt64(to.count), count: 1)
      for address in to { writer.put(address) }
      writer.put(UInt64(message.count), count: 4)
      writer.put(message)
    case .window(let session, let limit):
      writer.put(UInt64(session), count: 4)
      writer.put(limit, count: 8)
    }
    return writer.finished()
  }
}
