import Channel
import Primitives
import Session

/// Execution of the clients' requests.
extension ClientRecords {
  func carryOut(_ request: LocalRequest, _ client: ClientRecord, _ now: Instant) {
    let number = request.number
    if case .hello(let least, let most, let instance) = request.body {
      return greet(client, number, least, most, instance)
    }
    guard let instance = client.instance else { return answer(client, number, .invalid, "hello must come first") }
    if carryOutUnanswered(request.body, client, now) { return }
    guard number != 0 else { return answer(client, 0, .invalid, "a request needs a number other than 0") }
    do throws(LocalError) {
      switch request.body {
      case .hello, .window, .write, .streamWindow: return
      case .advertise(let type, let info):
        let endpoint = try advertise(client, number, type, info, instance, now)
        return client.reply(.doneAt(request: number, endpoint: endpoint))
      case .browse(let type): try browse(client, number, type)
      case .open(let type, let rules, let decidesOnMembers):
        let endpoint = try open(client, number, type, rules, decidesOnMembers: decidesOnMembers, instance, now)
        return client.reply(.doneAt(request: number, endpoint: endpoint))
      case .close(let object): try close(client, object, now)
      case .invite(let session, let address, let milliseconds, let context):
        try invite(client, number, session) { session throws(SessionError) in
          try node.sessions.invite(
            address, into: session, context: context, timeout: .milliseconds(UInt64(milliseconds)), now: now)
        }
      case .connect(let session, let address, let milliseconds):
        try invite(client, number, session) { session throws(SessionError) in
          try node.sessions.connect(address, into: session, timeout: .milliseconds(UInt64(milliseconds)), now: now)
        }
      case .cancel(let invitation):
        guard let sent = client.sent.first(where: { $0.number == invitation }) else { throw LocalError(.unknown) }
        try LocalError.wrapping { () throws(SessionError) in try node.sessions.cancel(sent.handle, now: now) }
      case .answer(let invitation, let session, let text): try decide(client, invitation, session, text, now)
      case .leave(let session, let text):
        guard let session = client.session(session) else { throw LocalError(.unknown) }
        try LocalError.wrapping { () throws(SessionError) in
          try leave(client, session, text, now)
        }
      case .send(let session, let mode, let to, let data):
        return try send(client, number, session, mode, to, data, now)
      case .gather(let session):
        guard let session = client.session(session) else { throw LocalError(.unknown) }
        session.gathers = true
        gatherAll(session.type, now)
      case .stream(let session, let to, let name): try openStream(client, number, session, to, name, now)
      case .take(let stream, let isWanted, let limit, let isPostponed):
        try decideStream(client, number, stream, isWanted: isWanted, limit, isPostponed: isPostponed, now)
      case .finish(let stream): try finishStream(client, stream, now)
      case .reset(let stream, let isPostponed): try resetStream(client, stream, isPostponed: isPostponed, now)
      case .eject(let session, let address, let text):
        guard let session = client.session(session) else { throw LocalError(.unknown) }
        try LocalError.wrapping { () throws(SessionError) in
          try node.sessions.eject(session.handle, address, text: text, now: now)
        }
      case .decide(let session, let address, let accepts):
        guard let session = client.session(session) else { throw LocalError(.unknown) }
        try LocalError.wrapping { () throws(SessionError) in
          try node.sessions.decide(session.handle, address, accepts: accepts, now: now)
        }
      }
      answer(client, number, .done)
    } catch {
      client.reply(.done(request: number, error.outcome, text: error.text))
    }
  }

  /// Carries out a request that has no answer. Returns false for all other requests.
  private func carryOutUnanswered(_ request: LocalRequest.Body, _ client: ClientRecord, _ now: Instant) -> Bool {
    switch request {
    case .window(let session, let limit): client.session(session)?.grant(limit)
    case .write(let stream, let data): write(client, stream, data, now)
    case .streamWindow(let stream, let limit): client.stream(stream)?.grant(limit)
    case .hello, .advertise, .browse, .open, .close, .invite, .cancel, .answer, .leave, .send, .gather, .stream, .take,
      .finish, .reset, .eject, .decide, .connect:
      return false
    }
    client.hasNews = true
    return true
  }

  private func greet(_ client: ClientRecord, _ number: UInt32, _ least: UInt16, _ most: UInt16, _ instance: [UInt8]) {
    guard client.instance == nil else { return answer(client, number, .invalid, "hello was already sent") }
    guard least <= most, instance.count <= LocalLimits.instanceBytesMax, isPlainText(instance.span.bytes) else {
      return answer(client, number, .invalid, "an application's name is plain text of at most 63 bytes")
    }
    let versions = LocalLimits.versions
    guard least <= versions.upperBound, most >= versions.lowerBound else {
      return answer(client, number, .unsupported, "this daemon supports version 1")
    }
    client.instance = instance
    client.helloDeadline = .never
    client.reply(
      .welcome(
        request: number, version: min(most, versions.upperBound), node: node.sessions.local, name: node.name))
  }

