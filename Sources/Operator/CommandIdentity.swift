import CSystem
import CommandLine
import Configuration
import Identity
import Primitives
import Relay
import SecureTransport
import Text
import Trust

/// `causeway identity COMMAND`
public func commandIdentity(_ words: CommandWords) -> CInt {
  dispatch(
    words, "causeway identity",
    [
      Command(name: "show", summary: "show the box's key, certificate, pins and revocations", run: identityShow),
      Command(name: "new", summary: "create a new key; the box becomes another node", run: identityNew),
      Command(name: "import", summary: "import key and certificates from a PEM or PKCS#12 file", run: identityImport),
      Command(name: "export", summary: "print the certificates as PEM", run: identityExport),
      Command(name: "trust", summary: "pin a peer's key", run: identityTrust),
      Command(name: "untrust", summary: "remove the pin of a name or key", run: identityUntrust),
      Command(
        name: "revoke", summary: "refuse a key permanently, here and where this box is an operator", run: identityRevoke
      ),
      Command(name: "alarms", summary: "show keys that use a name pinned to another key", run: identityAlarms),
      Command(name: "accept", summary: "replace the pinned key by the key of an alarm", run: identityAccept),
      Command(name: "keep", summary: "keep the pinned key and silence the alarms of the other one", run: identityKeep),
      Command(name: "dismiss", summary: "clear alarms until the next attempt", run: identityDismiss),
    ], help: "The identity of this box and the peers it trusts. These commands need the rights of the daemon's user.")
}

private let replaceKey: CInt = 0x72
private let passwordFileKey: CInt = 0x70
private let privateKeyKey: CInt = 0x6B
let identityNameKey: CInt = 0x6E
let identityYesKey: CInt = 0x79
private let atNextStart: StaticString = "It takes effect at the next start: systemctl restart causeway"

/// The options of all `causeway identity` commands.
struct IdentityOptions {
  var client = ClientOptions()
  var words: [String] = []
  var isReplacing = false
  var passwordFile: String?
  var withPrivateKey = false
  var isConfirmed = false
  var name = ""

  static func parse(
    _ command: StaticString, _ words: CommandWords, arguments: StaticString = "", count: ClosedRange<Int> = 0...0,
    help: StaticString, _ own: [CommandOption] = []
  ) -> IdentityOptions {
    var options = IdentityOptions()
    CommandParser.parse(
      command, words, arguments: arguments, count: count, help: help, options: ClientOptions.options + own
    ) { key, value in
      if options.client.take(key, value) { return nil }
      switch key {
      case replaceKey: options.isReplacing = true
      case passwordFileKey: options.passwordFile = value
      case privateKeyKey: options.withPrivateKey = true
      case identityYesKey: options.isConfirmed = true
      case identityNameKey:
        guard DisplayNameSyntax.parse(Array(value.utf8)[...]) != nil else { return DisplayNameSyntax.accepted }
        options.name = value
      default: options.words.append(value)
      }
      return nil
    }
    return options
  }
}

private let replaceOption = CommandOption(
  name: "replace", key: replaceKey, argument: nil, help: "Replace the existing key")

/// Runs `body` with the configuration and the state directory that it names. Prints an error of `body`. Returns the
/// exit code.
private func withState(
  _ options: IdentityOptions, _ body: (StateDirectory, Configuration) throws(IdentityError) -> Void
) -> CInt {
  guard let configuration = loadConfiguration(options.client.config) else { return ExitCode.usage }
  do throws(IdentityError) {
    try body(StateDirectory(configuration.node.stateDirectory), configuration)
    return ExitCode.done
  } catch {
    printError(error.text)
    return ExitCode.failed
  }
}

private func identityNew(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity new", words,
    help:
      "Create a new key and a self-signed certificate. The box becomes another node; the old key is kept as node.key.old.",
    [replaceOption])
  return replacing(options) { directory throws(IdentityError) in try NodeIdentity.create(directory) }
}

