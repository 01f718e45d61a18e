import Primitives
import Session

/// A request from an application. See docs/local-api.md, “Requests”.
///
/// The client chooses the number of the request. The number identifies the answer, and the object that the request
/// creates: a service, a browse, a session, an invitation or a stream.
public struct LocalRequest: Equatable, Sendable {
  /// The delivery mode of a message.
  public enum Mode: UInt8, Sendable {
    case interactive = 0
    case bulk = 1
    case unreliable = 2
  }

  /// The request type and its fields, in the order of the packet.
  public enum Body: Equatable, Sendable {
    case hello(least: UInt16, most: UInt16, instance: [UInt8])
    case advertise(type: [UInt8], info: [[UInt8]])
    case browse(type: [UInt8])
    /// If `decidesOnMembers` is true, the application decides on each member.
    case open(type: [UInt8], SessionRules, decidesOnMembers: Bool = false)
    /// Closes a service or a browse.
    case close(UInt32)
    case invite(session: UInt32, MemberAddress, milliseconds: UInt32, context: [UInt8])
    case cancel(invitation: UInt32)
    /// Session 0 declines the invitation. Any other session accepts the invitation.
    case answer(invitation: UInt32, into: UInt32, text: [UInt8])
    case leave(session: UInt32, text: [UInt8])
    /// An empty list of addresses stands for all connected members.
    case send(session: UInt32, Mode, to: [MemberAddress], data: [UInt8])
    /// Permits the daemon to send messages. `limit` is the total number of message bytes since the session was opened.
    /// The request has no answer.
    case window(session: UInt32, limit: UInt64)
    /// Gathers (auto-join): invites every application that offers the session's type, and accepts invitations from such
    /// applications.
    case gather(session: UInt32)
    /// Opens a stream to a member.
    case stream(session: UInt32, to: MemberAddress, name: [UInt8])
    /// Accepts or refuses a stream that a member opened. `limit` is the total number of bytes that the daemon may send.
    /// For a refused stream, `isPostponed` reports that there is no slot at present, so the member can try again.
    case take(stream: UInt32, isWanted: Bool, limit: UInt64, isPostponed: Bool = false)
    /// Writes the next bytes of a stream. The request has no answer.
    case write(stream: UInt32, data: [UInt8])
    /// Permits the daemon to send bytes of a stream. `limit` is the total number of bytes since the stream was opened.
    /// The request has no answer.
    case streamWindow(stream: UInt32, limit: UInt64)
    /// Finishes a stream: no more bytes follow.
    case finish(stream: UInt32)
    /// Resets a stream. `isPostponed` reports that there is no slot for the stream at present, so the other end can try
    /// again.
    case reset(stream: UInt32, isPostponed: Bool = false)
    /// Removes a member from the session, for all members.
    case eject(session: UInt32, MemberAddress, text: [UInt8])
    /// Decides whether this client accepts a member, after the event `decisionWanted`.
    case decide(session: UInt32, MemberAddress, accepts: Bool)
    /// Connects to an application whose address the client knows without a service, for example from a file.
    case connect(session: UInt32, MemberAddress, milliseconds: UInt32)
  }

  public var number: UInt32
  public var body: Body

  public init(_ number: UInt32, _ body: Body) {
    self.number = number
    self.body = body
  }

  /// The type and number of a request. The type may be unknown. Nil if the packet is too short.
  public static func head(_ packet: RawSpan) -> (type: UInt8, number: UInt32)? {
    packet.byteCount < 5 ? nil : (packet.octet(0), packet.word32(1))
  }

  /// Whether a packet is a request that may need a signature of this node: open, invite, answer, leave, eject or
  /// connect.
  static func maySign(_ packet: RawSpan) -> Bool {
    switch head(packet)?.type {
    case 4, 6, 8, 9, 19, 21: true
    default: false
    }
  }

  /// Parses a packet without its length field. Bytes after the last known field belong to a later version and are
  /// ignored.
  public init(_ packet: RawSpan) throws(LocalSyntaxError) {
    var reader = ByteReader(packet, orThrow: LocalSyntaxError.truncated)
    let type = try reader.u8()
    number = try reader.u32()
    switch type {
    case 1: body = .hello(least: try reader.u16(), most: try reader.u16(), instance: try reader.text())
    case 2: body = .advertise(type: try reader.text(), info: try reader.texts())
    case 3: body = .browse(type: try reader.text())
    case 4:
      let type = try reader.text(), rules = try reader.rules()
      body = .open(type: type, rules, decidesOnMembers: try reader.laterBool())
    case 5: body = .close(try reader.u32())
    case 6:
      body = .invite(
        session: try reader.u32(), try reader.address(), milliseconds: try reader.u32(),
        context: try reader.array(Int(try reader.u16())))
    case 7: body = .cancel(invitation: try reader.u32())
    case 8: body = .answer(invitation: try reader.u32(), into: try reader.u32(), text: try reader.text())
    case 9: body = .leave(session: try reader.u32(), text: try reader.text())
    case 10:
      let session = try reader.u32()
      guard let mode = Mode(rawValue: try reader.u8()) else { throw .outOfRange }
      let count = Int(try reader.u8())
      guard count < SessionLimits.membersMax else { throw .outOfRange }
      var to: [MemberAddress] = []
      for _ in 0..<count { to.append(try reader.address()) }
      body = .send(session: session, mode, to: to, data: try reader.span(Int(try reader.u32())).copied)
    case 11: body = .window(session: try reader.u32(), limit: try reader.u64())
    case 12: body = .gather(session: try reader.u32())
    case 13: body = .stream(session: try reader.u32(), to: try reader.address(), name: try reader.text())
    case 14:
      let stream = try reader.u32(), isWanted = try reader.bool(), limit = try reader.u64()
      body = .take(stream: stream, isWanted: isWanted, limit: limit, isPostponed: try reader.laterBool())
    case 15:
      let stream = try reader.u32()
      let count = Int(try reader.u32())
      guard count <= LocalLimits.streamBytesMax else { throw .outOfRange }
      body = .write(stream: stream, data: try reader.span(count).copied)
    case 16: body = .streamWindow(stream: try reader.u32(), limit: try reader.u64())
    case 17: body = .finish(stream: try reader.u32())
    case 18:
      let stream = try reader.u32()
      body = .reset(stream: stream, isPostponed: try reader.laterBool())
    case 19: body = .eject(session: try reader.u32(), try reader.address(), text: try reader.text())
    case 20: body = .decide(session: try reader.u32(), try reader.address(), accepts: try reader.bool())
    case 21: body = .connect(session: try reader.u32(), try reader.address(), milliseconds: try reader.u32())
    default: throw .unsupported
    }
  }
}
