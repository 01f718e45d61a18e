import Frame
import Primitives
import Text

/// One finding about whether two nodes can communicate.
public struct ExplainFinding: Equatable {
  /// The effect of a finding on the communication.
  public enum State: UInt8, Sendable {
    case good
    case note
    case wrong

    var name: StaticString {
      switch self {
      case .good: "good"
      case .note: "note"
      case .wrong: "wrong"
      }
    }
  }

  /// The subject of the finding: a bearer, trust, route …
  public var subject: String
  public var state: State
  /// The finding in one line. It may contain untrusted text.
  public var text: String
  /// The advice that belongs to the finding; empty if there is none.
  public var remedy: String
}

/// Explains why two nodes can or cannot communicate. It derives findings and a verdict from `ExplainFacts`, without
/// system calls.
public struct Explanation {
  /// Whether two nodes can communicate, as far as this box knows.
  public enum Outcome: UInt8, CaseIterable, Sendable {
    /// Each node has accepted the other: they have an end-to-end session, or a link between them is up.
    case canTalk
    /// There is a route, but the nodes have not yet tried to begin an end-to-end session, and no link between them is
    /// up.
    case untried
    /// There is a route, but the other node has not answered the request for an end-to-end session yet.
    case unanswered
    /// There is a route, but this box cannot know whether the two nodes accept each other.
    case unknown
    case cannotTalk

    var name: StaticString {
      switch self {
      case .canTalk: "can-talk"
      case .untried: "untried"
      case .unanswered: "unanswered"
      case .unknown: "unknown"
      case .cannotTalk: "cannot-talk"
      }
    }
  }

  public private(set) var findings: [ExplainFinding] = []
  /// The path between the two nodes; empty if they cannot communicate.
  public private(set) var hops: [ExplainHop] = []
  public private(set) var outcome = Outcome.cannotTalk
  /// One line: the route, or the reason why the two nodes cannot communicate.
  public private(set) var verdict = ""
  /// The advice that belongs to the verdict; empty if the two nodes are known to communicate.
  public private(set) var remedy = ""

  let facts: ExplainFacts
  private let search: PathSearch
  /// Whether both nodes are configured without end-to-end encryption.
  private var isClear = false
  /// The causes that prevent communication. The cause with the lowest rank becomes the verdict.
  private var causes: [(rank: Int, text: String, remedy: String)] = []

  /// Whether the other node refused this box in the last attempt to link.
  private var isLinkRefused = false

  /// The maximum age in seconds of a failure that explains the present state.
  private static let freshSeconds: UInt64 = 600
  /// The maximum age in seconds of a failed end-to-end handshake that is shown as the present state. Nodes retry
  /// handshakes at shorter intervals.
  private static let attemptSeconds: UInt64 = 60
  /// The time in seconds after which an unanswered request for an end-to-end session is a fault. It is the timeout of a
  /// stalled handshake.
  private static let answerSeconds: UInt64 = 12
  /// The age in seconds above which an advertisement is stale. Advertisements are renewed every 200 s.
  private static let staleSeconds: UInt64 = 260

  public init(_ facts: ExplainFacts) {
    self.facts = facts
    search = PathSearch(facts.nodes, ends: [facts.from, facts.to])
    if facts.from == facts.to {
      add(
        "identity", .wrong, joined("both are the same node, ", called(facts.to)),
        "name two nodes; if two machines have this key, on one of them: causeway identity new --replace", rank: 0)
    } else {
      if isFromHere { examineTrust() }
      if isFromHere { examineBearers() }
      examineAges()
      examineRoute()
      examineEncryption()
      examineSessions()
    }
    conclude()
  }

  /// Whether no known cause prevents communication.
  public var canTalk: Bool { outcome != .cannotTalk }

  /// Whether `from` is this node. This node knows more about its own links than the link-state database contains.
  var isFromHere: Bool { facts.from == facts.local }

  /// The display name of a node, or its short id.
  func name(_ id: NodeID) -> String {
    if let node = facts.nodes.first(where: { $0.id == id }), !node.name.utf8.isEmpty { return shown(node.name) }
    if let known = facts.names.first(where: { $0.id.mayBe(id) }), !known.name.utf8.isEmpty { return shown(known.name) }
    return id.shortText
  }