  // MARK: Services

  private func advertise(
    _ client: ClientRecord, _ number: UInt32, _ type: [UInt8], _ info: [[UInt8]], _ instance: [UInt8], _ now: Instant
  ) throws(LocalError) -> UInt32 {
    let known = client.services.first { $0.number == number }
    let endpoint = try self.endpoint(client, type, instance)
    if let known {
      guard known.type == type else { throw LocalError(.inUse, "a service cannot change its type") }
    } else {
      guard !client.isInUse(number) else { throw LocalError(.inUse, "the number is already in use") }
      guard client.services.count < LocalLimits.servicesMax else { throw LocalError(.full, "the limit is 8 services") }
      guard !client.services.contains(where: { $0.endpoint == endpoint }) else {
        throw LocalError(.inUse, "the client already offers this type")
      }
    }
    let service = Service(endpoint: endpoint, type: type, info: info)
    if known == nil { try share(.services, client) }
    try share(.serviceBytes(of: endpoint, service.byteCount), client)
    try LocalError.wrapping { () throws(SessionError) in try node.advertise(service, now: now) }
    if let index = client.services.firstIndex(where: { $0.number == number }) {
      client.services[index].byteCount = service.byteCount
    } else {
      client.services.append(
        ClientRecord.Service(number: number, endpoint: endpoint, type: type, byteCount: service.byteCount))
    }
    offersChanged(node.sessions.local)
    if known == nil { gatherAll(type, now) }
    return endpoint
  }

  private func browse(_ client: ClientRecord, _ number: UInt32, _ type: [UInt8]) throws(LocalError) {
    if !type.isEmpty { try allow(client, type) }
    guard !client.isInUse(number) else { throw LocalError(.inUse, "the number is already in use") }
    guard client.browses.count < LocalLimits.browsesMax else { throw LocalError(.full, "the limit is 8 browses") }
    client.browses.append(LocalBrowse(number: number, type: type, references: references))
  }

  private func close(_ client: ClientRecord, _ object: UInt32, _ now: Instant) throws(LocalError) {
    if let index = client.services.firstIndex(where: { $0.number == object }) {
      withdraw(client.services.remove(at: index).endpoint, now)
    } else if let index = client.browses.firstIndex(where: { $0.number == object }) {
      client.browses.remove(at: index)
    } else {
      throw LocalError(.unknown)
    }
  }

  /// The endpoint of a client for a service type. The client need not advertise the type.
  private func endpoint(_ client: ClientRecord, _ type: [UInt8], _ instance: [UInt8]) throws(LocalError) -> UInt32 {
    try allow(client, type)
    let endpoint = node.endpoint(user: client.user, type: type, instance: instance)
    for other in clients.compactMap({ $0 }) where other !== client && other.owns(endpoint) {
      throw LocalError(.inUse, "another client of this user and name already offers the service")
    }
    return endpoint
  }

  private func allow(_ client: ClientRecord, _ type: [UInt8]) throws(LocalError) {
    guard isServiceType(type.span.bytes), type.count <= Limits.serviceTypeBytesMax else {
      throw LocalError(.invalid, "a service type is 1 to 15 of a-z, 0-9 and hyphens, with a letter (RFC 6335)")
    }
    guard client.mayUse(type, restrictions) else {
      throw LocalError(.notAllowed, "[applications] service-groups grants this type to a group the user is not in")
    }
  }

  // MARK: Sessions

  private func open(
    _ client: ClientRecord, _ number: UInt32, _ type: [UInt8], _ rules: SessionRules, decidesOnMembers: Bool,
    _ instance: [UInt8], _ now: Instant
  ) throws(LocalError) -> UInt32 {
    let endpoint = try self.endpoint(client, type, instance)
    guard !client.isInUse(number) else { throw LocalError(.inUse, "the number is already in use") }
    let count = client.sessions.count + client.departing.count
    guard count < LocalLimits.sessionsMax else { throw LocalError(.full, "the limit is 16 sessions") }
    try share(.sessions, client)
    let handle = try LocalError.wrapping { () throws(SessionError) in
      try node.sessions.open(endpoint, rules, decidesOnMembers: decidesOnMembers, owner: owner(client), now: now)
    }
    client.sessions.append(ClientSession(number, handle, endpoint, type))
    return endpoint
  }

  /// The client and the user whose shares are charged for a session.
  private func owner(_ client: ClientRecord) -> SessionOwner {
    SessionOwner(
      application: UInt32(clients.firstIndex { $0 === client } ?? 0), user: client.user, isFavoured: client.isOperator)
  }

