import CommandLine
import Configuration
import ControlSocket
import Identity
import Primitives
import Relay
import Status
import Text
import Trust

/// `causeway identity trust`. The commands in this file show and change the trust in other nodes' keys. A command fails
/// if there is nothing to change.
func identityTrust(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity trust", words, arguments: "NAME|ID", count: 1...1,
    help: """
      Pin a peer's key: it is accepted under every policy, and if it has a name, no other key is accepted under that \
      name. A peer given by its name is pinned with it.\u{0B}ID is a whole id or its first digits, at least 4. NAME \
      and first digits are searched among pins, peers, refused nodes and alarms; if several keys match, nothing is \
      done. Anybody can choose a name, and an id with given first digits. Therefore the command shows the whole id and \
      where it was seen, and prompts on its terminal. A whole id needs no prompt; without a terminal, give the whole id.
      """,
    [
      CommandOption(
        name: "name", key: identityNameKey, argument: "NAME", help: "The display name that is reserved for this key")
    ])
  return carryOut(.pin, options)
}

func identityUntrust(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity untrust", words, arguments: "NAME|ID", count: 1...1,
    help: """
      Remove the pin of a name, or all pins of a key; the next key that connects under that name gets it. To accept a \
      changed key: causeway identity accept.
      """)
  return carryOut(.unpin, options)
}

func identityRevoke(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity revoke", words, arguments: "NAME|ID", count: 1...1,
    help: """
      Refuse a key permanently: its links are closed at once, and boxes that have this one among their [trust] \
      operators receive the revocation. It cannot be undone, so the command prompts first, on its terminal. Without a \
      terminal, a NAME or the first digits of an id need --yes.\u{0B}ID is a whole id or its first digits, at least 4. \
      NAME and first digits are searched among pins, peers, refused nodes and alarms; if several keys match, nothing \
      is done.
      """,
    [CommandOption(name: "yes", key: identityYesKey, argument: nil, help: "Revoke without a prompt")])
  return carryOut(.revoke, options)
}

func identityAlarms(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity alarms", words,
    help: "Show the keys that use a name pinned to another key, and the remedies.")
  return run { () throws(CommandError) in
    try report(fetchStatus(options.client)) { $0.alarmsText() }
  }
}

func identityAccept(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity accept", words, arguments: "ID", count: 1...1,
    help: """
      Accept the changed key of a pinned name: the key of an alarm is pinned under that name, in place of the old one. \
      Ask the owner first. “causeway identity alarms” shows the whole id. A name or the first digits of an id, at least \
      4, need a terminal, on which the command prompts.
      """)
  return settle(.accept, options)
}

func identityKeep(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity keep", words, arguments: "[ID]", count: 0...1,
    help: """
      Keep the pinned key: clear the alarms of a key, pinned or offered (default: all). The offered keys stay refused, \
      and raise no further alarm until the daemon restarts.
      """)
  return settle(.keep, options)
}

func identityDismiss(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity dismiss", words, arguments: "[ID]", count: 0...1,
    help: "Clear the alarms of a key, pinned or offered (default: all). The next attempt raises them again.")
  return settle(.dismiss, options)
}

/// Carries out an operation through the daemon, which owns the state directory. If no daemon runs, the command changes
/// the state directory itself.
private func carryOut(_ operation: TrustOperation, _ options: IdentityOptions) -> CInt {
  run { () throws(CommandError) in
    guard let configuration = loadConfiguration(options.client.config) else { throw CommandError(ExitCode.usage) }
    let store: TrustStore
    var keeper: TrustKeeper?
    do throws(IdentityError) {
      let directory = try StateDirectory(configuration.node.stateDirectory)
      let isFree = try directory.lock()
      store = try TrustStore(directory)
      if isFree { keeper = TrustKeeper(try loadIdentity(directory), store, configuration.trust) }
    } catch {
      throw CommandError(saying: error.text)
    }
    guard let keeper else {
      let client = try options.client.connect()
      // `untrust` can remove only pins, so it ignores other keys.
      let others = operation == .unpin ? [] : try seen(client)
      let target = try target(operation, options, store.pins.map { TrustCandidate($0) } + others)
      return try askDaemon(operation, target, client)
    }
    let target = try target(operation, options, store.pins.map { TrustCandidate($0) })
    do throws(TrustError) {
      show("", try keeper.carryOut(operation, target.id, name: target.name))
    } catch {
      throw CommandError(saying: error.text)
    }
  }
}

/// The key that the command line identifies, with the name of the operation, after the operator has confirmed the key
/// if the operation needs this.
private func target(
  _ operation: TrustOperation, _ options: IdentityOptions, _ candidates: [TrustCandidate]
) throws(CommandError) -> TrustTarget {
  let word = options.words[0]
  var target = try trustTarget(operation, word, candidates)
  if !options.name.utf8.isEmpty { target.name = options.name }
  switch operation {
  case .pin: try confirmPin(of: target, word, as: target.name, ask: Prompts.askAndWait)
  case .accept: try confirmPin(of: target, word, as: "", ask: Prompts.askAndWait)
  case .revoke: try confirmRevocation(of: target, word, options)
  case .unpin, .keep, .dismiss: break
  }
  return target
}

/// Asks the operator on the controlling terminal for confirmation, because a revocation cannot be undone. A script
/// without a terminal must give the full id or `--yes`.
private func confirmRevocation(
  of target: TrustTarget, _ word: String, _ options: IdentityOptions
) throws(CommandError) {
  if options.isConfirmed { return }
  var question = TextBuilder()
  question.add("Revoke \(target.id.text)")
  if !target.name.utf8.isEmpty {
    question.add(" (“")
    question.add(untrusted: target.name.utf8)
    question.add("”)")
  }
  question.add(" permanently? This cannot be undone. [y/N] ")
  if let isConfirmed = Prompts.askAndWait(question) {
    if !isConfirmed { throw CommandError(saying: "not revoked") }
  } else if NodeIDSyntax.parse(ByteString(word)) == nil {
    throw CommandError(
      saying: "“\(shown(word))” is \(target.id.text), and a revocation cannot be undone: "
        + "give the whole id, or add --yes")
  }
}

/// Carries out an operation on alarms through the daemon. Only the daemon has alarms, because they are not stored on
/// disk.
private func settle(_ operation: TrustOperation, _ options: IdentityOptions) -> CInt {
  run { () throws(CommandError) in
    let client = try options.client.connect()
    var chosen = TrustTarget(id: .none, name: "")
    if !options.words.isEmpty { chosen = try target(operation, options, try seen(client)) }
    chosen.name = ""
    try askDaemon(operation, chosen, client)
  }
}

/// The keys of peers, refused nodes and alarms that the daemon knows.
private func seen(_ client: ControlClient) throws(CommandError) -> [TrustCandidate] {
  do throws(AccessError) {
    let report = try StatusReport(client.status())
    defer { report.release() }
    var found: [TrustCandidate] = []
    for seen in report.candidates() {
      guard let id = NodeIDSyntax.parse(ByteString(seen.id)) else { continue }
      found.append(TrustCandidate(id: id, name: seen.name, source: seen.source))
    }
    return found
  } catch {
    throw CommandError(saying: error.text)
  }
}

private func askDaemon(
  _ operation: TrustOperation, _ target: TrustTarget, _ client: ControlClient
) throws(CommandError) {
  show("", try client.carryOut(.trust(operation, target.id, name: target.name)))
}