  private func called(_ id: NodeID) -> String { id == facts.local ? "this box" : name(id) }

  private func names(_ id: NodeID) -> RemedyNames {
    RemedyNames(peer: called(id), peerID: id.text, ownID: facts.local.text)
  }

  private mutating func add(
    _ subject: String, _ state: ExplainFinding.State, _ text: String, _ remedy: String = "", rank: Int? = nil,
    cause: String? = nil
  ) {
    findings.append(ExplainFinding(subject: subject, state: state, text: text, remedy: remedy))
    if let rank { causes.append((rank, cause ?? text, remedy)) }
  }

  // MARK: Trust and bearers of the local node

  private mutating func examineTrust() {
    if facts.isSelfRevoked {
      add(
        "trust", .wrong, "this box's own key is revoked by an operator", "here: causeway identity new --replace",
        rank: 2)
    }
    guard let fault = facts.trustFault else { return }
    add(
      "trust", .wrong, joined(called(facts.to), " is refused here: ", fault.text), fault.remedy(names(facts.to)),
      rank: 1)
  }

  private mutating func examineBearers() {
    for bearer in facts.bearers { examine(bearer) }
    guard facts.linksMax > 0, facts.linksOpen >= facts.linksMax else { return }
    add(
      "links", .note, joined("all ", decimal(UInt64(facts.linksMax)), " links are in use here ([node] peers-max)")
    )
  }

  private mutating func examine(_ bearer: BearerFacts) {
    let subject = word(bearer.section.name)
    guard bearer.isEnabled else {
      return add(subject, .note, joined("switched off here: ", word(bearer.section.key), " enabled = no"))
    }
    let links = facts.links.filter { BearerSection($0.bearer) == bearer.section }
    let upSince = links.filter { $0.isStanding }.map { $0.sinceSeconds }.min()
    let failures = facts.failures.filter { BearerSection($0.bearer) == bearer.section }
    let named = failures.filter { concerns($0, facts.to) && $0.secondsAgo < upSince ?? .max }
    // If a bearer does not work, its broken links and failed dials are consequences. The bearer's fault then gets a
    // lower rank than they have, so that the verdict names the fault.
    let rank = named.isEmpty ? 9 : 5
    if !bearer.problem.utf8.isEmpty {
      add(
        subject, .wrong, bearer.problem, "causeway doctor", rank: rank,
        cause: joined(subject, " does not work here: ", bearer.problem))
    } else if !bearer.isUp {
      add(
        subject, .note, bearer.detail.utf8.isEmpty ? "not up" : joined("not up: ", bearer.detail), "causeway doctor",
        rank: named.isEmpty ? nil : rank, cause: joined(subject, " is not up here"))
    }
    for link in links { add(subject, link.isQuarantined ? .note : .good, text(link)) }
    for failure in named { add(failure, of: facts.to) }
    if upSince != nil { return }
    examineHeard(bearer, subject, hasFailed: !named.isEmpty)
    // An address at which no node has identified itself may belong to the missing node.
    for failure in failures where failure.node == .none && facts.toAddress.utf8.isEmpty { add(failure, of: nil) }
  }

  private func concerns(_ failure: ContactFailure, _ node: NodeID) -> Bool {
    if facts.toAddress.utf8.isEmpty || node != facts.to { return failure.node.mayBe(node) }
    return failure.address.utf8.elementsEqual(facts.toAddress.utf8)
  }

  private mutating func add(_ failure: ContactFailure, of node: NodeID?) {
    let subject = word(BearerSection(failure.bearer).name)
    let text = joined(failure.address, ", ", failure.when, ": ", failure.cause.text)
    let isFresh = failure.secondsAgo <= Self.freshSeconds
    if case .refusedThere = failure.cause, node != nil, isFresh { isLinkRefused = true }
    let who = node.map { called($0) } ?? "the node at that address"
    let names = RemedyNames(peer: who, peerID: (node ?? facts.to).text, ownID: facts.local.text)
    add(
      subject, .wrong, text, failure.cause.remedy(names), rank: node == nil ? 10 : isFresh ? failure.cause.rank : 9,
      cause: node == nil
        ? joined(called(facts.to), " is not found, and an address without a known node fails: ", text)
        : joined(failure.cause.text, " (", failure.address, ", ", secondsText(failure.secondsAgo), " ago)"))
  }

