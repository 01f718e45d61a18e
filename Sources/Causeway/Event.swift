/// The daemon's answer to the request *hello*. See docs/local-api.md, event 129.
struct Welcome: Hashable {
  let version: Int
  let node: NodeID
  let name: String
  /// The number of message results that the daemon allows this client to await at once.
  let resultsMax: Int
}

/// A received invitation. See docs/local-api.md, event 132.
struct Invited: Hashable {
  let number: UInt32
  let from: Address
  let peer: Peer
  let rules: Rules
  let memberCount: Int
  let milliseconds: UInt32
  let context: [UInt8]
}

/// An event from the daemon. See docs/local-api.md, “Events”.
enum Event: Hashable {
  /// The end of a request. The error is nil if the request succeeded. The endpoint is set if the request created a
  /// service or a session.
  case done(CausewayError?, endpoint: UInt32? = nil)
  case welcome(Welcome)
  case services(reference: Int, [Service])
  case allTold
  case invited(Invited)
  /// `received` is the daemon's number of a received invitation, or 0 for an invitation that this client sent.
  case invitationEnded(received: UInt32, Outcome)
  case identified([UInt8])
  case ended(SessionEnd)
  case member(Member)
  case message(from: Address, isReliable: Bool, [UInt8])
  case sent(Address, Delivery)
  case room(Address)
  case stream(received: UInt32, from: Address, name: String)
  case streamBytes([UInt8])
  /// `limit` is the total number of bytes that the client is allowed to write, since the stream was opened.
  case streamRoom(limit: UInt64)
  /// `received` is the daemon's number for an incoming stream that the client has neither accepted nor refused.
  /// `received` is 0 for a stream that the client has opened or taken.
  case streamEnded(received: UInt32, StreamEnd)
  case decisionWanted(Address, Peer, certificates: [[UInt8]])

  /// Parses a packet without its length field. The event is nil if the event type or a value belongs to a later
  /// version.
  static func read(_ packet: ArraySlice<UInt8>) throws(CausewayError) -> (number: UInt32, event: Event?) {
    var reader = PacketReader(packet)
    let type = try reader.byte()
    return (try reader.word(), try read(type, &reader))
  }

  private static func read(_ type: UInt8, _ reader: inout PacketReader) throws(CausewayError) -> Event? {
    switch type {
    case 128:
      let code = try reader.byte(), text = try reader.text()
      guard code == 0 else { return .done(CausewayError(refusal: code, text: text)) }
      return .done(nil, endpoint: reader.remaining < 4 ? nil : try reader.word())
    case 129: return .welcome(try welcome(&reader))
    case 130: return try services(&reader)
    case 131: return .allTold
    case 132: return .invited(try invited(&reader))
    case 133:
      let received = try reader.word(), code = try reader.byte()
      return .invitationEnded(received: received, outcome(code, try reader.text()))
    case 134: return .identified(Array(try reader.bytes(16)))
    case 135:
      let reason = try reader.byte()
      _ = try reader.word()
      return .ended(end(reason, try reader.text()))
    case 136: return try member(&reader).map { .member($0) }
    case 137:
      let from = try reader.address(), mode = try reader.byte(), count = try reader.count(4)
      guard count <= Limits.messageBytesMax else { throw .broken("a message of \(count) bytes") }
      return .message(from: from, isReliable: mode != Mode.unreliable.rawValue, Array(try reader.bytes(count)))
    case 138:
      let address = try reader.address()
      return Delivery(rawValue: try reader.byte()).map { .sent(address, $0) }
    case 139: return .room(try reader.address())
    case 140:
      return .stream(received: try reader.word(), from: try reader.address(), name: try reader.text())
    case 141:
      let count = try reader.count(4)
      guard count <= Limits.streamBytesMax else { throw .broken("\(count) bytes of a stream at once") }
      return .streamBytes(Array(try reader.bytes(count)))
    case 142: return .streamRoom(limit: try reader.number(8))
    case 143: return .streamEnded(received: try reader.word(), StreamEnd(code: try reader.byte()))
    case 144: return try question(&reader)
    default: return nil
    }
  }