private func identityImport(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity import", words, arguments: "FILE", count: 1...1,
    help: """
      Import an ECDSA P-256 key, its certificate and the chain above it from a PEM or PKCS#12 file. The box becomes \
      the node of that key; the old key is kept as node.key.old.
      """,
    [
      replaceOption,
      CommandOption(
        name: "password-file", key: passwordFileKey, argument: "FILE",
        help: "Read the password from the first line of FILE"),
    ])
  let path = options.words[0]
  return replacing(options) { directory throws(IdentityError) in
    guard let file = try readFile(path, bytesMax: 65_536) else { throw .unreadable(path: path, code: ENOENT) }
    let isEncrypted = try NodeIdentity.isEncrypted(file, path: path)
    var password: [UInt8] = []
    do throws(CommandError) {
      if let passwordFile = options.passwordFile {
        password = try Password.read(file: passwordFile)
      } else if isEncrypted {
        password = try Password.ask(for: path)
      }
    } catch {
      error.report()
      exit(error.code)
    }
    return try NodeIdentity.importing(file, path: path, password: password, at: now().seconds, into: directory)
  }
}

/// The time of this machine's clock, or that of the program's release if the clock is not synchronised.
private func now() -> TrustTime {
  let clock = SystemClock()
  return TrustTime(kept: 0, wall: clock.seconds, isSynchronised: clock.isSynchronised)
}

/// Creates a new identity by `make`. Fails if the box already has an identity and --replace is missing.
private func replacing(
  _ options: IdentityOptions, _ make: (StateDirectory) throws(IdentityError) -> NodeIdentity
) -> CInt {
  var code = ExitCode.done
  let result = withState(options) { directory, _ throws(IdentityError) in
    // Only check that the key's file exists. The key can be damaged, which is a reason to replace it.
    if !options.isReplacing, directory.has("node.key") {
      printError("\(directory.file("node.key")) exists; to make the box another node, use --replace")
      code = ExitCode.failed
      return
    }
    let identity = try make(directory)
    show("", "\(identity.id.text)")
    show(atNextStart, "")
    if let fault = identity.chainFault { printError(fault) }
    for note in identity.chainNotes(at: now().seconds) { printError("note: \(note)") }
  }
  return result == ExitCode.done ? code : result
}

private func identityExport(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity export", words, help: "Print the certificate chain as PEM, the box's own first.",
    [CommandOption(name: "key", key: privateKeyKey, argument: nil, help: "Print the private key before the chain")])
  return withState(options) { directory, _ throws(IdentityError) in
    let identity = try loadIdentity(directory)
    var text = TextBuilder()
    for byte in try identity.pem(withKey: options.withPrivateKey) { text.add(byte: byte) }
    Output.put(text)
  }
}

func loadIdentity(_ directory: StateDirectory) throws(IdentityError) -> NodeIdentity {
  guard let identity = try NodeIdentity.load(directory) else {
    throw .none(path: directory.file("node.key"))
  }
  if let notice = identity.notice { printError(notice) }
  return identity
}

private func identityShow(_ words: CommandWords) -> CInt {
  let options = IdentityOptions.parse(
    "causeway identity show", words, help: "Show the identity of the box and the peers it trusts.")
  return withState(options) { directory, configuration throws(IdentityError) in
    let store = try TrustStore(directory)
    let keeper = TrustKeeper(try loadIdentity(directory), store, configuration.trust)
    if let notice = store.notice { printError(notice) }
    for fault in keeper.anchors.faults { printError(fault.text) }
    var text = TextBuilder()
    text.add("node         \(keeper.identity.id.text)\n")
    for certificate in keeper.identity.chain.descriptions { text.add("certificate  \(shown(certificate))\n") }
    if keeper.anchors.certificateCount > 0 { text.add("anchors      \(verdictText(keeper))\n") }
    text.add("policy       \(keeper.policy.name)\n")
    let time = keeper.time
    text.add("time         not before ")
    text.add("\(dateText(time.floor))")
    text.add(time.isSynchronised ? "; the clock is synchronised\n" : "; the clock is not synchronised\n")
    for pin in keeper.pins {
      text.add("pinned       \(pin.node.text)  ")
      text.add(untrusted: pin.name)
      text.add(pin.isByOperator ? "  (by the operator)\n" : "\n")
    }
    for list in keeper.lists {
      for node in list.nodes {
        text.add("revoked      \(node.text)  by \(list.issuer.shortText), list \(list.serial)\n")
      }
    }
    Output.put(text)
  }
}

private func verdictText(_ keeper: TrustKeeper) -> String {
  switch keeper.identity.chain.evaluate(keeper.anchors, keeper.time) {
  case .trusted: "its certificate chain ends at one of the \(keeper.anchors.certificateCount)"
  case .trustedForNow: "its certificate chain ends at one, if it is valid already"
  case .refused(let refusal): "peers with these anchors refuse it: \(refusal.text)"
  }
}