  private mutating func examineHeard(_ bearer: BearerFacts, _ subject: String, hasFailed: Bool) {
    var isHeard = false
    for heard in facts.heard where BearerSection(heard.bearer) == bearer.section && heard.isNamed {
      isHeard = true
      let text = joined(
        heard.address, " known, last seen ", secondsText(heard.secondsAgo), " ago; ", self.text(heard.plan))
      add(
        subject, hasFailed ? .note : .good, text, rank: 11,
        cause: joined(called(facts.to), " is found at ", heard.address, ", but not linked yet: ", self.text(heard.plan))
      )
    }
    if isHeard || hasFailed || !bearer.isUp { return }
    add(subject, .note, joined(called(facts.to), " is not found (", bearer.detail, ")"))
  }

  private func text(_ plan: HeardFacts.Plan) -> String {
    switch plan {
    case .notWanted: "not dialled: other links suffice, or the other node dials"
    case .waiting(let milliseconds):
      milliseconds == 0
        ? "the next dial is due"
        : joined(
          "the next dial is in ", decimal(UInt64(milliseconds / 1000)), ".", decimal(UInt64(milliseconds / 100 % 10)),
          " s"
        )
    case .lacksSlot: "the dial waits for a free connection of the radio"
    case .dialling: "it is being dialled"
    case .served: "another link or dial already reaches it"
    }
  }

  private func text(_ link: ExplainedLink) -> String {
    var text = joined(
      "link over ", word(link.bearer.name), " ", link.state, " for ", secondsText(link.sinceSeconds), ", cost ",
      decimal(UInt64(link.cost)))
    if link.roundTripMicroseconds > 0 {
      text += joined(", round trip ", millisecondsText(link.roundTripMicroseconds))
    }
    if link.bytesQueued > 0 { text += joined(", ", bytesText(link.bytesQueued), " queued") }
    if link.isQuarantined { text += "; in quarantine, because it keeps breaking" }
    if link.isParked { text += "; dialled when there is data to send" }
    return text
  }

  // MARK: The mesh between the nodes

  private mutating func examineAges() {
    for id in [facts.from, facts.to] where id != facts.local {
      guard let node = facts.nodes.first(where: { $0.id == id }), node.ageSeconds > Self.staleSeconds else { continue }
      add(
        "mesh", .note, joined("the last list of links from ", called(id), " is ", secondsText(node.ageSeconds), " old"))
    }
  }

  private mutating func examineRoute() {
    let here = facts.way.isEmpty ? nil : facts.way
    if let here, isFromHere {
      var end = facts.from
      for hop in here {
        hops.append(
          ExplainHop(
            from: end, node: hop.node, bearer: hop.bearer, cost: hop.cost,
            payloadBytesMax: min(hop.payloadBytesMax, UInt16(clamping: facts.payloadBytesMax))))
        end = hop.node
      }
    } else if !isFromHere, let path = search.path(from: facts.from, to: facts.to) {
      hops = path
    }
    if !hops.isEmpty { return add("route", .good, routeText) }
    if let path = search.path(from: facts.from, to: facts.to, .silentNodes) {
      if let blocker = path.dropLast().first(where: { !search.relays($0.node) }) {
        let name = called(blocker.node)
        return add(
          "route", .wrong, joined("the path would lead over ", name, ", which does not relay"),
          joined("on ", name, ": [node] relay = yes, then: systemctl restart causeway"), rank: 7)
      }
      return add("route", .note, "their links were advertised just now; there is no route yet", "try again", rank: 11)
    }
    if facts.links.contains(where: { $0.isStanding }) {
      return add("route", .note, "their link is up, but there is no route yet", "try again", rank: 11)
    }
    guard var path = search.path(from: facts.from, to: facts.to, .oneSided) else {
      let isKnown = facts.nodes.contains { $0.id == facts.to }
      return add(
        "route", .note,
        isKnown
          ? joined("no path leads from ", called(facts.from), " to ", called(facts.to))
          : joined(called(facts.to), " is not in the mesh of this box"))
    }
    // The findings about bearers already explain why this node has no link to `to`.
    if isFromHere && path.count == 1 { path = [] }
    for hop in path where !(search.lists(hop.from, hop.node) && search.lists(hop.node, hop.from)) {
      addOneSided(hop)
    }
  }

