import Primitives
import Session

/// The parser of a client for the packets that `LocalEvent.packet` makes.
extension LocalEvent {
  /// Parses a packet without its length field. Bytes after the last known field belong to a later version and are
  /// ignored.
  ///
  /// A client skips an event if this initializer throws `.unsupported` (the event type belongs to a later version) or
  /// `.outOfRange` (a value belongs to a later version). `.truncated` means that the daemon violated the protocol.
  /// Values that exist only in the daemon are zero: session handles, and the deadline of an invitation.
  public init(_ packet: RawSpan) throws(LocalSyntaxError) {
    var reader = ByteReader(packet, orThrow: LocalSyntaxError.truncated)
    let type = try reader.u8()
    let object = try reader.u32()
    switch type {
    case 128:
      // An unknown code, from a later version, means that the request was refused.
      let outcome = LocalOutcome(rawValue: try reader.u8()) ?? .unsupported
      let text = try reader.text()
      if outcome == .done && reader.remaining >= 4 {
        self = .doneAt(request: object, endpoint: try reader.u32())
      } else {
        self = .done(request: object, outcome, text: text)
      }
    case 129:
      let version = try reader.u16()
      _ = try reader.u64()
      self = .welcome(
        request: object, version: version, node: try reader.nodeID(), name: try reader.text(), try reader.terms())
    case 130:
      let reference = try reader.u16(), node = try reader.nodeID(), peer = try reader.peer()
      var services: [Service] = []
      for _ in 0..<(try reader.u8()) { services.append(try reader.service()) }
      self = .services(browse: object, reference: reference, node, peer, services)
    case 131: self = .allTold(browse: object)
    case 132:
      let handle = InvitationHandle(number: try reader.u32())
      let from = try reader.address(), peer = try reader.peer(), rules = try reader.rules()
      let members = Int(try reader.u8()), milliseconds = try reader.u32()
      let context = try reader.array(Int(try reader.u16()))
      self = .invited(
        service: object,
        Invitation(
          handle: handle, from: from, to: 0, rules: rules, memberCount: members, context: context, deadline: .zero),
        milliseconds: milliseconds, peer)
    case 133:
      let received = try reader.u32(), code = try reader.u8()
      self = .invitationEnded(object: object, received: received, try Self.outcome(code, try reader.text()))
    case 134:
      self = .identified(session: object, SessionID(high: try reader.u64(), low: try reader.u64()))
    case 135:
      let code = try reader.u8(), same = try reader.u32()
      self = .ended(session: object, try Self.end(code, try reader.text()), same: same)
    case 136:
      let address = try reader.address(), peer = try reader.peer(), code = try reader.u8(), reason = try reader.u8()
      self = .member(session: object, address, try Self.state(code, reason, try reader.text()), peer)
    case 137:
      let from = try reader.address()
      let isReliable = try reader.u8() != LocalRequest.Mode.unreliable.rawValue
      let data = try reader.span(Int(try reader.u32())).copied
      self = .message(session: object, from: from, isReliable: isReliable, data)
    case 138:
      let to = try reader.address()
      guard let delivery = LocalDelivery(rawValue: try reader.u8()) else { throw .outOfRange }
      self = .sent(request: object, to: to, delivery)
    case 139: self = .room(session: object, try reader.address())
    case 140: self = .stream(session: object, stream: try reader.u32(), from: try reader.address(), try reader.text())
    case 141: self = .streamBytes(stream: object, try reader.span(Int(try reader.u32())).copied)
    case 142: self = .streamRoom(stream: object, limit: try reader.u64())
    case 143:
      let received = try reader.u32()
      self = .streamEnded(object: object, received: received, try Self.streamEnd(try reader.u8()))
    case 144:
      let address = try reader.address(), peer = try reader.peer()
      var certificates: [[UInt8]] = []
      // In packets of the first daemons, the field with the certificates is missing.
      if reader.remaining > 0 {
        for _ in 0..<(try reader.u8()) { certificates.append(try reader.array(Int(try reader.u16()))) }
      }
      self = .decisionWanted(session: object, address, peer, certificates: certificates)
    default: throw .unsupported
    }
  }

  private static func outcome(_ code: UInt8, _ text: [UInt8]) throws(LocalSyntaxError) -> InvitationOutcome {
    switch code {
    case 0: .connected
    case 1: .declined(explanation: text)
    case 2: .timedOut
    case 3: .cancelled
    case 4: .busy
    case 5: .full
    case 6: .noService
    case 7: .incompatible
    case 8: .sessionEnded
    default: throw .outOfRange
    }
  }

  private static func end(_ code: UInt8, _ text: [UInt8]) throws(LocalSyntaxError) -> SessionEnd {
    switch code {
    case 0: .left
    case 1: .ejected(text: text)
    case 2: .full
    case 3: .isSame(SessionHandle(number: 0))
    default: throw .outOfRange
    }
  }

  private static func state(_ code: UInt8, _ reason: UInt8, _ text: [UInt8]) throws(LocalSyntaxError) -> MemberState {
    switch code {
    case 0: return .connecting
    case 1: return .connected
    case 2: return .away
    case 3: return .rejected
    case 4:
      guard let reason = Departure.Reason(rawValue: reason) else { throw .outOfRange }
      return .left(reason, text: text)
    case 5: return .ejected(text: text)
    case 6: return .paused
    default: throw .outOfRange
    }
  }

  private static func streamEnd(_ code: UInt8) throws(LocalSyntaxError) -> StreamEnd {
    switch code {
    case 0: return .finished
    case 5: return .lost
    default:
      guard let reason = StreamReset(rawValue: code) else { throw .outOfRange }
      return .reset(reason)
    }
  }
}

extension ByteReader<LocalSyntaxError> {
  fileprivate mutating func peer() throws(LocalSyntaxError) -> LocalPeer {
    let hops = try u8(), flags = try u8()
    return LocalPeer(name: try text(), hops: hops, isVerified: flags & 1 != 0)
  }

  /// Reads a service. The length in front of the service limits the reading, because later versions may append fields.
  fileprivate mutating func service() throws(LocalSyntaxError) -> Service {
    let count = Int(try u16())
    var entry = ByteReader(try span(count), orThrow: LocalSyntaxError.truncated)
    return Service(endpoint: try entry.u32(), type: try entry.text(), info: try entry.texts())
  }

  fileprivate mutating func terms() throws(LocalSyntaxError) -> LocalTerms {
    LocalTerms(
      packetBytesMax: try u32(), messageBytesMax: try u32(), loanBytes: try u32(), servicesMax: try u16(),
      sessionsMax: try u16(), browsesMax: try u16(), flightsMax: try u16(), streamsMax: try u16())
  }
}
