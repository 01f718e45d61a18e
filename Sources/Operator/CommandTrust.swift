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
      done.
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
      Ask the owner first.
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

/// The key that a word of the command line identifies. `name` is the word if it is a name; otherwise empty.
private struct Target {
  var id: NodeID
  var name: String
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
    let word = options.words[0]
    guard let keeper else {
      let client = try options.client.connect()
      let target = try target(operation, word, store.pins, try seen(client))
      if operation == .revoke { try confirmRevocation(of: target, word, options) }
      return try askDaemon(operation, target, options.name, client)
    }
    let target = try target(operation, word, store.pins, [])
    if operation == .revoke { try confirmRevocation(of: target, word, options) }
    do throws(TrustError) {
      show("", try keeper.carryOut(operation, target.id, name: options.name.utf8.isEmpty ? target.name : options.name))
    } catch {
      throw CommandError(saying: error.text)
    }
  }
}

/// Asks the operator on the controlling terminal for confirmation, because a revocation cannot be undone. A script
/// without a terminal must give the full id or `--yes`.
private func confirmRevocation(
  of target: Target, _ word: String, _ options: IdentityOptions
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
    var target = Target(id: .none, name: "")
    if let word = options.words.first { target = try Operator.target(operation, word, [], try seen(client)) }
    target.name = ""
    try askDaemon(operation, target, "", client)
  }
}

/// The keys of peers, refused nodes and alarms that the daemon knows, with their names.
private func seen(_ client: ControlClient) throws(CommandError) -> [Target] {
  do throws(AccessError) {
    let report = try StatusReport(client.status())
    defer { report.release() }
    var targets: [Target] = []
    for candidate in report.candidates() {
      if let id = NodeIDSyntax.parse(ByteString(candidate.id)) { targets.append(Target(id: id, name: candidate.name)) }
    }
    return targets
  } catch {
    throw CommandError(saying: error.text)
  }
}

/// The key that a word of the command line identifies. A full id of 32 digits identifies its key even if the key is
/// unknown here; the word is then never taken as a name.
private func target(
  _ operation: TrustOperation, _ word: String, _ pins: [Pin], _ seen: [Target]
) throws(CommandError) -> Target {
  if let id = NodeIDSyntax.parse(ByteString(word)) {
    return Target(id: id, name: "")
  }
  let bytes = Array(word.utf8)
  let mayBeName = !looksLikeNodeID(bytes.span.bytes)
  var found: [Target] = []
  // `untrust` can remove only pins, so it ignores other keys.
  let others = operation == .unpin ? [] : seen
  for candidate in pins.map({ Target(id: $0.node, name: String(decoding: $0.name, as: UTF8.self)) }) + others {
    let isName = mayBeName && candidate.name.utf8.elementsEqual(bytes)
    guard isName || candidate.id.begins(withDigits: bytes) else { continue }
    let target = Target(id: candidate.id, name: isName ? word : "")
    if let index = found.firstIndex(where: { $0.id == target.id }) {
      if isName { found[index] = target }
    } else {
      found.append(target)
    }
  }
  if found.count == 1 {
    // `untrust` with a name removes only the pin of this name, not the key's other pins.
    return operation == .unpin && !found[0].name.utf8.isEmpty ? Target(id: .none, name: word) : found[0]
  }
  if found.isEmpty {
    // The daemon can have a pin (from trust on first use) that is not on disk yet, so it must decide.
    if operation == .unpin && mayBeName { return Target(id: .none, name: word) }
    throw CommandError(
      saying:
        "no known name or id matches “\(shown(word))”; “causeway status” lists peers and refused nodes")
  }
  var list = ""
  for target in found { list += list.utf8.isEmpty ? target.id.text : ", " + target.id.text }
  throw CommandError(saying: "“\(shown(word))” matches \(list); give the whole id")
}

private func askDaemon(
  _ operation: TrustOperation, _ target: Target, _ name: String, _ client: ControlClient
) throws(CommandError) {
  show("", try client.carryOut(.trust(operation, target.id, name: name.utf8.isEmpty ? target.name : name)))
}
