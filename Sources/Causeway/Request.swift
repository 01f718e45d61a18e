/// A request to the daemon. See docs/local-api.md, “Requests”.
enum Request {
  case hello(name: String)
  case advertise(type: String, pairs: [String])
  case browse(type: String)
  /// If `decides` is true, the application decides on each member.
  case open(type: String, Rules, decides: Bool = false)
  case close(UInt32)
  case invite(session: UInt32, Address, milliseconds: UInt32, context: [UInt8])
  case cancel(invitation: UInt32)
  /// Session 0 declines the invitation. Any other session accepts the invitation.
  case answer(invitation: UInt32, session: UInt32, explanation: String)
  case leave(session: UInt32, farewell: String)
  /// An empty list of addresses stands for all connected members.
  case send(session: UInt32, Mode, to: [Address], [UInt8])
  case window(session: UInt32, limit: UInt64)
  case gather(session: UInt32)
  case stream(session: UInt32, Address, name: String)
  /// Accepts or refuses a stream that a member opened. For a refused stream, `isPostponed` reports that there is no
  /// slot for the stream at present.
  case take(stream: UInt32, isWanted: Bool, limit: UInt64, isPostponed: Bool = false)
  case write(stream: UInt32, [UInt8])
  case streamWindow(stream: UInt32, limit: UInt64)
  case finish(stream: UInt32)
  case reset(stream: UInt32, isPostponed: Bool = false)
  case eject(session: UInt32, Address, text: String)
  case decide(session: UInt32, Address, isAccepted: Bool)
  case connect(session: UInt32, Address, milliseconds: UInt32)

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
    case .gather: 12
    case .stream: 13
    case .take: 14
    case .write: 15
    case .streamWindow: 16
    case .finish: 17
    case .reset: 18
    case .eject: 19
    case .decide: 20
    case .connect: 21
    }
  }

  /// The packet with its length field.
  func packet(_ number: UInt32) -> [UInt8] {
    var capacity = 64
    if case .send(_, _, let to, let message) = self { capacity += 20 * to.count + message.count }
    if case .write(_, let bytes) = self { capacity += bytes.count }
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
    case .open(let type, let rules, let decides):
      writer.put(type)
      writer.put((rules.onlyFounderAdmits ? 1 : 0) | (rules.allowsUnsealed ? 2 : 0), count: 1)
      writer.put(UInt64(UInt8(clamping: rules.membersMax)), count: 1)
      if decides { writer.put(1, count: 1) }
    case .close(let object), .cancel(let object), .gather(let object), .finish(let object):
      writer.put(UInt64(object), count: 4)
    case .reset(let stream, let isPostponed):
      writer.put(UInt64(stream), count: 4)
      if isPostponed { writer.put(1, count: 1) }
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
    case .window(let object, let limit), .streamWindow(let object, let limit):
      writer.put(UInt64(object), count: 4)
      writer.put(limit, count: 8)
    case .stream(let session, let address, let name):
      writer.put(UInt64(session), count: 4)
      writer.put(address)
      writer.put(name)
    case .take(let stream, let isWanted, let limit, let isPostponed):
      writer.put(UInt64(stream), count: 4)
      writer.put(isWanted ? 1 : 0, count: 1)
      writer.put(limit, count: 8)
      if isPostponed { writer.put(1, count: 1) }
    case .write(let stream, let bytes):
      writer.put(UInt64(stream), count: 4)
      writer.put(UInt64(bytes.count), count: 4)
      writer.put(bytes)
    case .eject(let session, let address, let text):
      writer.put(UInt64(session), count: 4)
      writer.put(address)
      writer.put(text)
    case .decide(let session, let address, let isAccepted):
      writer.put(UInt64(session), count: 4)
      writer.put(address)
      writer.put(isAccepted ? 1 : 0, count: 1)
    case .connect(let session, let address, let milliseconds):
      writer.put(UInt64(session), count: 4)
      writer.put(address)
      writer.put(UInt64(milliseconds), count: 4)
    }
    return writer.finished()
  }
}