  private static func welcome(_ reader: inout PacketReader) throws(CausewayError) -> Welcome {
    let version = try reader.count(2)
    _ = try reader.bytes(8)
    let node = try reader.node(), name = try reader.text()
    // Skips the limits for packets, messages, borrowed bytes, services, sessions and browses: the daemon refuses
    // requests beyond these limits.
    _ = try reader.bytes(4 + 4 + 4 + 2 + 2 + 2)
    return Welcome(version: version, node: node, name: name, resultsMax: try reader.count(2))
  }

  private static func question(_ reader: inout PacketReader) throws(CausewayError) -> Event {
    let address = try reader.address(), peer = try reader.peer()
    var certificates: [[UInt8]] = []
    // In packets of the first daemons, the field with the certificates is missing.
    if reader.remaining > 0 {
      for _ in 0..<(try reader.count(1)) { certificates.append(Array(try reader.bytes(try reader.count(2)))) }
    }
    return .decisionWanted(address, peer, certificates: certificates)
  }

  private static func services(_ reader: inout PacketReader) throws(CausewayError) -> Event {
    let reference = try reader.count(2), node = try reader.node(), peer = try reader.peer(), count = try reader.count(1)
    guard count <= Limits.servicesOfNodeMax else { throw .broken("a node with \(count) services") }
    var services: [Service] = []
    for _ in 0..<count {
      let length = try reader.count(2)
      guard length <= Limits.serviceBytesMax else { throw .broken("a service of \(length) bytes") }
      // Each record has its own length, so that later versions can append fields.
      var record = PacketReader(try reader.bytes(length))
      let endpoint = try record.word()
      _ = try record.text()
      services.append(
        Service(address: Address(node: node, endpoint: endpoint), peer: peer, info: try record.info()))
    }
    return .services(reference: reference, services)
  }

  private static func invited(_ reader: inout PacketReader) throws(CausewayError) -> Invited {
    let number = try reader.word(), from = try reader.address(), peer = try reader.peer(), rules = try reader.rules()
    let members = try reader.count(1), milliseconds = try reader.word(), length = try reader.count(2)
    guard length <= Limits.contextBytesMax else { throw .broken("a context of \(length) bytes") }
    return Invited(
      number: number, from: from, peer: peer, rules: rules, memberCount: members, milliseconds: milliseconds,
      context: Array(try reader.bytes(length)))
  }

  private static func member(_ reader: inout PacketReader) throws(CausewayError) -> Member? {
    let address = try reader.address(), peer = try reader.peer()
    let code = try reader.byte(), reason = try reader.byte(), text = try reader.text()
    let state: Member.State
    switch (code, reason) {
    case (0, _): state = .connecting
    case (1, _): state = .connected
    case (2, _): state = .away
    case (3, _): state = .rejected
    case (4, 2): state = .crashed
    case (4, 3): state = .foundNoPlace
    // A reason that this version does not know also means that the member has left.
    case (4, _): state = .left(text)
    case (5, _): state = .ejected(text)
    case (6, _): state = .paused
    default: return nil
    }
    return Member(address: address, peer: peer, state: state)
  }

  private static func outcome(_ code: UInt8, _ text: String) -> Outcome {
    switch code {
    case 0: .connected
    case 1: .declined(text)
    case 2: .timedOut
    case 3: .cancelled
    case 4: .busy
    case 5: .full
    case 6: .noService
    case 7: .incompatible
    case 8: .sessionEnded
    default: .other(code)
    }
  }

  private static func end(_ code: UInt8, _ text: String) -> SessionEnd {
    switch code {
    case 0: .left
    case 1: .ejected(text)
    case 2: .full
    case 3: .merged
    default: .other(code)
    }
  }
}