  /// Explains a link that only one of its ends advertises: the link broke, or the other end is gone.
  private mutating func addOneSided(_ hop: ExplainHop) {
    let isForward = search.lists(hop.from, hop.node)
    let (one, other) = isForward ? (hop.from, hop.node) : (hop.node, hop.from)
    var text = joined(called(one), " lists a link to ", called(other), ", but ", called(other), " lists none back")
    if let node = facts.nodes.first(where: { $0.id == one }), one != facts.local {
      text += joined(" (as of ", secondsText(node.ageSeconds), " ago)")
    }
    var remedy = joined("on ", called(other), ": causeway explain ", called(one))
    // If this node is one end of the link, it knows why the link is gone.
    let gone = hop.from == facts.local ? hop.node : hop.node == facts.local ? hop.from : nil
    let failure = gone.flatMap { gone in facts.failures.first { $0.node.mayBe(gone) } }
    if let gone, let failure {
      text = joined("the path led over ", called(gone), ", to which this box has no link: ", failure.cause.text)
      remedy = failure.cause.remedy(names(gone))
    }
    add("route", .wrong, text, remedy, rank: 8)
  }

  private var routeText: String {
    var text = joined(decimal(UInt64(hops.count)), " ", hops.count == 1 ? "link" : "links", ": ")
    for (index, hop) in hops.enumerated() {
      text += joined(index == 0 ? "" : ", ", word(hop.bearer.name), " to ", called(hop.node))
    }
    if let weakest = hops.max(by: { $0.cost < $1.cost }), hops.count > 1 {
      text += joined(
        "; the weakest is ", word(weakest.bearer.name), " to ", called(weakest.node), ", cost ",
        decimal(UInt64(weakest.cost)))
    }
    let payload = hops.map { $0.payloadBytesMax }.min() ?? 0
    return text + joined("; frames of up to ", decimal(UInt64(payload)), " bytes")
  }

  // MARK: Encryption and sessions

  private mutating func examineEncryption() {
    let preferences = [facts.from, facts.to].map { id in facts.nodes.first { $0.id == id }?.encryption }
    if let one = preferences[0], let other = preferences[1] {
      switch EncryptionPreference.agreement(one, other) {
      case .refused:
        let silent = one == .none ? facts.from : facts.to
        let strict = one == .none ? facts.to : facts.from
        return add(
          "encryption", .wrong, joined(called(strict), " requires encryption, but ", called(silent), " has none"),
          joined("on ", called(silent), ": [peer] encryption = optional, then: systemctl restart causeway"), rank: 1)
      case .clear:
        isClear = true
        add("encryption", .note, "both chose none: relays on the path can read their traffic")
      case .sealed: examineSession()
      }
    }
  }

  private mutating func examineSession() {
    if hops.isEmpty { return }
    guard isFromHere else {
      return add(
        "trust", .note,
        joined("only ", called(facts.from), " and ", called(facts.to), " know whether they accept each other's key"),
        joined("on ", called(facts.from), ": causeway explain ", called(facts.to)))
    }
    // `examineTrust` has already added a finding about this fault.
    if facts.trustFault != nil { return }
    guard let fault = facts.sessionFault ?? silence else { return addSession() }
    let ends = names(facts.to)
    let isCurrent = fault.obstacle.stands || fault.secondsAgo <= Self.attemptSeconds
    let text = fault.obstacle.text(ends)
    let age = fault.secondsAgo == 0 ? "" : joined(" (", secondsText(fault.secondsAgo), " ago)")
    add(
      "encryption", isCurrent ? .wrong : .note, joined(text, age), fault.obstacle.remedy(ends),
      rank: isCurrent ? 1 : nil, cause: text)
  }

  /// The obstacle `silent`, if the peer has not answered the request for an end-to-end session for `answerSeconds`. It
  /// covers a node that is the DTLS server: this node only sends requests, so it has no handshake that could time out.
  private var silence: SessionFault? {
    guard !facts.hasSession, let asked = facts.unanswered, asked.forSeconds >= Self.answerSeconds else { return nil }
    return SessionFault(.silent, secondsAgo: asked.secondsAgo)
  }