  private func invite(
    _ client: ClientRecord, _ number: UInt32, _ session: UInt32,
    _ invitation: (SessionHandle) throws(SessionError) -> InvitationHandle
  ) throws(LocalError) {
    guard !client.isInUse(number) else { throw LocalError(.inUse, "the number is already in use") }
    guard let session = client.session(session) else { throw LocalError(.unknown) }
    let handle = try LocalError.wrapping(
      full: "too many invitations of this user, or to this node, or no place in the session; cancel one first"
    ) { () throws(SessionError) in try invitation(session.handle) }
    client.sent.append(ClientRecord.SentInvitation(number: number, handle: handle, outcome: nil))
  }

  private func decide(
    _ client: ClientRecord, _ invitation: UInt32, _ session: UInt32, _ text: [UInt8], _ now: Instant
  ) throws(LocalError) {
    let handle = InvitationHandle(number: invitation)
    guard client.received.contains(where: { $0.invitation.handle == handle && $0.outcome == nil }) else {
      throw LocalError(.unknown)
    }
    let into = client.session(session)
    if session != 0 && into == nil { throw LocalError(.unknown) }
    try LocalError.wrapping { () throws(SessionError) in
      if let into {
        try node.sessions.accept(handle, into: into.handle, now: now)
      } else {
        try node.sessions.decline(handle, explanation: text, now: now)
      }
    }
  }

  // MARK: Messages

  private func send(
    _ client: ClientRecord, _ number: UInt32, _ session: UInt32, _ mode: LocalRequest.Mode, _ to: [MemberAddress],
    _ data: [UInt8], _ now: Instant
  ) throws(LocalError) {
    guard !client.isInUse(number) else { throw LocalError(.inUse, "the number is already in use") }
    guard let session = client.session(session) else { throw LocalError(.unknown) }
    guard data.count <= SessionLimits.messageBytesMax else {
      throw LocalError(.invalid, "a message has at most 65000 bytes")
    }
    guard mode != .unreliable || data.count <= SessionLimits.unreliableBytesMax else {
      throw LocalError(.invalid, "an unreliable message has at most 1900 bytes")
    }
    let connected = node.sessions.members(of: session.handle).filter { $0.state == .connected || $0.state == .paused }
    let members = to.isEmpty ? connected.map { $0.address } : to
    guard client.flights.count + members.count <= LocalLimits.flightsMax else {
      throw LocalError(.full, "256 results are pending; read them first")
    }
    for member in members {
      let lane: Lane = mode == .bulk ? .bulk : .interactive
      do throws(SessionError) {
        if mode == .unreliable {
          try node.sendUnreliably(data, in: session.handle, to: member, now: now)
        } else {
          let id = try node.send(data, in: session.handle, to: member, lane: lane, now: now)
          client.flights.append(ClientRecord.Flight(request: number, id: id, to: member))
        }
      } catch {
        if mode == .unreliable { continue }
        if error == .full {
          session.wantsRoom(member)
          retryLater(now)
        }
        client.reply(.sent(request: number, to: member, error == .full ? .noRoom : .notConnected))
      }
    }
    finishSend(client, number)
  }

  /// Answers a `send` request if all results of the request are known.
  func finishSend(_ client: ClientRecord, _ number: UInt32) {
    if !client.flights.contains(where: { $0.request == number }) { answer(client, number, .done) }
  }
}

/// The reason why a request is refused, with one line for people.
struct LocalError: Error {
  let outcome: LocalOutcome
  let text: [UInt8]

  init(_ outcome: LocalOutcome, _ text: StaticString = "") {
    self.init(outcome, text: text.withUTF8Buffer { [UInt8]($0) })
  }

  init(_ outcome: LocalOutcome, text: [UInt8]) {
    self.outcome = outcome
    self.text = text
  }

  init(of error: SessionError, full: StaticString) {
    switch error {
    case .unknown: self.init(.unknown)
    case .unavailable: self.init(.unavailable, "out of reach, or not a member")
    case .alreadyMember: self.init(.alreadyMember)
    case .notAllowed: self.init(.notAllowed, "the session's rules do not allow it, or the other node does not encrypt")
    case .incompatible: self.init(.incompatible, "the rules of the two sessions are incompatible")
    case .full: self.init(.full, full)
    case .busy: self.init(.busy, "the session is about to join another, or already waits for this address")
    case .invalid: self.init(.invalid, "a text, a context or discovery info is too long or invalid")
    }
  }

  /// Runs `body` and converts its session error. `full` is the text for a reached limit: what is exhausted, and what to
  /// do.
  static func wrapping<Result>(
    full: StaticString = "no place is left", _ body: () throws(SessionError) -> Result
  ) throws(LocalError) -> Result {
    do throws(SessionError) { return try body() } catch { throw LocalError(of: error, full: full) }
  }
}
