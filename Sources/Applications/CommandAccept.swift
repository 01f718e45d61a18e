import CSystem
import CommandLine
import DaemonClient
import LocalAPI
import Primitives
import Session
import Terminal
import Text

/// `causeway accept`
public func commandAccept(_ words: CommandWords) -> CInt {
  var options = LocalOptions()
  var rule = AcceptRule(canAsk: ProcessConsole.canAsk)
  var type: [UInt8] = []
  CommandParser.parse(
    "causeway accept", words, arguments: "TYPE", count: 1...1,
    help: """
      Advertise TYPE and join the sessions to which peers invite, for programs without a screen: a script, a logger. \
      --from and --pinned select the peers to accept; without them, a terminal prompts for each peer. Messages appear \
      on standard output as “<name> text”, changes of members on standard error. Streams are refused.\u{0B}Without a \
      terminal, --from or --pinned, peers whose keys are pinned here are accepted. The rule also applies to members of \
      sessions merged into this one, unless it prompts. With --json, everything goes to standard output, as events \
      self, invitation, member and message.
      """,
    options: LocalOptions.options + AcceptRule.options + [LocalOptions.name, LocalOptions.stay, LocalOptions.json]
  ) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    if let accepted = rule.take(key, value) { return accepted }
    guard let given = serviceType(value) else { return LocalOptions.typeAccepted }
    type = given
    return nil
  }
  return run { () throws(CommandError) in
    let connection = try options.connect(as: "accept")
    try accept(connection, ProcessConsole([SIGINT, SIGTERM, SIGHUP]), options, rule, type)
  }
}

/// One run of `causeway accept`.
func accept(
  _ connection: any LocalConnection, _ console: any Console, _ options: LocalOptions, _ rule: AcceptRule,
  _ type: [UInt8]
) throws(CommandError) {
  let end = options.endOfStay(from: console.now)
  let rules = SessionRules(membersMax: SessionLimits.membersMax)
  let session = try make(.open(type: type, rules, decidesOnMembers: !rule.asks), connection)
  try make(.browse(type: type), connection)
  let view = ChatView(options.isJSON ? .json : .plain, console)
  let lines = PeerLines(console, view.notice)
  defer { lines.printOmittedCounts(isLast: true) }
  let doorkeeper = InvitationPrompt(connection, console, session, rule, type, lines) { invitation, peer, isAccepted in
    let text = answerText(invitation, peer, isAccepted)
    guard isAccepted || lines.admits(text, .declined, of: invitation.from.node, peer) else { return }
    if view.isJSON {
      var line = JSONLine(event: "invitation")
      line.add("name", peer.name)
      line.add(invitation.from)
      line.add("verified", peer.isVerified)
      line.add("accepted", isAccepted)
      line.put(on: console)
    } else {
      view.notice(text)
    }
  }
  defer { doorkeeper.close() }
  try make(.advertise(type: type, info: options.info), connection)
  view.introduce(connection)
  var window = MessageWindow()
  window.open(connection, session)
  var names = MemberNames()
  var sightings = Sightings()
  while true {
    doorkeeper.update()
    let watch = DaemonConnection.Watch(
      input: doorkeeper.descriptor, signals: console.signals, output: console.output)
    switch try wake(connection, console, until: min(end, lines.nextDeadline, doorkeeper.deadline), watch) {
    case .input: doorkeeper.readInput()
    case .timedOut where console.now < end: lines.printOmittedCounts()
    case .signal, .timedOut:
      _ = try? connection.carryOut(.leave(session: session, text: []))
      return
    case .outputClosed: throw CommandError(ExitCode.failed)
    case .event(.invited(_, let invitation, _, let peer)): doorkeeper.invited(invitation, peer)
    case .event(.invitationEnded(_, let received, _)): doorkeeper.ended(received)
    case .event(.decisionWanted(_, let address, let peer, _)):
      connection.ask(.decide(session: session, address, accepts: doorkeeper.accepts(address.node, peer)))
    case .event(.services(_, let reference, let node, let peer, let services)):
      _ = sightings.update(reference: reference, node, peer, services)
    case .event(.member(_, let address, let state, let peer)):
      let before = names.receive(address, state, peer)
      let known = names.member(address)?.peer ?? peer
      view.member(names.name(address, sightings), address, known, from: before, to: state, lacking: 0, lines)
      switch state {
      case .left, .ejected: names.forget(address)
      case .connecting, .connected, .paused, .away, .rejected: break
      }
    case .event(.message(_, let from, _, let text)):
      window.took(text.count, connection, session)
      view.message(names.name(from, sightings), from, text)
    case .event(.stream(_, let stream, _, _)): connection.ask(.take(stream: stream, isWanted: false, limit: 0))
    case .event(.ended(_, let end, _)): throw CommandError(saying: sessionEndText(end))
    case .event: continue
    }
  }
}