  private mutating func addSession() {
    if facts.hasSession { return add("encryption", .good, "sealed end to end") }
    if isLinked {
      return add(
        "encryption", .good, "sealed end to end when they talk: on their link each has accepted the other's key")
    }
    guard let asked = facts.unanswered else {
      return add("encryption", .note, "not tried yet: there is no end-to-end session", tryIt)
    }
    add(
      "encryption", .note,
      joined(called(facts.to), " has not answered the end-to-end handshake for ", secondsText(asked.forSeconds)))
  }

  /// Whether a link between the two nodes is up. A parked link (kept without a connection) only proves that the nodes
  /// accepted each other once.
  private var isLinked: Bool { facts.links.contains { $0.isStanding && !$0.isParked } }

  private var tryIt: String { joined("causeway ping ", facts.to.text) }

  private mutating func examineSessions() {
    for session in facts.sessions {
      if let id = session.id {
        let isThere = ["connected", "paused"].contains { session.state.utf8.elementsEqual($0.utf8) }
        add(
          "session", isThere ? .good : .note,
          joined("“", session.type, "” ", id, ": ", called(facts.to), " is ", session.state))
      } else {
        add("session", .note, joined("both offer “", session.type, "”, but share no session of it"))
      }
    }
  }

  // MARK: The verdict

  private mutating func conclude() {
    // A node that refuses a link because of this box's key, certificate or name refuses a session too. A later session
    // or link shows that the refusal has ended.
    let isBlocked = isLinkRefused && !facts.hasSession && !isLinked || causes.contains { $0.rank <= 1 }
    if !hops.isEmpty && !isBlocked {
      outcome = knowledge
      verdict = routeText
      remedy = nextStep
      return
    }
    hops = []
    if let first = causes.min(by: { $0.rank < $1.rank }) {
      (verdict, remedy) = (first.text, first.remedy)
    } else if !isFromHere {
      verdict = joined("no path leads from ", called(facts.from), " to ", called(facts.to))
    } else {
      verdict = notHeard
    }
    if remedy.utf8.isEmpty { remedy = defaultRemedy }
  }

  /// The outcome for two nodes with a route and without a known obstacle.
  private var knowledge: Outcome {
    if !isFromHere { return .unknown }
    if facts.hasSession || isLinked { return .canTalk }
    if isClear { return .unknown }
    return facts.unanswered == nil ? .untried : .unanswered
  }

  /// The next step that would yield more certainty.
  private var nextStep: String {
    switch outcome {
    case .canTalk, .cannotTalk: ""
    case .untried: tryIt
    case .unanswered: SessionObstacle.silent.remedy(names(facts.to))
    case .unknown:
      isFromHere
        ? joined("on ", called(facts.to), ": causeway explain ", facts.local.text)
        : joined("on ", called(facts.from), ": causeway explain ", called(facts.to))
    }
  }

  private var notHeard: String {
    let on = facts.bearers.filter { $0.isEnabled }
    if on.isEmpty { return "every bearer is switched off here" }
    return joined(
      called(facts.to), " is out of reach", list("; not found over ", on.filter { $0.isUp }),
      list("; not up here: ", on.filter { !$0.isUp }),
      list("; switched off here: ", facts.bearers.filter { !$0.isEnabled }))
  }

  private func list(_ words: String, _ bearers: [BearerFacts]) -> String {
    var text = ""
    for bearer in bearers { text += joined(text.utf8.isEmpty ? words : ", ", word(bearer.section.name)) }
    return text
  }

  private var defaultRemedy: String {
    let off = facts.bearers.filter { !$0.isEnabled }
    var keys = ""
    for (index, bearer) in off.enumerated() { keys += joined(index == 0 ? "" : ", ", word(bearer.section.key)) }
    if !off.isEmpty && off.count == facts.bearers.count {
      return joined(keys, " enabled = yes, for a bearer that both have")
    }
    let near = joined(
      "check that it runs (“causeway status” on ", called(facts.to), "), and move it or a relay closer")
    return off.isEmpty ? near : joined(near, "; or enable a bearer here that it uses: ", keys, " enabled = yes")
  }
}
